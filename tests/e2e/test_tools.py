"""Agents use Kandev's tools: a call goes from the agent through agentctl to the backend and back."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import (
    agent_spoke,
    alive,
    command_of,
    environment_of,
    get,
    marked,
    nothing_left,
    profile,
    said,
    turns_over,
    until_true,
)

pytestmark = pytest.mark.proves("MCP-task-mode", "CTL-mcp")

WORKSPACES = "mcp list_workspaces {}"


async def results(house: Kandev, session_id: str) -> list[dict[str, Any]]:
    """What the agent got from its tools."""
    lines = await said(house, session_id)
    return [json.loads(line.removeprefix("mcp-result ")) for line in lines if line.startswith("mcp-result")]


async def workspaces(house: Kandev, session_id: str) -> list[str]:
    """The names that the agent's one call answered."""
    (result,) = await results(house, session_id)
    return [one["name"] for one in result["structuredContent"]["workspaces"]]


def waits_for_an_answer(agent: int) -> bool:
    """It has a TCP connection: the mock agent opens one for each request to its tools."""
    lines = Path(f"/proc/{agent}/net/tcp").read_text().splitlines()[1:]
    established = {f"socket:[{line.split()[9]}]" for line in lines if line.split()[3] == "01"}
    return any(str(file.readlink()) in established for file in Path(f"/proc/{agent}/fd").iterdir())


async def test_an_agent_lists_the_workspaces_by_its_tools(house: Kandev) -> None:
    _, session_id = await house.session(WORKSPACES)
    async with house.watching(session_id) as events:
        await turns_over(events)
    assert await workspaces(house, session_id) == ["Default"]


async def test_what_a_tool_does_not_know_is_a_result_that_names_it(house: Kandev) -> None:
    """An identity is none of its arguments: whoever sends one hears so."""
    _, session_id = await house.session('mcp list_workspaces {"session_id": "another"}\nmcp no_such_tool {}')
    async with house.watching(session_id) as events:
        await turns_over(events)
    unknown, missing = await results(house, session_id)
    assert unknown["isError"]
    assert unknown["content"][0]["text"] == "[VALIDATION_ERROR] Unknown field `session_id`."
    assert "There is no tool" in missing["error"]["message"]


async def test_an_agent_without_http_gets_the_bridge_which_ends_with_it(house: Kandev) -> None:
    mine = await profile(house, env={"MOCK_AGENT_START": "nohttp"})
    _, session_id = await house.session(f"{WORKSPACES}\nsay done\nsleep 600", agent_profile_id=mine)
    async with house.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "done")
    assert await workspaces(house, session_id) == ["Default"]
    (bridge,) = [pid for pid in marked(session_id) if "mcp-bridge" in command_of(pid)]
    token = environment_of(bridge)["KANDEV_MCP_TOKEN"]
    assert not [pid for pid in marked(session_id) if token in command_of(pid)]
    await house.call("session.stop", {"session_id": session_id})
    await nothing_left(session_id)
    assert not alive(bridge)


@pytest.mark.parametrize("start", ["tools", "tools, nohttp"])
async def test_an_agent_may_use_its_tools_before_its_conversation_stands(house: Kandev, start: str) -> None:
    mine = await profile(house, env={"MOCK_AGENT_START": start})
    _, session_id = await house.session(WORKSPACES, agent_profile_id=mine)
    async with house.watching(session_id) as events:
        await turns_over(events)
    assert await workspaces(house, session_id) == ["Default"]


@pytest.mark.proves("SURVIVE-backend-kill")
async def test_a_call_that_is_open_when_the_backend_is_killed_is_answered_by_the_next_one(
    kandev: Kandev,
) -> None:
    _, session_id = await kandev.session(f"say hello\nsleep 0.5\n{WORKSPACES}")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    assert kandev.process is not None
    kandev.process.send_signal(signal.SIGSTOP)
    (agent,) = marked(session_id)
    await until_true(lambda: waits_for_an_answer(agent), "the call is on its way")
    await kandev.kill()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    assert marked(session_id) == [agent]
    assert await workspaces(kandev, session_id) == ["Default"]


async def test_a_call_that_is_made_while_no_backend_runs_is_held(kandev: Kandev) -> None:
    _, session_id = await kandev.session(f"say hello\nsleep 1\n{WORKSPACES}")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    (agent,) = marked(session_id)
    await kandev.stop()
    await until_true(lambda: waits_for_an_answer(agent), "the call was made")
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    assert await workspaces(kandev, session_id) == ["Default"]


async def test_a_call_that_no_backend_takes_in_time_fails_in_words(tmp_path: Path) -> None:
    async with Kandev(tmp_path / "home", {"KANDEV_MCP_HOLD_S": "1"}) as kandev:
        _, session_id = await kandev.session(f"{WORKSPACES}\nsay hello\nsleep 1\n{WORKSPACES}\nsay over")
        async with kandev.watching(session_id) as events:
            await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
        (agent,) = marked(session_id)
        await kandev.kill()
        await until_true(lambda: waits_for_an_answer(agent), "the call was made")
        await until_true(lambda: not waits_for_an_answer(agent), "it was answered")
        await kandev.start()
        async with kandev.watching(session_id) as events:
            await turns_over(events)
        _, failed = await results(kandev, session_id)
        assert "content" in failed, failed
        assert failed["content"][0]["text"].startswith("[INTERNAL_ERROR] Kandev's backend was away for 1 s")
        assert (await get(kandev, session_id))["state"] == "WAITING_FOR_INPUT"

"""Behind the answer to a cancel or a stop nothing more is asked of an agent, done for it, or shown."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kandev.agentctl.mock_agent.script import prompt_text
from tests.e2e.kandev import Kandev
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    get,
    marked,
    nothing_left,
    nth,
    profile,
    said,
    turns_over,
)

TOILER = [sys.executable, str(Path(__file__).with_name("toiler.py"))]


async def tool_calls(house: Kandev, session_id: str) -> int:
    """How many the transcript shows."""
    return sum(message["type"] == "tool_call" for message in await house.messages(session_id))


def prompts(wire: Path) -> list[str]:
    """What the agent got to do, in order."""
    frames = [json.loads(json.loads(line)["line"]) for line in wire.read_text().splitlines() if '"<"' in line]
    return [prompt_text(f["params"]["prompt"]) for f in frames if f.get("method") == "session/prompt"]


WAYS: dict[str, dict[str, Any]] = {
    "agent.cancel": {},
    "session.stop": {},
    "orchestrator.stop": {"task": True},
    "task.archive": {"task": True},
}


@pytest.mark.field("A07", "B27", "C05", "C35")
@pytest.mark.parametrize("way", WAYS)
async def test_no_prompt_reaches_the_agent_any_more(house: Kandev, tmp_path: Path, way: str) -> None:
    wire = tmp_path / "wire.jsonl"
    logged = await profile(house, env={"MOCK_AGENT_LOG": str(wire)})
    task_id, session_id = await house.session("stream 5000 5", agent_profile_id=logged)
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        for word in ("one", "two"):
            await add(house, task_id, session_id, f"say {word}")
        named = "id" if way == "task.archive" else "task_id"
        await house.call(way, {named: task_id} if WAYS[way] else {"session_id": session_id})
        before = await house.messages(session_id)
        if way == "agent.cancel":
            await house.call("session.stop", {"session_id": session_id})
            before = await house.messages(session_id)
        await nothing_left(session_id)
    assert prompts(wire) == ["stream 5000 5"]
    assert await house.messages(session_id) == before
    assert (await get(house, session_id))["queue"]["count"] == 2


@pytest.mark.field("A43", "A07")
@pytest.mark.parametrize("deed", ["toil", "toil-on"])
async def test_no_tool_call_is_shown_behind_the_answer_to_a_stop(house: Kandev, deed: str) -> None:
    toiler = await profile(house, TOILER)
    _, session_id = await house.session(deed, agent_profile_id=toiler)
    async with house.watching(session_id) as events:
        await nth(events, "session.message.added", 10)
        await house.call("session.stop", {"session_id": session_id})
        counted = await tool_calls(house, session_id)
        await nothing_left(session_id)
    assert counted > 0 and await tool_calls(house, session_id) == counted


@pytest.mark.field("A43", "A15", "D13")
async def test_an_agent_that_toils_on_under_a_cancel_is_ended_and_its_late_calls_are_dropped(
    house: Kandev,
) -> None:
    toiler = await profile(house, TOILER)
    task_id, session_id = await house.session("toil", agent_profile_id=toiler)
    async with house.watching(session_id) as events:
        await nth(events, "session.message.added", 10)
        assert (await house.call("agent.cancel", {"session_id": session_id}))["success"] is False
        counted = await tool_calls(house, session_id)
        ended = await turns_over(events)
        assert ended["cause"] == "user" and not marked(session_id)
        assert await tool_calls(house, session_id) == counted
        assert (await add(house, task_id, session_id, "say hello"))["status"] == "sent"
        assert (await turns_over(events, 2))["execution_id"] != ended["execution_id"]
    assert (await said(house, session_id))[-1] == "hello"


@pytest.mark.field("A43", "B49")
async def test_an_agent_that_answers_a_cancel_and_toils_on_is_seen_to_do_so_and_can_be_ended(
    house: Kandev,
) -> None:
    toiler = await profile(house, TOILER)
    _, session_id = await house.session("toil-on", agent_profile_id=toiler)
    async with house.watching(session_id) as events:
        await nth(events, "session.message.added", 10)
        assert (await house.call("agent.cancel", {"session_id": session_id}))["success"] is True
        assert (await turns_over(events))["cause"] == "user"
        own = await nth(events, "session.turn.started", 2)
        assert (own["prompt_generation"], bool(own["own_turn_id"])) == (0, True)
        assert (await get(house, session_id))["state"] == "RUNNING", "it works, and it is said"
        assert (await house.call("agent.cancel", {"session_id": session_id}))["success"] is False
        await turns_over(events, 2)
        assert not marked(session_id)


@pytest.mark.field("A09")
async def test_a_cancel_bounds_a_command_that_the_agent_has_us_run(house: Kandev) -> None:
    toiler = await profile(house, TOILER)
    _, session_id = await house.session("run 600", agent_profile_id=toiler)
    async with house.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["type"] == "tool_call")
        processes = marked(session_id)
        assert len(processes) == 2, "the agent and its command"
        answer = await house.call("agent.cancel", {"session_id": session_id})
        assert answer["error"] == "cancel timed out, still under way"
        assert (await turns_over(events))["cause"] == "user"
        assert not [pid for pid in processes if alive(pid)]
        assert (await get(house, session_id))["state"] == "WAITING_FOR_INPUT"


@pytest.mark.field("A25", "B21")
async def test_a_message_waits_behind_a_turn_that_is_still_being_cancelled(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nlate 0.6")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        cancel = asyncio.create_task(house.call("agent.cancel", {"session_id": session_id}))
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        message = asyncio.create_task(add(house, task_id, session_id, "say next"))
        await events.until("message.queue.status_changed", lambda p: p["count"] == 1)
        during = await get(house, session_id)
        assert (during["state"], during["cancellation_pending"]) == ("RUNNING", True)
        assert not message.done()
        first = await turns_over(events)
        assert ((await cancel)["success"], (await message)["status"]) == (True, "sent")
        second = await turns_over(events, 2)
    assert (first["cause"], second["cause"]) == ("user", "agent")
    assert first["execution_id"] == second["execution_id"], "it obeyed, and goes on"
    assert await said(house, session_id) == ["hello", "next"]

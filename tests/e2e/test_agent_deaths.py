"""An agent that dies: its turn ends and says how, and another one goes on with the conversation."""

import os
import signal
from collections.abc import Callable
from functools import partial

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import add, agent_spoke, alive, get, marked, profile, said, turns_over, until_true

pytestmark = pytest.mark.proves("SURVIVE-agent-death")

LOUD = 'for n in 1 2 3 4 5 6 7 8 9; do echo "line $n" >&2; done; exec "$0" "$@"'
LAST_WORDS = "\nline 5\nline 6\nline 7\nline 8\nline 9"


async def loud(kandev: Kandev) -> str:
    """A profile whose agent says nine lines on stderr, and then is the mock agent."""
    mock = (await kandev.call("agent.profile.list"))["profiles"][0]["command"]
    return await profile(kandev, ["/bin/sh", "-c", LOUD, *mock])


def killed_by(number: signal.Signals) -> Callable[[int], None]:
    return partial(lambda number, pid: os.kill(pid, number), number)


@pytest.mark.field("B41")
@pytest.mark.parametrize(
    ("line", "kill", "code"),
    [
        ("exit 3", None, 3),
        ("exit 0", None, 0),
        ("crash", None, -9),
        ("sleep 600", killed_by(signal.SIGKILL), -9),
        ("sleep 600", killed_by(signal.SIGSEGV), -11),
        ("sleep 600", killed_by(signal.SIGTERM), 143),
    ],
    ids=["exit", "exit-0", "crash", "killed-by-the-system", "segmentation-fault", "terminated"],
)
async def test_a_death_in_mid_turn_is_in_the_chat_with_exit_code_and_last_stderr_lines(
    house: Kandev, line: str, kill: Callable[[int], None] | None, code: int
) -> None:
    task_id, session_id = await house.session(
        f"say hello\nspawn 600\n{line}", agent_profile_id=await loud(house)
    )
    async with house.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"].startswith("pid "))
        if kill is not None:
            kill(min(marked(session_id)))
        ended = await turns_over(events)
        assert ended["cause"] == "process"
        assert f"exit code {code}" in ended["error"]
        await events.state("WAITING_FOR_INPUT")
        (told,) = [m for m in await house.messages(session_id) if m["type"] == "error"]
        assert told["content"] == f"The agent's process ended (exit code {code}).{LAST_WORDS}"
        assert told["metadata"]["exit_code"] == code
        assert told["metadata"]["stderr_tail"][-9:] == [f"line {n}" for n in range(1, 10)]
        assert not marked(session_id), "its child went with it"
        assert "execution" not in await get(house, session_id)
        await add(house, task_id, session_id, "recall")
        again = await turns_over(events, 2)
        assert again["execution_id"] != ended["execution_id"]
    assert (await said(house, session_id))[-1] == f"recall: say hello / spawn 600 / {line}"


async def test_an_idle_agent_that_dies_leaves_a_session_that_takes_the_next_message(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello")
    async with house.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
        (agent,) = marked(session_id)
        os.kill(agent, signal.SIGKILL)
        await events.until("session.updated", lambda p: "execution" not in p["session"])
        assert (await get(house, session_id))["state"] == "WAITING_FOR_INPUT"
        with pytest.raises(CallFailed) as refused:
            await house.call("agent.cancel", {"session_id": session_id})
        assert refused.value.message == "agent not running"
        await add(house, task_id, session_id, "recall")
        await turns_over(events, 2)
    assert await said(house, session_id) == ["hello", "recall: say hello"]


async def test_an_agent_that_dies_with_a_permission_open_closes_it(house: Kandev) -> None:
    _, session_id = await house.session("say hello\nask Go on")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        os.kill(min(marked(session_id)), signal.SIGKILL)
        assert (await turns_over(events))["cause"] == "process"
        answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": "allow_once"}
        with pytest.raises(CallFailed) as late:
            await house.call("permission.respond", answer)
        assert late.value.code in ("CONFLICT", "NOT_FOUND")
        session = await get(house, session_id)
        assert (session["state"], session.get("waiting_for")) == ("WAITING_FOR_INPUT", None)


async def test_an_agent_that_dies_while_its_turn_is_cancelled_ends_it_as_cancelled(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nlate 600")
    async with house.watching(session_id) as events, house.events() as caller:
        await agent_spoke(events)
        await add(house, task_id, session_id, "say queued")
        await caller.send("agent.cancel", {"session_id": session_id})
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        (agent,) = marked(session_id)
        os.kill(agent, signal.SIGKILL)
        ended = await turns_over(events)
        assert ended["cause"] == "user"
        await until_true(lambda: not alive(agent), "it is gone")
        session = await get(house, session_id)
        assert (session["cancellation_pending"], session["parked_reason"]) == (False, "cancelled by a person")
    assert await said(house, session_id) == ["hello"]


async def test_a_helper_that_dies_is_the_agents_own_matter(house: Kandev) -> None:
    _, session_id = await house.session("spawn 600\nask Go on\nsay done")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        child = int((await said(house, session_id))[0].removeprefix("pid "))
        os.kill(child, signal.SIGKILL)
        await until_true(lambda: not alive(child), "it is gone")
        answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": "allow_once"}
        await house.call("permission.respond", answer)
        assert (await turns_over(events))["cause"] == "agent"
    assert (await said(house, session_id))[-1] == "done"

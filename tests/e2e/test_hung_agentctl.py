"""An agentctl that hangs: Stop and Cancel answer all the same, and nothing starts beside what may run."""

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    get,
    marked,
    said,
    turns_over,
    until_holds,
    until_true,
)

pytestmark = pytest.mark.proves("SURVIVE-agentctl-hangs", "INV-8")

HURRIED = {
    "KANDEV_AGENTCTL_CALL_S": "1",
    "KANDEV_PROMPT_ACCEPT_S": "1",
    "KANDEV_TEARDOWN_S": "3",
    "KANDEV_MESSAGE_ANSWER_S": "1",
}


@pytest.fixture
async def kandev(tmp_path: Path) -> AsyncIterator[Kandev]:
    async with Kandev(tmp_path / "home", HURRIED) as running:
        yield running


@contextmanager
def hanging(kandev: Kandev) -> Iterator[None]:
    """agentctl does nothing inside the block, and goes on behind it."""
    pid = kandev.agentctl_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


async def sentence(kandev: Kandev, session_id: str) -> str:
    return str((await kandev.call("session.explain", {"session_id": session_id}))["sentence"])


async def test_a_stop_is_answered_and_nothing_starts_beside_what_is_not_proven_gone(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        (agent,) = marked(session_id)
        with hanging(kandev):
            await kandev.call("session.stop", {"session_id": session_id})
            assert (await get(kandev, session_id))["state"] == "CANCELLED"

            async def given_up() -> bool:
                return "not proven gone" in await sentence(kandev, session_id)

            await until_holds(given_up, "it is said")
            with pytest.raises(CallFailed) as refused:
                await kandev.call("session.recover", {"session_id": session_id})
            assert refused.value.code == "CONFLICT" and "not proven gone" in refused.value.message
            assert marked(session_id) == [agent]
        await until_true(lambda: not alive(agent), "agentctl goes on, and ends it")

        async def proven() -> bool:
            return "not proven gone" not in await sentence(kandev, session_id)

        await until_holds(proven, "it is proven gone")
        await kandev.call("session.recover", {"session_id": session_id})
        await add(kandev, task_id, session_id, "recall")
        await turns_over(events, 2)
    assert (await said(kandev, session_id))[-1] == "recall: say hello / sleep 600"


async def test_a_cancel_is_answered_and_the_turn_ends_when_agentctl_goes_on(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        (agent,) = marked(session_id)
        with hanging(kandev):
            answer = await kandev.call("agent.cancel", {"session_id": session_id})
            assert (answer["success"], answer["error"]) == (False, "cancel timed out, still under way")
            assert (await turns_over(events))["cause"] == "user", (
                "claimed, when it could not be proven in time"
            )
            sent = await add(kandev, task_id, session_id, "recall")
            assert sent["status"] == "queued"
            assert marked(session_id) == [agent], "nothing is started beside it"
        await turns_over(events, 2)
        assert not alive(agent)
    assert (await said(kandev, session_id))[-1] == "recall: say hello / sleep 600"


@pytest.mark.proves("MESSAGE-one-fate", "INV-2")
async def test_a_message_that_met_a_hanging_agentctl_has_one_fate(kandev: Kandev) -> None:
    """The prompt was on its way when it was given up: it arrived, or it did not, and that is what is told."""
    task_id, session_id = await kandev.session("say hello")
    async with kandev.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
        with hanging(kandev):
            sent = await add(kandev, task_id, session_id, "say once")
            assert sent["status"] == "queued", "nobody waits longer than the setting"
            gave_up = "The agent took no prompt in time"
            await events.until("session.message.added", lambda p: gave_up in p["message"]["content"])
        await turns_over(events, 2)
        fate = (await kandev.call("message.status", {"entry_id": sent["entry_id"]}))["state"]
        assert fate in ("delivered", "queued")
        if fate == "queued":
            assert (await get(kandev, session_id))["parked_reason"]
            assert "once" not in await said(kandev, session_id)
        await add(kandev, task_id, session_id, "say last")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "last")
        await turns_over(events, 3 if fate == "delivered" else 4)
    words = await said(kandev, session_id)
    assert words.count("once") == 1 or (fate == "delivered" and "once" not in words)
    assert words.count("last") == 1


async def test_one_that_is_killed_while_it_hangs_is_replaced(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        os.kill(kandev.agentctl_pid(), signal.SIGSTOP)
        await kandev.call("session.stop", {"session_id": session_id})
        os.kill(kandev.agentctl_pid(), signal.SIGKILL)
        assert (await turns_over(events))["cause"] == "stopped"
        await until_true(lambda: not marked(session_id), "nothing of it is left")
        await kandev.call("session.recover", {"session_id": session_id})
        await add(kandev, task_id, session_id, "recall")
        await turns_over(events, 2)
    assert (await said(kandev, session_id))[-1] == "recall: say hello / sleep 600"

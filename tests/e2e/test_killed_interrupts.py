"""`kill -9` in the middle of an interrupt: the message has one fate, and the child hears it once."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.parents import Parent, family, succeeded
from tests.e2e.scenes import (
    add,
    alive,
    get,
    marked,
    nothing_left,
    profile,
    said,
    until_holds,
    until_true,
)

pytestmark = pytest.mark.proves(
    "MCP-message-task", "SURVIVE-backend-kill", "SURVIVE-agentctl-kill", "SURVIVE-agent-death", "INV-8"
)
PATIENCE_S = 3
"""The child may take so long to end its turn: the kill is in the middle of that."""
CHILDREN = {
    "late": "say hello\nlate 1.5",
    "deaf": "stubborn\nspawn 600\nsay hello\ndeaf 600",
}
KILLS = [
    ("backend", "late"),
    ("backend", "deaf"),
    ("agentctl", "late"),
    ("agentctl", "deaf"),
    ("both", "deaf"),
    ("agent", "late"),
    ("sender", "late"),
]


class Killed:
    """Who is killed; the backend runs afterwards."""

    @staticmethod
    async def backend(kandev: Kandev, child: str, parent: str) -> None:
        await kandev.kill()
        await kandev.start()

    @staticmethod
    async def agentctl(kandev: Kandev, child: str, parent: str) -> None:
        os.kill(kandev.agentctl_pid(), signal.SIGKILL)

    @staticmethod
    async def both(kandev: Kandev, child: str, parent: str) -> None:
        os.kill(kandev.agentctl_pid(), signal.SIGKILL)
        await Killed.backend(kandev, child, parent)

    @staticmethod
    async def agent(kandev: Kandev, child: str, parent: str) -> None:
        for pid in marked(child):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    async def sender(kandev: Kandev, child: str, parent: str) -> None:
        await Killed.agent(kandev, parent, child)


async def idle(kandev: Kandev, session_id: str) -> bool:
    session = await get(kandev, session_id)
    return session["state"] == "WAITING_FOR_INPUT" and not session["cancellation_pending"]


async def fate(kandev: Kandev, session_id: str, entry: str) -> str:
    """What the door says, which the transcript and the queue bear out."""
    state = str((await kandev.call("message.status", {"entry_id": entry}))["state"])
    queue = await kandev.call("message.queue.get", {"session_id": session_id})
    waiting = [one["id"] for one in queue["entries"]].count(entry)
    shown = (await said(kandev, session_id, "user")).count("say now")
    assert (state, waiting, shown) in (("queued", 1, 0), ("delivered", 0, 1)), "one of both"
    return state


@pytest.mark.proves("RACE-I14")
@pytest.mark.parametrize(("who", "how"), KILLS)
async def test_whoever_is_killed_in_the_middle_of_an_interrupt_its_message_has_one_fate(
    kandev: Kandev, who: str, how: str
) -> None:
    script = CHILDREN[how]
    agent = await profile(kandev, cancel_acknowledge_s=PATIENCE_S)
    parent, child, session_id = await family(kandev, script, agent_profile_id=agent)
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
        old, begun = marked(session_id), len(events.seen)
        message = {"task_id": child, "prompt": "say now", "delivery_mode": "interrupt"}
        await parent.begins("message_task", **message)
        await events.until("message.queue.status_changed", lambda p: p["count"] == 1, after=begun)
        queue = await kandev.call("message.queue.get", {"session_id": session_id})
        (entry,) = [one["id"] for one in queue["entries"]]
    await getattr(Killed, who)(kandev, session_id, parent.session_id)
    await until_holds(lambda: idle(kandev, session_id), "the child's turns are over")
    state = await fate(kandev, session_id, entry)
    if who == "backend":
        assert state == "delivered"
        status = succeeded(await parent.result())["status"]
        assert status in ("sent", "queued"), "the call that came again was told what was true then"
    await add(kandev, child, session_id, "say after")
    await until_holds(lambda: heard(kandev, session_id, "now", "after"), "it hears both")
    await until_holds(lambda: idle(kandev, session_id), "and waits")
    assert await fate(kandev, session_id, entry) == "delivered"
    if how == "deaf":
        await until_true(lambda: not [pid for pid in old if alive(pid)], "nothing of the first is left")
    await leaves_nothing(kandev, parent, session_id)


async def heard(kandev: Kandev, session_id: str, *words: str) -> bool:
    lines = await said(kandev, session_id)
    assert all(lines.count(word) <= 1 for word in words), lines
    return all(word in lines for word in words)


async def leaves_nothing(kandev: Kandev, parent: Parent, session_id: str) -> None:
    """A stop of both; the parent may have no process any more."""
    await kandev.call("session.stop", {"session_id": session_id})
    if "execution" in await get(kandev, parent.session_id):
        await kandev.call("session.stop", {"session_id": parent.session_id})
    for name in (session_id, parent.session_id):
        await nothing_left(name)

"""A session with an agent that misbehaves at one step, and the end that each of them must come to."""

import asyncio
import contextlib
import sys
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.kandev import CallFailed, Events, Kandev
from tests.e2e.scenes import add, get, marked, profile, said, turns_over, until_holds, until_true

AGENT = Path(__file__).with_name("stepping.py")
STARTING = ("initialize", "authenticate", "session/new")
IN_TURN = ("taken", "output", "tool", "permission")
LARGE = "step " + "x" * 300_000
"""More than a pipe holds: it is not taken before the agent has read it."""
WORDS = "last words at"
QUICK = {
    "KANDEV_LAUNCH_S": "4",
    "KANDEV_AGENTCTL_WRITE_S": "1.5",
    "KANDEV_MESSAGE_ANSWER_S": "8",
}


@dataclass
class Case:
    """One session and its agent. `events` are followed from the session's beginning."""

    house: Kandev
    task_id: str
    session_id: str
    events: Events
    turns: int = 0

    async def say(self, text: str) -> dict[str, Any]:
        """`message.add`."""
        return await add(self.house, self.task_id, self.session_id, text)

    async def turn_over(self) -> dict[str, Any]:
        """The next turn's end."""
        self.turns += 1
        return await turns_over(self.events, self.turns)

    async def cancel(self) -> dict[str, Any]:
        """`agent.cancel`."""
        return await self.house.call("agent.cancel", {"session_id": self.session_id})

    async def heard(self, text: str) -> None:
        """Until the agent has said it."""
        await until_holds(lambda: self._said(text), f"the agent says {text!r}")

    async def _said(self, text: str) -> bool:
        return any(text in words for words in await said(self.house, self.session_id))

    async def errors(self) -> list[str]:
        """Kandev's lines about what went wrong."""
        return await said(self.house, self.session_id, "system", "error")

    async def state(self) -> str:
        """Of the session."""
        return str((await get(self.house, self.session_id))["state"])

    async def until_state(self, state: str) -> None:
        """As it is now, or will be."""
        await until_holds(lambda: self._is(state), f"it is {state}")

    async def _is(self, state: str) -> bool:
        return await self.state() == state

    async def until_gone(self) -> None:
        """No process of it is left, and nobody waits for anything of it."""
        await until_true(lambda: not marked(self.session_id), "its processes are gone")
        await until_holds(self._rests, "nothing is under way")

    async def _rests(self) -> bool:
        explained = await self.house.call("session.explain", {"session_id": self.session_id})
        return explained["under_way"] == [] and "execution" not in explained

    async def answers_the_next_message(self) -> None:
        """The session is promptable: a new process takes what is said, in the same conversation."""
        assert (await self.say("hello"))["status"] in ("sent", "queued")
        await self.heard("hello done")
        await self.until_state("WAITING_FOR_INPUT")


@contextlib.asynccontextmanager
async def case(house: Kandev, how: str, step: str, **launch: Any) -> AsyncIterator[Case]:
    """With an agent that has answered its first message, or does not come up to it."""
    done = house.home / f"done-{uuid.uuid4().hex}"
    wish: dict[str, Any] = {"auth_method": "key"} if step == "authenticate" else {}
    wish |= {"model": "m"} if step == "session/set_model" else {}
    chosen = await profile(house, [sys.executable, str(AGENT), how, step, str(done)], **wish)
    task_id, session_id = await house.session("first", agent_profile_id=chosen, **launch)
    async with house.watching(session_id) as events:
        yield Case(house, task_id, session_id, events)


async def unless_unknown(asking: "asyncio.Task[dict[str, Any]]") -> str:
    """What the sender of a message heard: its status, or `unknown`."""
    try:
        return str((await asking)["status"])
    except CallFailed as failed:
        assert failed.error["details"]["error"] == "delivery_unknown", failed
        return "unknown"

"""A session and its running turn: what is said, what a cancel does. No protocol methods, no commands."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from kandev.agentctl.mock_agent.mcp_client import Toolbox
from kandev.agentctl.mock_agent.memory import Entry, Memory
from kandev.agentctl.mock_agent.rpc import Connection, Json

MODES: Json = {
    "currentModeId": "default",
    "availableModes": [{"id": "default", "name": "Default"}, {"id": "plan", "name": "Plan"}],
}


def new_id(prefix: str) -> str:
    """An id that no other process makes."""
    return f"{prefix}-{os.urandom(6).hex()}"


class Turn:
    """One prompt's run: which cancels it sees, and when it saw one."""

    def __init__(self) -> None:
        self.lost_cancels = 0
        self.deaf = False
        self.echo_after = 0
        self._cancelled = asyncio.Event()

    @property
    def cancelled(self) -> bool:
        """Whether a cancel has been seen."""
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """A cancel has arrived: it is seen, unless it is to be lost or the turn is deaf."""
        if self.lost_cancels:
            self.lost_cancels -= 1
        elif not self.deaf:
            self._cancelled.set()

    async def wait(self, seconds: float) -> None:
        """Wait so long, or until a cancel is seen. Lets others run even when there is nothing to wait for."""
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(seconds):
                await self._cancelled.wait()
        except TimeoutError:
            return

    async def wait_for_cancel(self) -> None:
        """Wait until a cancel is seen."""
        await self._cancelled.wait()


class Session:
    """One conversation: its memory, its tool servers, and the turn that runs, if one does."""

    def __init__(self, session_id: str, cwd: Path, memory: Memory, toolbox: Toolbox) -> None:
        self.id = session_id
        self.cwd = cwd
        self.memory = memory
        self.toolbox = toolbox
        self.turn: Turn | None = None
        self._idle = asyncio.Event()
        self._idle.set()

    def begin(self) -> Turn:
        """Start a turn; the caller has looked that none runs."""
        self.turn = Turn()
        self._idle.clear()
        return self.turn

    def end(self) -> None:
        """The turn is over: the next prompt may come."""
        self.turn = None
        self._idle.set()

    async def until_idle(self) -> None:
        """Wait until no turn runs."""
        while self.turn is not None:
            await self._idle.wait()

    async def update(self, connection: Connection, update: Json) -> None:
        """Send one `session/update`."""
        await connection.notify("session/update", {"sessionId": self.id, "update": update})

    async def chunk(self, connection: Connection, kind: str, message_id: str, text: str) -> None:
        """Send one text chunk: `kind` is `agent_message_chunk` and the like."""
        content = {"type": "text", "text": text}
        await self.update(connection, {"sessionUpdate": kind, "messageId": message_id, "content": content})

    async def say(self, connection: Connection, text: str) -> None:
        """Send one whole message of the agent, of an id of its own, and remember it."""
        message_id = new_id("msg")
        self.memory.add(Entry("agent", text, message_id))
        await self.chunk(connection, "agent_message_chunk", message_id, text)

    async def replay(self, connection: Connection) -> None:
        """Send the whole conversation, as `session/load` does before its reply."""
        for entry in list(self.memory.entries):
            await self.chunk(connection, f"{entry.role}_message_chunk", entry.message_id, entry.text)

"""A session's queue at the public doors, in short words. Not here: the tests, and fixtures that make one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.gateway.house import WAIT_S, House


@dataclass
class Line:
    """A session, and short ways to ask for its queue."""

    house: House
    task: str
    session: str

    async def ok(self, action: str, **payload: Any) -> dict[str, Any]:
        return await self.house.ok(f"message.queue.{action}", session_id=self.session, **payload)

    async def refused(self, action: str, code: str, **payload: Any) -> str:
        return await self.house.refused(f"message.queue.{action}", code, session_id=self.session, **payload)

    async def add(self, content: str, **more: Any) -> str:
        """The entry's id."""
        return str((await self.ok("add", content=content, **more))["entry_id"])

    async def waiting(self) -> list[str]:
        """What waits, in order, as text."""
        return [entry["content"] for entry in (await self.ok("get"))["entries"]]

    async def fate(self, entry: str) -> dict[str, Any]:
        found = await self.house.ok("message.status", entry_id=entry)
        found.pop("at")
        return found

    async def heard(self) -> list[str]:
        """What people and programs said to the agent, in order."""
        messages = (await self.house.ok("message.list", session_id=self.session))["messages"]
        return [m["content"] for m in messages if m["author_type"] == "user"]

    async def until(self, reached: Callable[[list[str]], bool]) -> list[str]:
        """What was said, as soon as it is enough."""
        async with asyncio.timeout(WAIT_S):
            while not reached(said := await self.heard()):
                await asyncio.sleep(0.01)
            return said

    async def cancelled(self) -> None:
        await self.house.ok("agent.cancel", session_id=self.session)
        await self.house.until(self.session, "WAITING_FOR_INPUT")

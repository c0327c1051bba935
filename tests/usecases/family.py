"""A task and those around it, each with an agent, and calls of tools in their names.

Not here: the tests; the backend stands in `tests.gateway.house`.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import select

from kandev.mcp.actions import call_tool, dispatch_mcp
from kandev.mcp.caller import Caller
from kandev.mcp.failures import CODES
from kandev.ports.store import Tx
from kandev.storage.sql.tables import metadata
from kandev.storage.sql.tx import SqlTx
from tests.gateway.house import WAIT_S, House

WORKING = "sleep 30"


@dataclass
class Member:
    """A task with a session, and the caller that its agent is."""

    task: dict[str, Any]
    session_id: str

    @property
    def id(self) -> str:
        return str(self.task["id"])

    def calling(self, call_id: str = "") -> Caller:
        return Caller(self.id, self.session_id, f"{self.session_id}.1", call_id)


@dataclass
class Family:
    """All in one workspace."""

    house: House
    board: dict[str, str]
    calls: int = field(default=0)

    async def member(self, prompt: str = WORKING, parent: Member | None = None, **more: Any) -> Member:
        """Whose agent is at work, or has done it."""
        above = {"parent_id": parent.id} if parent else {}
        task, session_id = await self.house.started(prompt, **{**self.board, **above, **more})
        await self.house.until(session_id, "RUNNING" if prompt == WORKING else "WAITING_FOR_INPUT")
        return Member(task, session_id)

    async def asking(self, parent: Member) -> Member:
        """A child whose turn goes on until a permission is given (`allow`)."""
        task, session_id = await self.house.started("ask May I?", **self.board, parent_id=parent.id)
        async with asyncio.timeout(WAIT_S):
            while (await self.house.until(session_id, "RUNNING")).get("waiting_for") != "permission":
                await asyncio.sleep(0.01)
        return Member(task, session_id)

    async def allow(self, who: Member) -> None:
        """What its agent asks for."""
        listed = await self.house.ok("message.list", session_id=who.session_id)
        (asked,) = [m["metadata"] for m in listed["messages"] if m["type"] == "permission_request"]
        option = asked["options"][0]["option_id"]
        given = {"request_id": asked["request_id"], "option_id": option}
        await self.house.ok("permission.respond", session_id=who.session_id, **given)

    async def call(
        self, who: Member, tool: str, call_id: str | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """By the tool, as the server calls it."""
        self.calls += 1
        caller = who.calling(f"call-{self.calls}" if call_id is None else call_id)
        return await call_tool(self.house.ctx, caller, f"{tool}_kandev", arguments)

    async def gone(self, session_id: str) -> None:
        """Its process has ended, and agentctl was told to forget it."""
        async with asyncio.timeout(WAIT_S):
            while any(id.startswith(session_id) for id in self.house.world.executions):
                await asyncio.sleep(0.01)
        assert await self.house.ctx.sessions.gone(session_id, WAIT_S)

    async def refused(self, who: Member, tool: str, **arguments: Any) -> str:
        """`CODE sentence` of a call that must be refused, by tool and in this process alike, and has changed
        nothing at all."""
        before = await self.everything()
        said = [await self._failure(self.call(who, tool, **arguments))]
        if tool == "message_task":
            sender = {"sender_task_id": who.id, "sender_session_id": who.session_id}
            arguments = {**arguments, **sender}
        action = dispatch_mcp(self.house.ctx, who.calling("in-process"), f"mcp.{tool}", arguments)
        said.append(await self._failure(action))
        assert said[0] == said[1], "the same answer by tool call and in this process"
        assert await self.everything() == before, "a refused call changes nothing"
        return said[0]

    @staticmethod
    async def _failure(call: Any) -> str:
        try:
            answer = await call
        except Exception as error:  # noqa: BLE001 - whatever it is
            code = next((code for kind, code in CODES if isinstance(error, kind)), None)
            assert code is not None, repr(error)
            details = getattr(error, "details", None)
            return f"{code} {error} {details or ''}".strip()
        raise AssertionError(f"It was not refused: {answer}")

    async def everything(self) -> Any:
        """The whole database, what was published, and every process."""

        def look(tx: Tx) -> dict[str, list[str]]:
            assert isinstance(tx, SqlTx)
            tables = metadata.sorted_tables
            return {t.name: sorted(map(repr, tx.connection.execute(select(t)))) for t in tables}

        world = self.house.world.executions
        processes = {id: (one.state, one.mark, one.turn) for id, one in world.items()}
        return await self.house.ctx.store.read(look), len(self.house.heard.all), processes

    async def conversation(self, who: Member) -> list[str]:
        """What its agent was told and said."""
        listed = await self.house.ok("message.list", session_id=who.session_id)
        return [m["content"] for m in listed["messages"] if m["type"] == "message"]


async def family(house: House) -> Family:
    workspace, workflow = await house.board()
    return Family(house, {"workspace_id": workspace, "workflow_id": workflow})


async def turns(house: House, who: Member) -> list[str]:
    """How its turns ended, oldest first; `active` for the one that goes on."""
    rows = await house.ctx.store.read(lambda tx: tx.turns.of_session(who.session_id))
    return [row.cause or row.state for row in rows]


async def waiting(house: House, who: Member) -> list[str]:
    queue = await house.ok("message.queue.get", session_id=who.session_id)
    return [entry["content"] for entry in queue["entries"]]

"""The official SDK's clients at an instance's real door, with Kandev's real server behind its lane.

The database behind it is a stub: who has which session is all that is asked.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from kandev.core.board import Task, Workspace
from kandev.core.session import Launch, Outcome
from kandev.execution.client import Client
from kandev.execution.lanes import Lanes
from kandev.mcp.server import AgentTools
from kandev.usecases.context import Context
from tests.agentctl.server.hosts import SOON, TOKEN, Host, host_in


class Rows(dict[str, Any]):
    """A table."""

    def list(self) -> list[Any]:
        return list(self.values())


def context(
    *, execution: str = "e1", launch: Launch = Launch.READY, outcome: Outcome = Outcome.OPEN
) -> Context:
    """Execution `e1` is of session `s1` of task `t1` in the workspace "Default". The session's present one is
    `execution`."""
    value = SimpleNamespace(execution=execution, launch=launch, outcome=outcome)
    own = Task("t1", "w1", "f1", "step", "A task", "", "TODO", "medium", 0, "now", "now")
    tx = SimpleNamespace(
        executions=Rows(e1=SimpleNamespace(session_id="s1")),
        sessions=Rows(s1=SimpleNamespace(id="s1", task_id="t1", value=value)),
        tasks=Rows(t1=own),
        workspaces=Rows(w1=Workspace("w1", "Default", "now", "now")),
    )

    async def read(f: Callable[[Any], Any]) -> Any:
        return f(tx)

    return cast(Context, SimpleNamespace(store=SimpleNamespace(read=read)))


@dataclass(eq=False)
class Call:
    """Implements `ports.tools.ToolCall`."""

    message: dict[str, Any]
    version: str | None = "2025-06-18"
    call_id: str = "c1"
    again: bool = False
    committed: bool = False
    sent: list[tuple[dict[str, Any], bool]] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    served: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def commit(self) -> None:
        self.committed = True

    async def send(self, message: dict[str, Any], last: bool) -> None:
        self.sent.append((message, last))

    @property
    def response(self) -> dict[str, Any]:
        message, last = self.sent[-1]
        assert last
        return message

    @property
    def text(self) -> str:
        return str(self.response["result"]["content"][0]["text"])


def tool_call(name: str = "list_workspaces_kandev", **arguments: Any) -> Call:
    params = {"name": name, "arguments": arguments}
    return Call({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})


@asynccontextmanager
async def door_of(folder: Path) -> AsyncIterator[Host]:
    """An instance `e1` whose calls Kandev's server answers."""
    tools = AgentTools()
    tools.begin(context())
    async with host_in(folder) as host:
        await host.create(mcp_mode="task")
        client = Client(host.url, TOKEN)
        client.epoch = host.epoch
        lanes = Lanes(tools, lambda: client, SOON)
        lanes.keep("e1")
        try:
            yield host
        finally:
            await lanes.close()
            await client.close()

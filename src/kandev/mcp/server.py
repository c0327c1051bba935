"""The MCP server of the agents: the official SDK's low-level server, one request at a time, without sessions.

Each call is a request with everything that belongs to it: a client's `initialize` leaves nothing behind, so a
backend that has just started serves clients that have been talking for hours. Who calls is known by the
execution. Not here: the tools (`tools`, `actions`), the SDK (`protocol`), how a call comes here
(`kandev.execution.lanes`).
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

import structlog

from kandev.core.errors import Conflict
from kandev.core.toolbox import MODES, Mode
from kandev.mcp.actions import call_tool
from kandev.mcp.caller import acting, find_caller, mode_of_caller
from kandev.mcp.failures import texts, told
from kandev.mcp.tools import tools_of
from kandev.ports.tools import ToolCall
from kandev.usecases.context import Context

if TYPE_CHECKING:
    from kandev.mcp.protocol import Protocol

log = structlog.get_logger(__name__)

CALLS: Final = 1000
"""Under way at once, of all agents."""
CALLS_OF_ONE: Final = 100
"""Of one execution."""
CROWDED: Final = (
    "[INTERNAL_ERROR] Too many tool calls are under way; wait for some of their answers, then call again."
)


class AgentTools:
    """Implements `ports.tools.Tools`. `begin` before the first call."""

    def __init__(self) -> None:
        self._ctx: Context | None = None
        self._loading: asyncio.Future[Mapping[Mode, Protocol]] | None = None
        self._under_way: Counter[str] = Counter()

    def begin(self, ctx: Context) -> None:
        """From now on calls are answered."""
        self._ctx = ctx

    async def handle(self, execution: str, call: ToolCall) -> None:
        """See `ports.tools.Tools`."""
        if self._under_way.total() >= CALLS or self._under_way[execution] >= CALLS_OF_ONE:
            await call.send(failure(call.message, CROWDED), last=True)
            return
        self._under_way[execution] += 1
        try:
            await self._while_wanted(call, self._answer(execution, call))
        finally:
            self._under_way[execution] -= 1
            if not self._under_way[execution]:
                del self._under_way[execution]

    @staticmethod
    async def _while_wanted(call: ToolCall, answer: Coroutine[Any, Any, None]) -> None:
        """Until it is answered, or its agent has left and nothing of it is committed."""
        work = asyncio.ensure_future(answer)
        left = asyncio.ensure_future(call.left.wait())
        try:
            await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and not call.committed:
                work.cancel()
            await asyncio.wait({work})
        finally:
            work.cancel()
            left.cancel()
            await asyncio.wait({work, left})

    async def _answer(self, execution: str, call: ToolCall) -> None:
        try:
            protocol = (await self._protocols())[await self._mode(execution, call)]
            answer = await protocol.answer(call, lambda name, given: self._call(execution, call, name, given))
        except Exception as error:  # noqa: BLE001 - around a request
            answer = failure(call.message, told(error, str(call.message.get("method"))))
        await call.send(answer, last=True)

    async def _mode(self, execution: str, call: ToolCall) -> Mode:
        """Which tools its agent has."""
        if (ctx := self._ctx) is None:
            raise Conflict("Kandev is starting; call again in a moment.")
        return await ctx.store.read(lambda tx: mode_of_caller(tx, find_caller(tx, execution, call.call_id)))

    async def _protocols(self) -> "Mapping[Mode, Protocol]":
        """The SDK takes half a second to load: not before an agent calls, and beside the event loop. What
        fails is tried again by the next call."""
        if self._loading is None or (self._loading.done() and self._loading.exception()):
            self._loading = asyncio.ensure_future(asyncio.to_thread(_load))
        return await asyncio.shield(self._loading)

    async def _call(
        self, execution: str, call: ToolCall, name: str, arguments: dict[str, Any]
    ) -> dict[str, Any] | tuple[str, ...]:
        """The tool's structured result, or what is wrong with the call (`failures.texts`)."""
        try:
            if (ctx := self._ctx) is None:
                raise Conflict("Kandev is starting; call again in a moment.")
            caller = await ctx.store.read(lambda tx: acting(tx, find_caller(tx, execution, call.call_id)))
            return await call_tool(ctx, caller, name, arguments, call)
        except Exception as error:  # noqa: BLE001 - around a request
            return texts(error, name)


def failure(message: dict[str, Any], sentence: str) -> dict[str, Any]:
    """A response that says what is wrong, in the shape that an agent shows its model."""
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    if message.get("method") == "tools/call":
        return {**answer, "result": {"content": [{"type": "text", "text": sentence}], "isError": True}}
    return {**answer, "error": {"code": -32603, "message": sentence}}


def _load() -> "Mapping[Mode, Protocol]":
    from kandev.mcp.protocol import Protocol

    return {mode: Protocol(list(tools_of(mode))) for mode in MODES}

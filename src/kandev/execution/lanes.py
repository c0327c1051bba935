"""The lanes over which agents' tool calls come: one for each execution, kept open until it is gone.

A call belongs to the execution and not to its connection: when a lane breaks its calls go on, and what is
ready is sent over the next one. Not here: what a call means (`kandev.mcp`), how agentctl holds calls
meanwhile (`kandev.agentctl.tunnel`).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec
import structlog
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from kandev.execution.client import Client, Said
from kandev.execution.following import open_stream
from kandev.ports.execution import UnknownExecution, Unreachable
from kandev.ports.tools import Tools
from kandev.wire import agentctl
from kandev.wire import mcp as wire

log = structlog.get_logger(__name__)

AGAIN_S = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
"""Between tries to open a lane; the last one for ever after."""
LAUNCHING_S = 0.5
"""At most so long between tries while a launch is under way: its agent may call at any moment."""
ANSWER_MAX_BYTES = 8 * 1024 * 1024
"""Of an agent's one message: its window is far smaller."""
PARSE_ERROR = -32700


class _Named(msgspec.Struct):
    """All that an answer to a message has to know of it."""

    id: msgspec.Raw = msgspec.Raw(b"null")


Send = Callable[[wire.McpAnswer], Awaitable[None]]


class Lanes:
    """`reach` gives the client of the agentctl that lives, or None. `close` before the event loop ends."""

    def __init__(self, tools: Tools, reach: Callable[[], Client | None], open_s: float) -> None:
        self._tools = tools
        self._reach = reach
        self._open_s = open_s
        self._lanes: dict[str, Lane] = {}
        self._closed = False

    def keep(self, execution: str) -> None:
        """From now on its agent's calls are answered, until it is gone."""
        if not self._closed and execution not in self._lanes:
            lane = Lane(execution, self._tools, self._reach, self._open_s)
            self._lanes[execution] = lane
            lane.task.add_done_callback(lambda _: self._ended(lane))

    @contextlib.contextmanager
    def launching(self, execution: str, *, wanted: bool) -> Iterator[None]:
        """Meanwhile it may not be known yet, and that does not mean that it is gone. Not `wanted`: its agent
        gets no tools."""
        if wanted:
            self.keep(execution)
        lane = self._lanes.get(execution)
        if lane is None:
            yield
            return
        lane.launches += 1
        try:
            yield
        finally:
            lane.launches -= 1

    def _ended(self, lane: "Lane") -> None:
        if self._lanes.get(lane.execution) is lane:
            del self._lanes[lane.execution]
        if not lane.task.cancelled() and (error := lane.task.exception()) is not None:
            log.error("a lane broke", execution=lane.execution, exc_info=error)

    async def close(self) -> None:
        """Calls under way are given up here: agentctl holds them for whoever comes next."""
        self._closed = True
        await _end([lane.task for lane in self._lanes.values()])


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


class Call:
    """Implements `ports.tools.ToolCall`."""

    def __init__(self, asked: wire.McpCall, message: dict[str, Any], send: Send) -> None:
        self.call_id, self.again, self.version = asked.call_id, asked.again, asked.version
        self.message = message
        self.left = asyncio.Event()
        self.served: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.committed = False
        self._send = send
        self._last: wire.McpAnswer | None = None

    def commit(self) -> None:
        self.committed = True

    async def send(self, message: dict[str, Any], last: bool) -> None:
        if self._last is not None:
            return
        answer = wire.McpAnswer(call_id=self.call_id, message=self._encoded(message), last=last)
        if last:
            self._last = answer
        await self._send(answer)

    def _encoded(self, message: dict[str, Any]) -> msgspec.Raw:
        encoded = msgspec.json.encode(message)
        if len(encoded) <= ANSWER_MAX_BYTES:
            return msgspec.Raw(encoded)
        text = (
            f"[INTERNAL_ERROR] The answer has {len(encoded)} bytes, too many for one message; ask for less."
        )
        result = {"content": [{"type": "text", "text": text}], "isError": True}
        return msgspec.Raw(msgspec.json.encode({"jsonrpc": "2.0", "id": message.get("id"), "result": result}))

    async def repeat(self) -> None:
        """The answer, if there is one, for a lane that has not carried it."""
        if self._last is not None:
            await self._send(self._last)

    def settle(self, served: bool) -> None:
        """The agent has its answer, or has gone."""
        if not self.served.done():
            self.served.set_result(served)
        if not served:
            self.left.set()


class Lane:
    """One execution's. `launches`: how many creations of it are under way."""

    def __init__(
        self, execution: str, tools: Tools, reach: Callable[[], Client | None], open_s: float
    ) -> None:
        self.execution = execution
        self.launches = 0
        self._tools = tools
        self._reach = reach
        self._open_s = open_s
        self._connection: ClientConnection | None = None
        self._calls: dict[str, Call] = {}
        self._handling: set[asyncio.Task[None]] = set()
        self.task = asyncio.create_task(self._live(), name=f"lane of {execution}")

    async def _live(self) -> None:
        try:
            await self._keep()
            self._leave()
            # Whoever handles a call knows now that its agent has gone: what is committed is finished.
            while self._handling:
                await asyncio.wait(self._handling)
        finally:
            self._leave()
            await _end(list(self._handling))

    def _leave(self) -> None:
        for call_id in list(self._calls):
            self._forget(call_id, served=False)

    async def _keep(self) -> None:
        """Until the execution is gone."""
        tries = 0
        while True:
            try:
                if (client := self._reach()) is None:
                    raise UnknownExecution("There is no agentctl.")
                await self._serve(client)
                tries = 0
            except UnknownExecution:
                if not self.launches:
                    return
            except Unreachable as fault:
                log.debug("lane", execution=self.execution, error=fault.message)
            pause = AGAIN_S[min(tries, len(AGAIN_S) - 1)]
            tries += 1
            await asyncio.sleep(min(pause, LAUNCHING_S) if self.launches else pause)

    async def _serve(self, client: Client) -> None:
        """One connection, from its opening to its end. Raises UnknownExecution, Unreachable."""
        try:
            connection = await open_stream(client, self.execution, {"lane": "mcp"}, self._open_s)
        except Said as said:
            if said.refusal.reason in ("ended", "invalid"):
                raise UnknownExecution(said.refusal.message) from said
            raise Unreachable(said.refusal.message) from said
        try:
            self._connection = connection
            async for text in connection:
                await self._hear(text)
        except ConnectionClosed:
            pass
        finally:
            self._connection = None
            connection.transport.abort()
        if connection.close_code == agentctl.STREAM_DROPPED:
            raise UnknownExecution("The execution is over.")

    async def _hear(self, text: str | bytes) -> None:
        try:
            said = wire.read_from_agent(text)
        except msgspec.DecodeError as error:
            raise Unreachable(f"agentctl sent a document that cannot be read: {error}.") from error
        match said:
            case wire.McpLane(calls=calls):
                for call_id in self._calls.keys() - set(calls):
                    self._forget(call_id, served=False)
            case wire.McpCall():
                await self._begin(said)
            case wire.McpLeft(call_id=call_id):
                self._forget(call_id, served=False)
            case wire.McpServed(call_id=call_id, served=served):
                self._forget(call_id, served=served)

    def _forget(self, call_id: str, *, served: bool) -> None:
        if (call := self._calls.pop(call_id, None)) is not None:
            call.settle(served)

    async def _begin(self, asked: wire.McpCall) -> None:
        if (known := self._calls.get(asked.call_id)) is not None:
            await known.repeat()
            return
        try:
            message = msgspec.json.decode(asked.message, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            error = {"code": PARSE_ERROR, "message": "The message cannot be read."}
            answer = msgspec.json.encode({"jsonrpc": "2.0", "id": _id_of(asked.message), "error": error})
            await self._send(wire.McpAnswer(call_id=asked.call_id, message=msgspec.Raw(answer), last=True))
            return
        call = self._calls[asked.call_id] = Call(asked, message, self._send)
        task = asyncio.create_task(self._tools.handle(self.execution, call), name=f"tool call {call.call_id}")
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)

    async def _send(self, answer: wire.McpAnswer) -> None:
        """Nothing when there is no connection at present: what is last is repeated on the next one."""
        if (connection := self._connection) is not None:
            with contextlib.suppress(ConnectionClosed):
                await connection.send(msgspec.json.encode(answer), text=True)


def _id_of(message: msgspec.Raw) -> msgspec.Raw:
    """As the client wrote it, also where the rest cannot be read: an answer without it is nobody's."""
    try:
        return msgspec.json.decode(message, type=_Named).id
    except (msgspec.DecodeError, RecursionError):
        return msgspec.Raw(b"null")

"""A JSON-RPC peer over an agent's pipes: one reader, wire order kept, nothing that an agent sends kills it.

Each incoming message is handled to its end before the next is looked at, so an agent that says more than its
journal takes has to wait. Between any two of them everybody else has a turn: of an agent that talks faster
than it is read the next words are always there, and reading them would never wait. Not here: what methods
mean (`kandev.agentctl.adapters`).

Source: JSON-RPC 2.0 (jsonrpc.org/specification), one message a line as ACP's and Codex's stdio transports
have it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from kandev.agentctl.failures import WriteFailed
from kandev.agentctl.lines import BadLines, Lines, Skipped, encode, parse

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
LONGEST_ID = 4096
"""Characters of a request's id: it is kept until the request is answered."""

Id = str | int | float | None
OnReply = Callable[["Reply"], Awaitable[None]]


class RpcError(Exception):
    """The other side's answer is an error. `code` 0 when it gave none."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class PeerGone(Exception):
    """The stream ended before the answer came."""


Reply = Any | RpcError | PeerGone
"""A result, or why there is none."""


class Stream(Protocol):
    """An agent's stdin and stdout (`kandev.agentctl.process.AgentProcess`)."""

    async def read(self) -> bytes:
        """The next chunk, `b""` at the end."""

    async def write(self, data: bytes) -> None:
        """Whole. Raises WriteFailed."""

    async def close_input(self) -> None:
        """May be called more than once."""


@dataclass(frozen=True, eq=False)
class Call:
    """A request of the agent, to be answered once, now or later. Answers raise WriteFailed."""

    peer: "Peer"
    id: Id
    method: str
    params: dict[str, Any]
    size: int = 0
    """Of the whole message, in bytes."""

    async def answer(self, result: Any) -> None:
        """With success."""
        await self.peer.send({"id": self.id, "result": result})

    async def refuse(self, code: int, message: str, data: Any = None) -> None:
        """With an error."""
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        await self.peer.send({"id": self.id, "error": error})


class Handler(Protocol):
    """The adapter. Its methods hold up the reader."""

    async def notification(self, method: str, params: dict[str, Any]) -> None:
        """In wire order."""

    async def request(self, call: Call) -> None:
        """In wire order; must not wait for people or files, nor for an agent that takes its answers."""

    async def notice(self, text: str) -> None:
        """Something a person should see."""


class Peer:
    """`version` None leaves the member `jsonrpc` out (Codex)."""

    def __init__(
        self, stream: Stream, handler: Handler, *, line_max: int, version: str | None = "2.0"
    ) -> None:
        self._stream = stream
        self._handler = handler
        self._lines = Lines(line_max)
        self._bad = BadLines()
        self._head: dict[str, Any] = {} if version is None else {"jsonrpc": version}
        self._last_id = 0
        self._open: dict[int, OnReply] = {}
        self._gone = False

    async def run(self) -> None:
        """Read until the end; then all open requests fail."""
        try:
            while chunk := await self._stream.read():
                for line in self._lines.feed(chunk):
                    await self._line(line)
                    await asyncio.sleep(0)
                await asyncio.sleep(0)
            for line in self._lines.end():
                await self._line(line)
            if (text := self._bad.rest(0.0, at_once=True)) is not None:
                await self._handler.notice(text)
        finally:
            self._gone = True
            await self.fail_open()

    async def fail_open(self) -> None:
        """Open requests get no answer any more."""
        while self._open:
            _, on_reply = self._open.popitem()
            await on_reply(PeerGone())

    async def call(self, method: str, params: dict[str, Any], on_reply: OnReply) -> None:
        """Returns when the request is written whole; `on_reply` is awaited by the reader, in wire order.
        Raises WriteFailed, and then `on_reply` is not called."""
        if self._gone:
            raise WriteFailed("The agent has ended.")
        self._last_id += 1
        number = self._last_id
        self._open[number] = on_reply
        try:
            await self.send({"id": number, "method": method, "params": params})
        except WriteFailed:
            self._open.pop(number, None)
            raise

    async def request(
        self, method: str, params: dict[str, Any], *, at_reply: Callable[[Reply], None] | None = None
    ) -> Any:
        """The result. Raises RpcError, PeerGone, WriteFailed. `at_reply` is called in wire order, before the
        message behind the reply is looked at."""
        answered: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

        async def keep(reply: Reply) -> None:
            if at_reply is not None:
                at_reply(reply)
            if not answered.done():
                answered.set_result(reply)

        await self.call(method, params, keep)
        reply = await answered
        if isinstance(reply, RpcError | PeerGone):
            raise reply
        return reply

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        """Returns when it is written whole. Raises WriteFailed."""
        await self.send({"method": method, "params": params})

    async def send(self, message: dict[str, Any]) -> None:
        """One line, whole. Raises WriteFailed."""
        await self._stream.write(encode({**self._head, **message}))

    async def _line(self, line: bytes | Skipped) -> None:
        now = asyncio.get_running_loop().time()
        text: str | None
        if isinstance(line, Skipped):
            text = f"The agent wrote a line longer than {line.limit} bytes; it was skipped."
        elif (message := parse(line)) is not None and await self._message(message, len(line)):
            text = self._bad.rest(now)
        else:
            text = self._bad.note(line, now)
        if text is not None:
            await self._handler.notice(text)

    async def _message(self, message: dict[str, Any], size: int) -> bool:
        """Whether it is one."""
        method = message.get("method")
        if isinstance(method, str):
            params = message.get("params")
            params = params if isinstance(params, dict) else {}
            if "id" not in message:
                await self._handler.notification(method, params)
                return True
            number = message["id"]
            if not _is_id(number):
                return False
            await self._handler.request(Call(self, number, method, params, size))
            return True
        if "id" not in message or not ("result" in message or "error" in message):
            return False
        await self._reply(message)
        return True

    async def _reply(self, message: dict[str, Any]) -> None:
        number, error = message["id"], message.get("error")
        if number is None and error is not None:
            await self._handler.notice(f"The agent could not read a message: {_error(error).message}")
        if isinstance(number, bool) or not isinstance(number, int | float):
            return
        on_reply = self._open.pop(int(number), None) if number == number // 1 else None
        if on_reply is not None:
            await on_reply(_error(error) if error is not None else message.get("result"))


def _is_id(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= LONGEST_ID
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _error(error: Any) -> RpcError:
    if not isinstance(error, dict):
        return RpcError(0, str(error))
    code, message = error.get("code"), error.get("message")
    number = code if isinstance(code, int) else 0
    return RpcError(number, message if isinstance(message, str) else str(error), error.get("data"))

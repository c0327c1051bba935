"""The tool calls of one instance: held open, handed to the backend's lane, answered once.

A call outlives a lane that breaks: it waits, bounded, and is handed to the next one. Not here: HTTP (`door`),
the WebSocket (`lane`), what a call means (the backend).
"""

import asyncio
import secrets
from collections import deque
from typing import Any, Protocol

import msgspec

from kandev.agentctl.awake import Countdown
from kandev.agentctl.settings import Settings
from kandev.wire import mcp as wire

NOTES_WAITING = 64
"""Notifications of one call that its client has not read; the oldest go."""
NO_BACKEND = "Kandev's backend was away for {:g} s and has not answered; call the tool again later."
OVER = "The execution is over: its tools are not served any more."
CROWDED = "Too many tool calls of this agent are open ({}); wait for some of their answers, then call again."
TOOL_CALL = "tools/call"


class Message(msgspec.Struct):
    """What the tunnel looks at of a JSON-RPC message."""

    id: msgspec.Raw = msgspec.Raw(b"")
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"")


class Lane(Protocol):
    """Where calls are handed over."""

    def put(self, document: wire.FromAgent) -> None:
        """Never waits."""

    def end(self, *, replaced: bool) -> None:
        """Another lane took its place, or the execution is over."""


class Call:
    """One request of the agent. `client` tells its MCP clients apart, as far as they say who they are."""

    def __init__(self, call_id: str, message: Message, body: bytes, client: str | None) -> None:
        self.id = call_id
        self.client = client
        self.request_id = bytes(message.id)
        self.method = message.method
        self.body = body
        self.version: str | None = None
        self.handed = False
        """A lane has had it."""
        self.patience: Patience | None = None
        self._news: deque[bytes] = deque()
        self._over = False
        self._came = asyncio.Event()

    def put(self, message: bytes, *, last: bool) -> None:
        if not self._over:
            if len(self._news) >= NOTES_WAITING:
                self._news.popleft()
            self._news.append(message)
            self._over = last
            self._came.set()

    def withdraw(self) -> None:
        """It gets no answer: the agent wants none."""
        self._news.clear()
        self._over = True
        self._came.set()

    async def next(self) -> tuple[bytes | None, bool]:
        """The next message for the agent, and whether it is the last; no message: it gets none."""
        while not (self._news or self._over):
            self._came.clear()
            await self._came.wait()
        if not self._news:
            return None, True
        message = self._news.popleft()
        return message, self._over and not self._news

    def failure(self, sentence: str) -> bytes:
        """An answer that says what is wrong, in the shape that an agent shows its model."""
        if self.method == TOOL_CALL:
            text = f"[INTERNAL_ERROR] {sentence}"
            result = {"content": [{"type": "text", "text": text}], "isError": True}
            return _response(self.request_id, "result", result)
        return _response(self.request_id, "error", {"code": -32603, "message": sentence})


class Patience:
    """Waits for a lane in the time in which this program runs, then gives up."""

    def __init__(self, tunnel: "Tunnel", call: Call, seconds: float) -> None:
        self._tunnel = tunnel
        self._call = call
        self._loop = asyncio.get_running_loop()
        self._countdown = Countdown(seconds)
        self._wait()

    def _wait(self) -> None:
        self._began = self._loop.time()
        self._timer = self._loop.call_later(self._countdown.part, self._passed)

    def _passed(self) -> None:
        self._countdown.passed(self._loop.time() - self._began)
        if self._countdown.left:
            self._wait()
        else:
            self._tunnel.give_up(self._call)

    def end(self) -> None:
        self._timer.cancel()


class Tunnel:
    """`token` lets the instance's agent in, and nobody else. `close` ends it for ever."""

    def __init__(self, instance_id: str, settings: Settings, *, wanted: bool = True) -> None:
        self.token = secrets.token_urlsafe(32)
        self.url = ""
        """Where the agent finds it."""
        self.over = not wanted
        self.message_max_bytes = settings.mcp_message_bytes
        self._instance_id = instance_id
        self._settings = settings
        self._calls: dict[str, Call] = {}
        self._lane: Lane | None = None
        self._untold: deque[wire.FromAgent] = deque()
        """What became of calls while no lane was there."""
        self._count = 0
        self._held_bytes = 0

    @property
    def waits(self) -> bool:
        """A call is open."""
        return bool(self._calls)

    # -- the agent's side -------------------------------------------------------------------------

    def open(self, message: Message, body: bytes, client: str | None, version: str | None) -> Call:
        """Begins a call. One that cannot be served has its answer already."""
        self._count += 1
        call_id = f"{self._instance_id}.{self._count}.{secrets.token_hex(8)}"
        call = Call(call_id, message, body, client)
        call.version = version
        if self.over:
            call.put(call.failure(OVER), last=True)
        elif self._is_crowded(len(body)):
            call.put(call.failure(CROWDED.format(len(self._calls))), last=True)
        else:
            self._held_bytes += len(body)
            self._calls[call_id] = call
            self._hand_over(call)
        return call

    def _is_crowded(self, more: int) -> bool:
        settings = self._settings
        many = len(self._calls) >= settings.mcp_calls
        return many or (bool(self._calls) and self._held_bytes + more > settings.mcp_held_bytes)

    def cancel(self, client: str | None, request_id: bytes) -> None:
        """The agent wants no answer any more. Clients that do not say who they are may use the same ids: then
        nobody knows which call is meant, and none is ended."""
        meant = [c for c in self._calls.values() if (c.client, c.request_id) == (client, request_id)]
        if client is not None or len(meant) == 1:
            for call in meant:
                call.withdraw()
                self._leave(call)

    def client_gone(self, client: str) -> None:
        """An MCP client said that it is done."""
        for call in [call for call in self._calls.values() if call.client == client]:
            call.withdraw()
            self._leave(call)

    def finished(self, call: Call, *, answered: bool) -> None:
        """The agent's request is over: it has its answer, or it has gone."""
        if call.id not in self._calls:
            return
        if answered:
            self._drop(call, wire.McpServed(call_id=call.id, served=True))
        else:
            self._leave(call)

    def _leave(self, call: Call) -> None:
        self._drop(call, wire.McpLeft(call_id=call.id))

    def _drop(self, call: Call, note: wire.FromAgent) -> None:
        del self._calls[call.id]
        self._held_bytes -= len(call.body)
        self._calm(call)
        if self._lane is not None:
            self._lane.put(note)
        elif call.handed:
            self._untold.append(note)

    # -- the backend's side -----------------------------------------------------------------------

    def attach(self, lane: Lane) -> None:
        """The newest lane takes over, with all that is open."""
        if self._lane is not None:
            self._lane.end(replaced=True)
        self._lane = lane
        lane.put(wire.McpLane(calls=list(self._calls)))
        while self._untold:
            lane.put(self._untold.popleft())
        for call in self._calls.values():
            self._hand_over(call)

    def detach(self, lane: Lane) -> None:
        """Calls wait for the next lane from now on."""
        if self._lane is lane:
            self._lane = None
            for call in self._calls.values():
                self._hand_over(call)

    def answered(self, lane: Lane, answer: wire.McpAnswer) -> None:
        """Of the lane that counts; what nobody waits for any more is dropped."""
        if lane is self._lane and (call := self._calls.get(answer.call_id)) is not None:
            call.put(bytes(answer.message), last=answer.last)

    def _hand_over(self, call: Call) -> None:
        self._calm(call)
        if self._lane is None:
            call.patience = Patience(self, call, self._settings.mcp_hold_s)
            return
        raw = msgspec.Raw(call.body)
        self._lane.put(wire.McpCall(call_id=call.id, message=raw, again=call.handed, version=call.version))
        call.handed = True

    @staticmethod
    def _calm(call: Call) -> None:
        if call.patience is not None:
            call.patience.end()
            call.patience = None

    # -- ends -------------------------------------------------------------------------------------

    def give_up(self, call: Call) -> None:
        """No lane came in time."""
        call.put(call.failure(NO_BACKEND.format(self._settings.mcp_hold_s)), last=True)
        self._leave(call)

    def close(self) -> None:
        """The instance has ended: whoever still waits hears so."""
        self.over = True
        for call in list(self._calls.values()):
            call.put(call.failure(OVER), last=True)
            self._leave(call)
        if self._lane is not None:
            self._lane.end(replaced=False)


def _response(request_id: bytes, member: str, value: Any) -> bytes:
    document = {"jsonrpc": "2.0", "id": msgspec.Raw(request_id or b"null"), member: value}
    return msgspec.json.encode(document)

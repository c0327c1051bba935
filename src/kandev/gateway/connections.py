"""What a connection may cost before and behind a request: uvicorn's protocols with the bounds they lack.

A request's head has a deadline. A client that takes nothing of what waits for it is given up. One that is
refused while it still sends is told so and cut off soon, instead of being read to its end. Not here: bodies
and frames as such (`http`, `websocket`), who may come in (`guard`).
"""

import asyncio
from contextlib import suppress
from typing import Final

import h11
import msgspec
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from kandev.gateway.errors import STATUS
from kandev.wire.gateway import ErrorObject

HEAD_S: Final = 10.0
"""For the head of a request to arrive, from the connection's beginning or its first byte."""
TAKE_S: Final = 30.0
"""A client that takes nothing for so long is given up; one that takes little is not."""
LINGER_S: Final = 2.0
LINGER_BYTES: Final = 40 << 20
"""What a refused client may still send, thrown away unread: many send all they have before they listen, and
lose the answer when they are cut off."""
END_S: Final = 6.0
"""For a connection to end when the backend does; a little more than requests under way get."""
CLOSE_S: Final = 10.0
"""For the last frames of a WebSocket to be taken."""
MOST_FRAGMENTS: Final = 1024
"""Of one WebSocket message: each costs more memory than it carries."""
PONGS_BYTES: Final = 64 << 10
"""That wait for a client; then pings are not answered until it takes some."""
MALFORMED: Final = "This is no HTTP request, or its head is larger than 16 KiB."


class Stall:
    """Aborts a connection whose buffer does not shrink for `TAKE_S`; nobody adds to it meanwhile."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._timer: asyncio.TimerHandle | None = None
        self._waits = 0

    def watch(self) -> None:
        """From now on."""
        if self._timer is None:
            self._waits = self._transport.get_write_buffer_size()
            self._timer = self._loop.call_later(TAKE_S, self._look)

    def rest(self) -> None:
        """No longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        waits = self._transport.get_write_buffer_size()
        if waits and waits >= self._waits:
            self._transport.abort()
        elif waits:
            self.watch()


class Lingering(asyncio.Protocol):
    """In place of a protocol that has said its last word: reads a little more and throws it away."""

    def __init__(self, before: asyncio.Protocol, transport: asyncio.Transport) -> None:
        self._before, self._transport = before, transport
        self._left = LINGER_BYTES
        self._timer = asyncio.get_running_loop().call_later(LINGER_S, transport.abort)
        transport.set_protocol(self)
        transport.resume_reading()
        with suppress(OSError):  # it has gone meanwhile
            transport.write_eof()

    def data_received(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left <= 0:
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._before.connection_lost(exc)


class BoundedHttp(H11Protocol):
    """`http` of uvicorn's configuration."""

    _head: asyncio.TimerHandle | None = None
    _lingers = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._stall = Stall(transport, self.loop)
        self._mind_the_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._mind_the_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_the_head()
        self._stall.rest()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall.rest()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._stall.watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._linger()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read as a request: an error object too. `msg` is uvicorn's own sentence."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            _cut_off(cycle)
        self._refuse(MALFORMED)

    def shutdown(self) -> None:
        """The backend ends. A request whose body has not arrived is never accepted any more."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._lingers:
            self.transport.abort()
        elif cycle is not None and cycle.more_body and not cycle.response_started:
            _cut_off(cycle)
            self.transport.close()
        else:
            super().shutdown()
            self.loop.call_later(END_S, self.transport.abort)

    # -- the head -------------------------------------------------------------------------------

    def _mind_the_head(self) -> None:
        """As long as it is waited for. Between two requests uvicorn waits for its first byte."""
        waits = self.conn.their_state is h11.IDLE and self.transport.get_protocol() is self
        if not waits:
            self._forget_the_head()
        elif self._head is None:
            self._head = self.loop.call_later(HEAD_S, self._head_is_late)

    def _forget_the_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _head_is_late(self) -> None:
        if self.transport.is_closing():
            return
        if self.conn.trailing_data[0]:
            self._refuse(f"The head of the request did not arrive within {HEAD_S:.0f} seconds.")
        else:
            self.transport.close()

    # -- ways out -------------------------------------------------------------------------------

    def _refuse(self, sentence: str) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.abort()
            return
        body = msgspec.json.encode(ErrorObject(code="BAD_REQUEST", message=sentence))
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        answer = h11.Response(status_code=STATUS["BAD_REQUEST"], headers=headers, reason=b"Bad Request")
        for event in (answer, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event))
        self._linger()

    def _linger(self) -> None:
        self._forget_the_head()
        self._unset_keepalive_if_required()
        self._lingers = True
        Lingering(self, self.transport)


def _cut_off(cycle: RequestResponseCycle) -> None:
    """For who reads the body it is as if the client had gone."""
    cycle.disconnected = True
    cycle.message_event.set()


class BoundedWebSocket(WebSocketsSansIOProtocol):
    """`ws` of uvicorn's configuration."""

    _last: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._stall = Stall(self.transport, self.loop)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stall.rest()
        if self._last is not None:
            self._last.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall.watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stall.rest()

    def keepalive_timeout(self) -> None:
        super().keepalive_timeout()
        self._end_within(CLOSE_S)

    def on_task_complete(self, task: asyncio.Task[None]) -> None:
        super().on_task_complete(task)
        self._end_within(CLOSE_S)

    def shutdown(self) -> None:
        super().shutdown()
        self._end_within(END_S)

    def handle_ping(self) -> None:
        if self.transport.get_write_buffer_size() < PONGS_BYTES:
            super().handle_ping()
        else:
            self.conn.data_to_send()  # the pong; the newest ping is answered when the client takes something

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) < MOST_FRAGMENTS:
            super().handle_cont(event)
        elif not self.close_sent:
            self.conn.fail(1009, f"a message has at most {MOST_FRAGMENTS} fragments")
            self.handle_parser_exception()

    def handle_parser_exception(self) -> None:
        """What cannot be read as frames, or is too large: the client hears why before it is cut off."""
        sent = self.conn.close_sent
        code, reason = (sent.code, sent.reason) if sent is not None else (1006, "")
        self.queue.put_nowait({"type": "websocket.disconnect", "code": code, "reason": reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.close_sent = True
        self.frames = []
        Lingering(self, self.transport)

    async def send(self, message: ASGISendEvent) -> None:
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # by a refusal; uvicorn would call it an error of ours

    def _end_within(self, seconds: float) -> None:
        if self._last is None and not self.disconnected:
            self._last = self.loop.call_later(seconds, self.transport.abort)

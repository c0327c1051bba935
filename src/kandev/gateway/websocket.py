"""The WebSocket door: one JSON object per text frame, each request a task of its own, answers in any order.

An accepted mutation goes on when the socket goes away; what only reads is given up. Not here: actions
(`catalogue`), who may connect (`guard`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from kandev.core.errors import KandevError
from kandev.gateway.accepted import Accepted
from kandev.gateway.catalogue import ACTIONS
from kandev.gateway.dispatch import Requests, refuse_mcp
from kandev.gateway.errors import BadRequest, error_object
from kandev.gateway.hub import Client, Hub
from kandev.gateway.streams import Streams
from kandev.ports.clock import Clock
from kandev.wire.gateway import ErrorObject, Frame, FrameType, Malformed, read_object

IN_FLIGHT: Final = 64
"""Requests of one connection that may be under way; then it is not read from until one is answered."""
READS_IN_FLIGHT: Final = 4
"""Of these, such as only read: an answer may be many megabytes, and waits here for a client that does not."""
LARGEST_FRAME: Final = 8 << 20
"""Characters of one frame."""
SEND_S: Final = 30.0
"""Seconds until a client that takes nothing any more is given up."""
CLOSE_S: Final = 2.0


class Door:
    """Serves connections for one application."""

    def __init__(self, requests: Requests, streams: Streams, hub: Hub, accepted: Accepted) -> None:
        self.requests, self.streams, self.hub, self.accepted = requests, streams, hub, accepted

    async def serve(self, socket: WebSocket) -> None:
        """One connection, from its acceptance to its end."""
        await socket.accept()
        await Connection(self, socket).run()


class Connection:
    """One client's requests and answers."""

    def __init__(self, door: Door, socket: WebSocket) -> None:
        self._door, self._socket = door, socket
        self._clock: Clock = door.requests.ctx.clock
        self._client: Client = door.hub.connect()
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._read_slots = asyncio.Semaphore(READS_IN_FLIGHT)
        self._reads: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Until either side is gone."""
        try:
            async with asyncio.TaskGroup() as group:
                both = {group.create_task(self._receive()), group.create_task(self._send())}
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                for task in both:
                    task.cancel()
        finally:
            for read in self._reads:
                read.cancel()
            self._door.hub.disconnect(self._client)
        await self._close()

    async def _receive(self) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return
            await self._slots.acquire()
            self._accept(message.get("text"))

    async def _send(self) -> None:
        while True:
            waiting = await self._client.outbox.next()
            try:
                async with asyncio.timeout(SEND_S):
                    await self._socket.send_text(waiting.encoded().decode())
            except (WebSocketDisconnect, TimeoutError, RuntimeError):
                return
            finally:
                if waiting.sent:
                    waiting.sent()

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._socket.close(1011)
        except (WebSocketDisconnect, TimeoutError, RuntimeError):
            return  # it is gone already

    # -- one request --------------------------------------------------------------------------

    def _accept(self, text: str | None) -> None:
        """Answer at once what is no request; for everything else start a task. Gives the slot back with the
        answer."""
        frame: dict[str, Any] = {}
        try:
            frame = _frame(text)
            refuse_mcp(_word(frame, "action"))
            id, action, payload = _request(frame)
        except (Malformed, KandevError) as error:
            action = _word(frame, "action")
            self._reply(_word(frame, "id"), action, error_object(error, action), self._slots.release)
            return
        known = ACTIONS.get(action)
        reads = known is not None and (known.stream or not known.mutates)
        work = self._stream if known and known.stream else self._ask
        asked = work(id, action, payload, self._read_given_back if reads else self._slots.release)
        task = self._door.accepted.start(
            self._in_turn(asked) if reads else asked, f"{action} over the WebSocket"
        )
        if known is not None and not known.mutates:
            self._reads.add(task)
            task.add_done_callback(self._reads.discard)

    async def _in_turn(self, read: Coroutine[Any, Any, None]) -> None:
        """Beside a few others, counted until their answers were handed over."""
        try:
            await self._read_slots.acquire()
        except BaseException:
            read.close()
            raise
        await read

    def _read_given_back(self) -> None:
        self._read_slots.release()
        self._slots.release()

    async def _ask(self, id: str, action: str, payload: dict[str, Any], sent: Callable[[], None]) -> None:
        self._reply(id, action, await self._door.requests.answer(action, payload, "websocket"), sent)

    async def _stream(self, id: str, action: str, payload: dict[str, Any], sent: Callable[[], None]) -> None:
        opened = await self._door.requests.watch(
            action, "websocket", lambda: self._door.streams.ask(self._client, action, payload)
        )
        if isinstance(opened, ErrorObject):
            self._reply(id, action, opened, sent)
            return
        # No await between the two: what is new comes behind the answer.
        self._reply(id, action, opened.payload, sent)
        opened.start()

    def _reply(
        self, id: str, action: str, answer: dict[str, Any] | ErrorObject, sent: Callable[[], None]
    ) -> None:
        kind: FrameType = "error" if isinstance(answer, ErrorObject) else "response"
        payload: dict[str, Any] = msgspec.to_builtins(answer) if isinstance(answer, ErrorObject) else answer
        frame = Frame(id=id, type=kind, action=action, payload=payload, timestamp=self._clock.now())
        self._put(msgspec.json.encode(frame), sent)

    def _put(self, data: bytes, sent: Callable[[], None]) -> None:
        if self._client.gone:
            sent()
        else:
            self._client.outbox.answer(data, sent)


def _word(frame: dict[str, Any], member: str) -> str:
    value = frame.get(member)
    return value if isinstance(value, str) else ""


def _frame(text: str | None) -> dict[str, Any]:
    if text is None:
        raise BadRequest("Binary frames carry nothing; send one JSON object per text frame.")
    if len(text) > LARGEST_FRAME:
        raise BadRequest(f"The frame is too large; {LARGEST_FRAME >> 20} MiB are the limit.")
    return read_object(text, "The frame")


def _request(frame: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    id, kind, action, payload = (frame.get(m) for m in ("id", "type", "action", "payload"))
    if not isinstance(id, str) or not id:
        raise BadRequest("The frame's `id` must be a string that is not empty.")
    if kind != "request":
        raise BadRequest("The frame's `type` must be request; the other types come from the backend only.")
    if not isinstance(action, str) or not action:
        raise BadRequest("The frame's `action` must be a string that is not empty.")
    if payload is None:
        payload = {}
    if not isinstance(payload, dict):
        raise BadRequest("The frame's `payload` must be a JSON object.")
    return id, action, payload

"""The WebSocket door: one JSON object per text frame, each request a task of its own, answers in any order.

An accepted mutation goes on when the socket goes away; what only reads is given up. Not here: actions
(`catalogue`), who may connect (`guard`).
"""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from kandev.core.errors import KandevError
from kandev.gateway.accepted import Accepted
from kandev.gateway.catalogue import ACTIONS
from kandev.gateway.dispatch import Requests, refuse_mcp
from kandev.gateway.errors import BadRequest, error_object
from kandev.gateway.hub import Client, Hub
from kandev.gateway.room import Room
from kandev.gateway.streams import Streams
from kandev.ports.clock import Clock
from kandev.wire.gateway import ErrorObject, Frame, FrameType, Malformed, read_object

IN_FLIGHT: Final = 64
"""Requests of one connection that may be under way; then it is not read from until one is answered."""
IN_FLIGHT_BYTES: Final = 16 << 20
"""The same, by what they say."""
READS_IN_FLIGHT: Final = 4
"""Of these, such as only read. Each counts until its answer is handed to the connection, which takes frames
one by one."""
LARGE: Final = (".list", ".subscribe", ".unsubscribe", ".snapshot", ".queue.get")
"""Ends of the names of reads whose answers may be many megabytes, and of what keeps its place among them. One
goes at a time, or a client that takes nothing would cost several."""
LARGEST_FRAME: Final = 8 << 20
"""Characters of one frame."""
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
        self._room = Room(IN_FLIGHT, IN_FLIGHT_BYTES)
        self._read_slots = asyncio.Semaphore(READS_IN_FLIGHT)
        self._large_slots = asyncio.Semaphore(1)
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
            text = message.get("text")
            size = 0 if text is None else len(text) if text.isascii() else 4 * len(text)
            await self._room.enter(size)
            self._accept(text, partial(self._room.leave, size))

    async def _send(self) -> None:
        """One frame after the other; the connection gives up a client that takes nothing (`connections`)."""
        while True:
            waiting = await self._client.outbox.next()
            try:
                await self._socket.send_text(waiting.encoded().decode())
            except (WebSocketDisconnect, RuntimeError):
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

    def _accept(self, text: str | None, leave: Callable[[], None]) -> None:
        """Answer at once what is no request; for everything else start a task. `leave` is called with the
        answer."""
        frame: dict[str, Any] = {}
        try:
            frame = _frame(text)
            refuse_mcp(_word(frame, "action"))
            id, action, payload = _request(frame)
        except (Malformed, KandevError) as error:
            action = _word(frame, "action")
            self._reply(_word(frame, "id"), action, error_object(error, action), leave)
            return
        known = ACTIONS.get(action)
        reads = known is not None and (known.stream or not known.mutates)
        slots = self._large_slots if action.endswith(LARGE) else self._read_slots
        work = self._stream if known and known.stream else self._ask
        asked = work(id, action, payload, partial(_give_back, slots, leave) if reads else leave)
        task = self._door.accepted.start(
            _in_turn(slots, asked) if reads else asked, f"{action} over the WebSocket"
        )
        if known is not None and not known.mutates:
            self._reads.add(task)
            task.add_done_callback(self._reads.discard)

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


async def _in_turn(slots: asyncio.Semaphore, read: Coroutine[Any, Any, None]) -> None:
    """Beside a few others, counted until their answers were handed over."""
    try:
        await slots.acquire()
    except BaseException:
        read.close()
        raise
    await read


def _give_back(slots: asyncio.Semaphore, leave: Callable[[], None]) -> None:
    slots.release()
    leave()


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

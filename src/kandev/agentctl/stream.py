"""The event stream of one instance: frames from a position on, a bounded amount of them unacknowledged.

One stream per instance: a newer one closes the older. Not here: who may open it (`server`).
"""

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from kandev.agentctl.instance import Instance
from kandev.wire import agentctl as wire


@dataclass(frozen=True)
class Window:
    """What may be sent and not acknowledged. A frame of more bytes goes alone."""

    frames: int
    bytes: int


class _Unacknowledged:
    """What a client has got and not acknowledged yet."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self._sizes: deque[tuple[int, int]] = deque()
        self._bytes = 0

    def add(self, seq: int, size: int) -> None:
        self._sizes.append((seq, size))
        self._bytes += size

    def takes_more(self, acknowledged: int) -> bool:
        while self._sizes and self._sizes[0][0] <= acknowledged:
            self._bytes -= self._sizes.popleft()[1]
        return len(self._sizes) < self._window.frames and self._bytes < self._window.bytes


class _Close(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


async def serve(websocket: WebSocket, instance: Instance, after: int, window: Window) -> None:
    """Runs until the client goes, another stream comes or the instance is dropped."""
    replaced = asyncio.Event()
    for older in instance.streams:
        older.set()
    instance.streams.append(replaced)
    instance.journal.wake()
    try:
        await _both(websocket, instance, replaced, after, window)
    except* WebSocketDisconnect:
        pass
    except* _Close as group:
        for close in group.exceptions:
            if isinstance(close, _Close):
                with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                    await websocket.close(close.code, close.reason)
    finally:
        instance.streams.remove(replaced)


async def _both(
    websocket: WebSocket, instance: Instance, replaced: asyncio.Event, after: int, window: Window
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_send(websocket, instance, replaced, after, window))
        group.create_task(_receive(websocket, instance))


async def _send(
    websocket: WebSocket, instance: Instance, replaced: asyncio.Event, after: int, window: Window
) -> None:
    journal = instance.journal
    sent, unacknowledged = after, _Unacknowledged(window)
    behind: list[tuple[int, bytes]] = []
    while True:
        if replaced.is_set():
            raise _Close(wire.STREAM_REPLACED, "Another stream of this instance took its place.")
        if journal.dropped:
            raise _Close(wire.STREAM_DROPPED, "The instance was deleted.")
        if unacknowledged.takes_more(journal.acknowledged_seq):
            behind = behind or list(reversed(journal.read_from(sent + 1)))
            if behind:
                seq, line = behind.pop()
                await websocket.send_text(line.decode())
                unacknowledged.add(seq, len(line))
                sent = seq
                continue
        await journal.changed()


async def _receive(websocket: WebSocket, instance: Instance) -> None:
    while True:
        text = await websocket.receive_text()
        try:
            said = msgspec.json.decode(text, type=wire.Acknowledge)
        except msgspec.DecodeError:
            raise _Close(1008, "A stream takes acknowledgements only.") from None
        instance.journal.acknowledge(said.seq)

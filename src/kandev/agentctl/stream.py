"""The event stream of one instance: frames from a position on, a bounded number of them unacknowledged.

One stream per instance: a newer one closes the older. Not here: who may open it (`server`).
"""

import asyncio
import contextlib

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from kandev.agentctl.instance import Instance
from kandev.wire import agentctl as wire


class _Close(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


async def serve(websocket: WebSocket, instance: Instance, after: int, window: int) -> None:
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
    websocket: WebSocket, instance: Instance, replaced: asyncio.Event, after: int, window: int
) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(_send(websocket, instance, replaced, after, window))
        group.create_task(_receive(websocket, instance))


async def _send(
    websocket: WebSocket, instance: Instance, replaced: asyncio.Event, after: int, window: int
) -> None:
    journal = instance.journal
    sent = after
    behind: list[tuple[int, bytes]] = []
    while True:
        if replaced.is_set():
            raise _Close(wire.STREAM_REPLACED, "Another stream of this instance took its place.")
        if journal.dropped:
            raise _Close(wire.STREAM_DROPPED, "The instance was deleted.")
        if sent - max(after, journal.acknowledged_seq) < window:
            behind = behind or list(reversed(journal.read_from(sent + 1)))
            if behind:
                seq, line = behind.pop()
                await websocket.send_text(line.decode())
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

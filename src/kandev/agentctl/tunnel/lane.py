"""One lane: the WebSocket over which a backend takes an instance's tool calls and answers them.

Not here: who may open it (`kandev.agentctl.server`), what is sent (`calls`). What waits here is bounded by
the number and the size of open calls.
"""

import asyncio
import contextlib
from collections import deque

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from kandev.agentctl.tunnel.calls import Tunnel
from kandev.wire import agentctl, mcp


class _Over(Exception):
    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class WebSocketLane:
    """Implements `calls.Lane`."""

    def __init__(self) -> None:
        self._waiting: deque[mcp.FromAgent] = deque()
        self._ended: _Over | None = None
        self._news = asyncio.Event()

    def put(self, document: mcp.FromAgent) -> None:
        if isinstance(document, mcp.McpLeft | mcp.McpServed) and self._withdraws(document.call_id):
            return
        self._waiting.append(document)
        self._news.set()

    def _withdraws(self, call_id: str) -> bool:
        """A call that ends before the backend has had it is not sent: an agent that calls and leaves while
        the backend does not read would fill the memory. True: the backend knows nothing of it at all."""
        for document in self._waiting:
            if isinstance(document, mcp.McpCall) and document.call_id == call_id:
                self._waiting.remove(document)
                return not document.again
        return False

    def end(self, *, replaced: bool) -> None:
        if replaced:
            self._ended = _Over(agentctl.STREAM_REPLACED, "Another lane of this instance took its place.")
        else:
            self._ended = _Over(agentctl.STREAM_DROPPED, "The execution is over.")
        self._news.set()

    async def send(self, websocket: WebSocket) -> None:
        """Until it is ended. What was put before an end is sent before it."""
        while True:
            self._news.clear()
            while self._waiting:
                await websocket.send_text(msgspec.json.encode(self._waiting.popleft()).decode())
            if self._ended is not None:
                raise self._ended
            await self._news.wait()

    async def receive(self, websocket: WebSocket, tunnel: Tunnel) -> None:
        """Until the client goes."""
        while True:
            text = await websocket.receive_text()
            try:
                answer = mcp.read_answer(text)
            except msgspec.DecodeError:
                raise _Over(1008, "A lane takes answers to tool calls only.") from None
            tunnel.answered(self, answer)


async def serve_lane(websocket: WebSocket, tunnel: Tunnel) -> None:
    """Runs until the client goes, another lane comes or the instance ends."""
    lane = WebSocketLane()
    tunnel.attach(lane)
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(lane.send(websocket))
            group.create_task(lane.receive(websocket, tunnel))
    except* WebSocketDisconnect:
        pass
    except* _Over as overs:
        for over in overs.exceptions:
            if isinstance(over, _Over):
                with contextlib.suppress(WebSocketDisconnect, RuntimeError):
                    await websocket.close(over.code, over.reason)
    finally:
        tunnel.detach(lane)

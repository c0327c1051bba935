"""A backend that does not read, and an agent that calls and leaves: what waits for the lane stays small."""

import asyncio

import pytest

from kandev.agentctl.settings import Settings
from kandev.agentctl.tunnel.calls import Message, Tunnel
from kandev.agentctl.tunnel.lane import WebSocketLane
from kandev.wire import mcp

pytestmark = pytest.mark.proves("CTL-mcp")

BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}'


class Slow:
    """A WebSocket that takes what it is given only when it is let."""

    def __init__(self) -> None:
        self.sent: list[mcp.FromAgent] = []
        self.free = asyncio.Event()
        self.news = asyncio.Event()

    async def send_text(self, text: str) -> None:
        await self.free.wait()
        self.sent.append(mcp.read_from_agent(text))
        self.news.set()


async def leave_calls(tunnel: Tunnel, lane: WebSocketLane, count: int) -> Slow:
    """The agent calls and goes away, so many times, before the lane takes anything; one call stays."""
    tunnel.attach(lane)
    for number in range(count):
        call = tunnel.open(Message(id=b"%d" % number, method="tools/call"), BODY, None, None)  # type: ignore[arg-type]
        tunnel.finished(call, answered=False)
    tunnel.open(Message(method="tools/call"), BODY, None, None)
    slow = Slow()
    sending = asyncio.create_task(lane.send(slow))  # type: ignore[arg-type]
    slow.free.set()
    async with asyncio.timeout(10):
        while not any(isinstance(document, mcp.McpCall) for document in slow.sent):
            slow.news.clear()
            await slow.news.wait()
    sending.cancel()
    await asyncio.wait({sending})
    return slow


async def test_a_call_that_was_left_before_it_was_sent_does_not_wait_for_the_lane() -> None:
    tunnel = Tunnel("e1", Settings())
    slow = await leave_calls(tunnel, WebSocketLane(), 500)
    assert len(slow.sent) == 2, "what is open, and the one call that somebody waits for"
    tunnel.close()


async def test_of_a_call_that_an_earlier_lane_has_had_the_backend_hears_that_it_was_left() -> None:
    tunnel, first, second = Tunnel("e1", Settings()), WebSocketLane(), WebSocketLane()
    tunnel.attach(first)
    call = tunnel.open(Message(method="tools/call"), BODY, None, None)
    tunnel.attach(second)
    tunnel.finished(call, answered=False)
    sent = Slow()
    sent.free.set()
    second.end(replaced=True)
    with pytest.raises(Exception, match="took its place"):
        await asyncio.wait_for(second.send(sent), 10)  # type: ignore[arg-type]
    assert mcp.McpLeft(call_id=call.id) in sent.sent
    assert not any(isinstance(document, mcp.McpCall) for document in sent.sent)
    tunnel.close()

"""Whoever answers tool calls in a test: notes each call, and answers as the test says.

Not here: Kandev's own tools (`kandev.mcp`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kandev.ports.tools import ToolCall

Answer = Callable[[str, ToolCall], Awaitable[None]]


async def echo(execution: str, call: ToolCall) -> None:
    """The response names the execution and repeats the parameters."""
    await respond(call, {"execution": execution, "params": call.message.get("params")})


async def silence(execution: str, call: ToolCall) -> None:
    """No answer, as long as the agent waits for one."""
    await call.left.wait()


async def respond(call: ToolCall, result: dict[str, Any]) -> None:
    """The response to a call."""
    await call.send({"jsonrpc": "2.0", "id": call.message["id"], "result": result}, last=True)


class FakeTools:
    """Implements `ports.tools.Tools`. `calls` are the tool calls that came, in their order; what a client
    asks beside them is answered at once."""

    def __init__(self, answer: Answer = echo) -> None:
        self.answer = answer
        self.calls: list[tuple[str, ToolCall]] = []
        self._came = asyncio.Event()

    async def handle(self, execution: str, call: ToolCall) -> None:
        if call.message["method"] != "tools/call":
            await echo(execution, call)
            return
        self.calls.append((execution, call))
        self._came.set()
        await self.answer(execution, call)

    async def until(self, count: int) -> ToolCall:
        """The n-th call, from 1, when it is there."""
        async with asyncio.timeout(10):
            while len(self.calls) < count:
                self._came.clear()
                await self._came.wait()
        return self.calls[count - 1][1]

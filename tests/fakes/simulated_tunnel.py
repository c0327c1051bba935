"""The tool calls of one simulated agent: held, handed to the backend that follows it, answered once.

A model of what agentctl and the backend's end of a lane guarantee together, written apart from both; the
contract suite holds them to the same. Not here: who answers (`ports.tools.Tools`).
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from kandev.ports.tools import Tools

OVER = "[INTERNAL_ERROR] The execution is over."
AWAY = "[INTERNAL_ERROR] The backend was away."


@dataclass(eq=False)
class SimCall:
    """As the agent waits for it."""

    call_id: str
    message: dict[str, Any]
    answer: asyncio.Future[dict[str, Any]]
    handed: bool = False
    patience: asyncio.TimerHandle | None = None

    def settle(self, message: dict[str, Any]) -> None:
        if not self.answer.done():
            self.answer.set_result(message)

    def fail(self, text: str) -> None:
        result = {"content": [{"type": "text", "text": text}], "isError": True}
        self.settle({"jsonrpc": "2.0", "id": self.message["id"], "result": result})

    def calm(self) -> None:
        if self.patience is not None:
            self.patience.cancel()


@dataclass(eq=False)
class Handled:
    """Implements `ports.tools.ToolCall` for one backend."""

    lane: "SimLane"
    call_id: str
    message: dict[str, Any]
    again: bool
    served: asyncio.Future[bool]
    left: asyncio.Event = field(default_factory=asyncio.Event)
    committed: bool = False
    version: str | None = None
    last: dict[str, Any] | None = None
    work: asyncio.Task[None] | None = None

    def commit(self) -> None:
        self.committed = True

    async def send(self, message: dict[str, Any], last: bool) -> None:
        if last and self.last is None:
            self.last = message
            self.lane.answered(self)

    def settle(self, served: bool) -> None:
        if not self.served.done():
            self.served.set_result(served)
        if not served:
            self.left.set()


class SimLane:
    """One backend's end: what it works at survives a lane that breaks."""

    def __init__(self, execution: str, tools: Tools) -> None:
        self._execution = execution
        self._tools = tools
        self._tunnel: SimTunnel | None = None
        self._handled: dict[str, Handled] = {}
        self._working: set[asyncio.Task[None]] = set()

    def open(self, tunnel: "SimTunnel") -> None:
        self._tunnel = tunnel
        for call_id in self._handled.keys() - tunnel.calls.keys():
            self.over(call_id, served=False)
        tunnel.attach(self)

    def take(self, call: SimCall, *, again: bool) -> None:
        if (known := self._handled.get(call.call_id)) is not None:
            self.answered(known)
            return
        served: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        handled = Handled(self, call.call_id, call.message, again, served)
        self._handled[call.call_id] = handled
        work = asyncio.ensure_future(self._tools.handle(self._execution, handled))
        self._working.add(work)
        work.add_done_callback(self._working.discard)

    def answered(self, handled: Handled) -> None:
        if handled.last is not None and self._tunnel is not None:
            self._tunnel.answered(self, handled.call_id, handled.last)

    def over(self, call_id: str, *, served: bool) -> None:
        if (handled := self._handled.pop(call_id, None)) is not None:
            handled.settle(served)

    async def close(self) -> None:
        """The backend goes; its calls wait for the next one."""
        if self._tunnel is not None:
            self._tunnel.detach(self)
        self.end()
        while left := set(self._working):
            for work in left:
                work.cancel()
            await asyncio.wait(left)

    def end(self) -> None:
        for call_id in list(self._handled):
            self.over(call_id, served=False)


class SimTunnel:
    """agentctl's end. Not `wanted`: the agent gets no tools."""

    def __init__(self, execution: str, hold_s: float, *, wanted: bool) -> None:
        self.calls: dict[str, SimCall] = {}
        self._execution = execution
        self._hold_s = hold_s
        self._over = not wanted
        self._wanted = wanted
        self._lane: SimLane | None = None
        self._count = 0

    async def call(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The agent's: the result. Cancelled: the agent has left."""
        if not self._wanted:
            return {"error": {"message": "session/new gave no tool server"}}
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        call = SimCall(f"{self._execution}.{self._count}", message, answer)
        if self._over:
            call.fail(OVER)
            return dict((await answer)["result"])
        self.calls[call.call_id] = call
        self._hand_over(call)
        served = False
        try:
            said = await answer
            served = True
        finally:
            self._forget(call, served=served)
        result = said.get("result")
        return dict(result) if isinstance(result, dict) else {"error": said["error"]}

    def attach(self, lane: SimLane) -> None:
        if not self._over:
            self._lane = lane
            for call in list(self.calls.values()):
                self._hand_over(call)

    def detach(self, lane: SimLane) -> None:
        if self._lane is lane:
            self._lane = None
            for call in list(self.calls.values()):
                self._hand_over(call)

    def answered(self, lane: SimLane, call_id: str, message: dict[str, Any]) -> None:
        if lane is self._lane and (call := self.calls.get(call_id)) is not None:
            call.settle(message)

    def close(self) -> None:
        self._over = True
        for call in self.calls.values():
            call.calm()
            call.fail(OVER)
        if self._lane is not None:
            self._lane.end()

    def _hand_over(self, call: SimCall) -> None:
        call.calm()
        if self._lane is None:
            call.patience = asyncio.get_running_loop().call_later(self._hold_s, call.fail, AWAY)
            return
        again, call.handed = call.handed, True
        self._lane.take(call, again=again)

    def _forget(self, call: SimCall, *, served: bool) -> None:
        call.calm()
        del self.calls[call.call_id]
        if self._lane is not None:
            self._lane.over(call.call_id, served=served)

"""An agent in memory, played by the test, and a sink that remembers what an adapter said."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kandev.agentctl.adapters.acp import AcpAdapter
from kandev.agentctl.adapters.base import PermissionAsk, Spec, Started, TurnEnd, WriteFailed
from kandev.agentctl.settings import Settings
from kandev.wire import agentctl as wire

DEADLINE_S = 5.0
Message = dict[str, Any]


class ScriptedAgent:
    """The process as an adapter sees it. `received` is every message that was written to it."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self.environment = dict(environment or {})
        self.received: list[Message] = []
        self.raw: list[bytes] = []
        self.input_closed = False
        self._out: asyncio.Queue[bytes] = asyncio.Queue()
        self._arrived = asyncio.Condition()
        self._taken = 0

    async def read(self) -> bytes:
        return await self._out.get()

    async def write(self, data: bytes) -> None:
        if self.input_closed:
            raise WriteFailed("The agent's input is closed.")
        async with self._arrived:
            self.raw.append(data)
            self.received.append(json.loads(data))
            self._arrived.notify_all()

    async def close_input(self) -> None:
        self.input_closed = True

    def say(self, *messages: Message) -> None:
        """One line each."""
        for message in messages:
            self.bytes(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def bytes(self, data: bytes) -> None:
        """Any bytes, as one chunk."""
        self._out.put_nowait(data)

    def update(self, session_id: str = "s1", **update: Any) -> None:
        """A `session/update`; `kind` is its sessionUpdate."""
        update["sessionUpdate"] = update.pop("kind_")
        self.say({"method": "session/update", "params": {"sessionId": session_id, "update": update}})

    def text(self, text: str) -> None:
        """A message chunk."""
        self.update(kind_="agent_message_chunk", content={"type": "text", "text": text})

    def answer(self, request: Message, result: Any) -> None:
        self.say({"id": request["id"], "result": result})

    def refuse(self, request: Message, code: int, message: str, data: Any = None) -> None:
        self.say({"id": request["id"], "error": {"code": code, "message": message, "data": data}})

    def end(self) -> None:
        """Stdout is at its end."""
        self._out.put_nowait(b"")

    async def next(self) -> Message:
        """The next message that was written to it."""
        async with asyncio.timeout(DEADLINE_S), self._arrived:
            await self._arrived.wait_for(lambda: len(self.received) > self._taken)
            self._taken += 1
            return self.received[self._taken - 1]

    async def expect(self, method: str) -> Message:
        """The next message, which must be this one."""
        message = await self.next()
        assert message.get("method") == method, message
        return message

    async def ask(self, method: str, params: Message, number: Any = "q1") -> Message:
        """Sends a request and returns the adapter's answer."""
        self.say({"id": number, "method": method, "params": params})
        answer = await self.next()
        assert answer["id"] == number, answer
        return answer


@dataclass
class Recorder:
    """The sink. `said` holds `(kind, members)` in order."""

    said: list[tuple[str, Any]] = field(default_factory=list)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    hold: asyncio.Event | None = None

    async def event(self, frame_type: type[wire.Frame], **members: Any) -> None:
        # Building the frame proves that the members fit it.
        frame_type(seq=1, journal_id="j", execution_id="e", at="t", **members)
        if self.hold is not None:
            await self.hold.wait()
        await self._note(frame_type.__name__, members)

    async def permission(self, ask: PermissionAsk) -> None:
        await self._note("permission", ask)

    async def turn_ended(self, end: TurnEnd) -> None:
        await self._note("turn_ended", end)

    async def closed(self) -> None:
        await self._note("closed", None)

    async def _note(self, kind: str, what: Any) -> None:
        async with self._changed:
            self.said.append((kind, what))
            self._changed.notify_all()

    async def until(self, kind: str, count: int = 1) -> Any:
        """Waits for the `count`-th of that kind."""

        def found() -> bool:
            return len(self.of(kind)) >= count

        async with asyncio.timeout(DEADLINE_S), self._changed:
            await self._changed.wait_for(found)
        return self.of(kind)[count - 1]

    def of(self, kind: str) -> list[Any]:
        """All of that kind."""
        return [what for said, what in self.said if said == kind]

    def texts(self) -> str:
        """The agent's answer so far."""
        return "".join(members["text"] for members in self.of("MessageChunk"))


INITIALIZED: Message = {
    "protocolVersion": 1,
    "agentCapabilities": {"loadSession": True, "sessionCapabilities": {"resume": {}}},
    "agentInfo": {"name": "scripted", "version": "1.2"},
}


@dataclass
class Stage:
    """An adapter with its agent and its sink, reading."""

    agent: ScriptedAgent
    sink: Recorder
    adapter: AcpAdapter
    running: asyncio.Task[None]
    cwd: str

    def begin(self, **members: Any) -> asyncio.Task[Started]:
        """`start`, beside the test."""
        return asyncio.create_task(self.adapter.start(Spec(cwd=self.cwd, **members)))

    async def open(self, **result: Any) -> Started:
        """The shortest handshake: session `s1`."""
        starting = self.begin()
        self.agent.answer(await self.agent.expect("initialize"), INITIALIZED)
        self.agent.answer(await self.agent.expect("session/new"), {"sessionId": "s1", **result})
        return await starting

    async def prompt(self, text: str = "hello") -> Message:
        """Prompts; the request that the agent got."""
        await self.adapter.prompt(text)
        return await self.agent.expect("session/prompt")

    async def close(self) -> None:
        self.agent.end()
        async with asyncio.timeout(DEADLINE_S):
            await self.running


MakeStage = Callable[..., Stage]


def make_stage(cwd: str, settings: Settings, **agent: Any) -> Stage:
    """Must be closed."""
    auth_method = agent.pop("auth_method", None)
    scripted, sink = ScriptedAgent(**agent), Recorder()
    adapter = AcpAdapter(scripted, sink, settings, auth_method=auth_method)
    return Stage(scripted, sink, adapter, asyncio.create_task(adapter.run()), cwd)

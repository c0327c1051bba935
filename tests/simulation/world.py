"""The simulated agentctl and its agents, recorded: what they were told, said and did is the truth.

`Wire` is one backend's way to it. A request that was sent arrives, although its sender is gone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from kandev.core import inputs
from kandev.core.session import Answer, TurnRef
from kandev.core.transcript import Text
from kandev.core.views import turn_id
from kandev.ports.execution import CancelRefused, Down, LaunchSpec, Prompted, Unreachable, Up
from tests.fakes.agentctl import SimAgentctl, SimAgents
from tests.fakes.simulated_execution import SimExecution
from tests.simulation.faults import Faults
from tests.simulation.loop import Domain

T = TypeVar("T")
TOKEN = re.compile(r"\bm\d+\b")
"""Every message of a schedule begins with one, so that an agent's prompt names its messages."""


class Watch(Protocol):
    """Hears of what reaches the world, at the moment it does."""

    def violated(self, rule: str, sentence: str) -> None: ...

    def calls(self, call: str, execution: str, about: Any) -> None: ...

    def cancelled(self, turn: TurnRef | None) -> None: ...

    def acknowledges(self, execution: str, position: int) -> None: ...


@dataclass(frozen=True)
class Handed:
    """A prompt that an agent got."""

    turn: TurnRef
    tokens: tuple[str, ...]


class World(SimAgentctl):
    """Outlives backends."""

    def __init__(self, faults: Faults) -> None:
        super().__init__()
        self.domain = Domain("world")
        self.faults = faults
        self.fault = faults.at_agentctl
        self.configure = self._watched
        self.watch: Watch | None = None
        self.handed: list[Handed] = []
        self.said: dict[str, list[str]] = {}
        """By turn id: what its agent said in it, before its end."""
        self.ended: set[str] = set()
        """Ids of the turns whose agents said that they ended."""
        self.everything: list[SimExecution] = []
        self.accept_s = 0.0
        self.end_s = 0.0
        self.survivors: tuple[str, ...] = ()

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        with self.domain.entered():
            return super().run(work)

    def living(self, session_id: str | None = None) -> list[SimExecution]:
        """Processes that live."""
        return [
            one
            for one in self.everything
            if one.state in ("starting", "ready") and session_id in (None, one.spec.session_id)
        ]

    def _watched(self, one: SimExecution) -> None:
        if (watch := self.watch) is not None and self.living(one.spec.session_id):
            watch.violated("one execution", f"{one.spec.execution} starts beside a living one")
        self.everything.append(one)
        one.accept_s, one.end_s, one.survivors = self.accept_s, self.end_s, self.survivors
        hand, cancel, append = one.agent.prompt, one.agent.cancel, one.append

        def prompted(content: str) -> None:
            assert one.turn is not None
            self.handed.append(Handed(one.turn.ref, tuple(TOKEN.findall(content))))
            hand(content)

        def cancelled() -> None:
            if self.watch is not None:
                self.watch.cancelled(one.turn.ref if one.turn else None)
            cancel()

        def appended(report: Any) -> None:
            if one.state not in ("ended", "failed"):
                self._hear(report)
            append(report)

        one.agent.prompt, one.agent.cancel, one.append = prompted, cancelled, appended  # type: ignore[method-assign]

    def _hear(self, report: Any) -> None:
        match report:
            case inputs.Ended(turn):
                self.ended.add(turn_id(turn))
            case inputs.Output(turn, Text("message", text)) if turn_id(turn) not in self.ended:
                self.said.setdefault(turn_id(turn), []).append(text)


class Wire(SimAgents):
    """One backend's port. `cut` when it is killed: nothing new is sent."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._world = world
        self.cut = False

    def _say(self, call: str, execution: str, about: Any = None) -> None:
        if not self.cut and self._world.watch is not None:
            self._world.watch.calls(call, execution, about)

    async def start(self, spec: LaunchSpec, deadline: float) -> Up:
        self._say("start", spec.execution)
        return await super().start(spec, deadline)

    async def prompt(self, turn: TurnRef, dispatch_id: str, content: str, deadline: float) -> Prompted:
        self._say("prompt", turn.execution, turn)
        if self._world.faults.refused_prompts:
            self._world.faults.refused_prompts -= 1
            if await self.dispatched(turn, dispatch_id, deadline) is False:  # for ever
                return Prompted(taken=False, reason="busy")
        return await super().prompt(turn, dispatch_id, content, deadline)

    async def cancel(self, turn: TurnRef, deadline: float) -> bool:
        self._say("cancel", turn.execution, turn)
        if self._world.faults.refused_cancels:
            self._world.faults.refused_cancels -= 1
            raise CancelRefused("the agent's process takes no input")
        return await super().cancel(turn, deadline)

    async def answer_permission(self, turn: TurnRef, request: str, answer: Answer, deadline: float) -> None:
        self._say("answer_permission", turn.execution, (request, answer))
        await super().answer_permission(turn, request, answer, deadline)

    async def end(self, execution: str, *, force: bool, deadline: float) -> Down:
        self._say("end", execution)
        return await super().end(execution, force=force, deadline=deadline)

    async def put_to_sleep(self, execution: str, seen: int, deadline: float) -> str | None:
        self._say("put_to_sleep", execution)
        return await super().put_to_sleep(execution, seen, deadline)

    async def follow(
        self, execution: str, journal: str, after: int, committed: Callable[[], int]
    ) -> AsyncIterator[inputs.Frame]:
        def acknowledged() -> int:
            if self._world.watch is not None and not self.cut:
                self._world.watch.acknowledges(execution, committed())
            return committed()

        async for frame in super().follow(execution, journal, after, acknowledged):
            yield frame

    async def _call(
        self,
        call: str,
        execution: str,
        deadline: float,
        serve: Callable[[], Coroutine[Any, Any, T]],
        *,
        check_epoch: bool = True,
    ) -> T:
        if self.cut:
            raise Unreachable("this backend was killed")
        sent = super()._call(call, execution, deadline, serve, check_epoch=check_epoch)
        return await asyncio.shield(self._world.run(sent))

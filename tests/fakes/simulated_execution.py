"""One execution of the simulated agentctl: fences, turns, journal, in memory and on the event loop alone.

A model of what agentctl guarantees, written apart from it; the contract suite holds both to the same. Not
here: the port and its faults (`agentctl`), what the agent does (`scripted_agent`).
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from kandev.agentctl.attribution import Attribution, Identity
from kandev.agentctl.settings import Settings
from kandev.core import inputs, transcript
from kandev.core.session import TurnRef
from kandev.ports.execution import Down, LaunchSpec, Prompted, Unreachable
from kandev.wire import agentctl as wire
from tests.fakes.scripted_agent import ScriptedAgent
from tests.fakes.simulated_permissions import SimPermissions
from tests.fakes.simulated_tunnel import SimTunnel

AT = "2026-01-01T00:00:00.000Z"
KINDS: dict[type[transcript.Content], type[wire.Frame]] = {
    transcript.Text: wire.MessageChunk,
    transcript.ToolCall: wire.ToolCall,
    transcript.ToolChange: wire.ToolUpdate,
    transcript.Plan: wire.Plan,
    transcript.Notice: wire.Notice,
    transcript.Meta: wire.Usage,
}


@dataclass(eq=False)
class SimTurn:
    ref: TurnRef
    written: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    cancelling: asyncio.Task[bool] | None = None
    cancel_written: bool = False
    cancelled: bool = False
    said_at: float = 0.0


@dataclass(eq=False)
class SimDispatch:
    answer: asyncio.Future[Prompted]

    def state(self) -> bool | None:
        if not self.answer.done() or self.answer.exception() is not None:
            return None
        return self.answer.result().taken

    def lose(self) -> None:
        """Nobody can tell any more."""
        if not self.answer.done():
            self.answer.set_exception(Unreachable("agentctl ended while this prompt was written."))
            self.answer.exception()  # looked at: who asked may be gone


class Work:
    """Tasks with one way out."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def run(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def cancel(self) -> set[asyncio.Task[Any]]:
        left = {task for task in self._running if task is not asyncio.current_task()}
        for task in left:
            task.cancel()
        return left

    async def close(self) -> None:
        while left := self.cancel():
            await asyncio.wait(left)


class SimExecution:
    """`accept_s`: seconds that a write to the agent takes; `end_s`: that ending it takes."""

    def __init__(self, spec: LaunchSpec, journal: str, settings: Settings, tunnel: SimTunnel) -> None:
        self.spec, self.journal, self.settings = spec, journal, settings
        self.frames: list[inputs.Frame] = []
        self.state = "starting"
        self.accept_s = self.end_s = 0.0
        self.survivors: tuple[str, ...] = ()
        self.mark = self.acknowledged = 0
        self.turn: SimTurn | None = None
        self.permissions, self.tunnel = SimPermissions(self), tunnel
        self.agent, self.dropped = ScriptedAgent(self, spec.execution), False
        self.over = asyncio.Event()
        own_s = spec.cancel_acknowledge_s
        self._acknowledge_s = settings.cancel_acknowledge_s if own_s is None else own_s
        self._known: dict[str, SimDispatch] = {}
        self._attribution = Attribution(settings.late_output_s)
        self._settle_until, self._own_turns = 0.0, 0
        self.exit_code: int | None = None
        self._tasks, self._agents = Work(), Work()
        self._news = asyncio.Event()

    # -- journal ----------------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Something that the agent does; it ends with the agent."""
        return self._agents.run(work)

    async def close(self) -> None:
        await self._agents.close()
        await self._tasks.close()

    def append(self, report: Any) -> None:
        if self.state in ("ended", "failed"):
            return
        self.frames.append(inputs.Frame(self.spec.execution, len(self.frames) + 1, report, AT))
        self.wake()

    def wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    async def news(self) -> None:
        await self._news.wait()

    def ready(self, conversation: str) -> None:
        self.append(inputs.Remembered(self.spec.execution, conversation))
        self.state = "ready"

    # -- prompts --------------------------------------------------------------------------------

    async def prompt(self, ref: TurnRef, dispatch_id: str, content: str, stale: str | None) -> Prompted:
        """`stale`: why the owner's epoch is refused, if it is."""
        if (known := self._known.get(dispatch_id)) is not None:
            return await asyncio.shield(known.answer)
        dispatch = self._known[dispatch_id] = SimDispatch(asyncio.get_running_loop().create_future())
        if (reason := stale or self._refusal(ref)) is not None:
            self.mark = max(self.mark, ref.generation)
            dispatch.answer.set_result(Prompted(taken=False, reason=reason))
            return dispatch.answer.result()
        self.mark = ref.generation
        own, turn = self.turn, SimTurn(ref)
        if own is not None:
            self._over(own, inputs.Ended(own.ref, "idle"))
        self.turn = turn
        self._tasks.run(self._write(turn, dispatch, content))
        return await asyncio.shield(dispatch.answer)

    def _refusal(self, ref: TurnRef) -> str | None:
        if ref.generation <= self.mark:
            return "old generation"
        if self.state != "ready":
            return "not ready" if self.state == "starting" else "ended"
        return None if self.turn is None or self.turn.ref.own else "busy"

    async def _write(self, turn: SimTurn, dispatch: SimDispatch, content: str) -> None:
        await asyncio.sleep(max(self.accept_s, self._settle_until - _now(), 0))
        if dispatch.answer.done():
            return
        if self.turn is not turn:
            dispatch.answer.set_result(Prompted(taken=False, reason="ended"))
            return
        self._attribution.started(Identity(turn.ref.generation))
        self.append(inputs.Taken(turn.ref))
        turn.written.set()
        dispatch.answer.set_result(Prompted(taken=True))
        self.agent.prompt(content)

    def dispatched(self, dispatch_id: str, generation: int) -> bool | None:
        if (known := self._known.get(dispatch_id)) is not None:
            return known.state()
        self.mark = max(self.mark, generation)
        dispatch = self._known[dispatch_id] = SimDispatch(asyncio.get_running_loop().create_future())
        dispatch.answer.set_result(Prompted(taken=False, reason="given up"))
        return False

    # -- cancel and permissions ---------------------------------------------------------------------

    async def cancel(self, ref: TurnRef) -> bool:
        turn = self.turn
        if turn is None or turn.ref != ref:
            self.mark = max(self.mark, ref.generation)
            return True
        if turn.cancelling is None or turn.cancelling.done():
            turn.cancelled = True
            turn.cancelling = self._tasks.run(self._cancel(turn))
        return await asyncio.shield(turn.cancelling)

    async def _cancel(self, turn: SimTurn) -> bool:
        self.permissions.cancel(turn.ref, "cancel")
        if turn.ref.own is None:
            await _either(turn.written, turn.over)
        deadline = _now() + self._acknowledge_s
        while not turn.over.is_set() and _now() < deadline:
            turn.cancel_written = True
            self.agent.cancel()
            await within(turn.over, min(self.settings.cancel_repeat_s, deadline - _now()))
            if turn.ref.own is not None and not turn.over.is_set():
                self._over(turn, inputs.Ended(turn.ref, "cancelled"))
        return turn.over.is_set()

    # -- what the agent does ------------------------------------------------------------------------

    async def said(self, content: transcript.Content) -> None:
        members = {
            name: getattr(content, name) for name in ("message_id", "tool_call_id") if hasattr(content, name)
        }
        identity = self._attribution.of_output(KINDS[type(content)], members, _now())
        ref = self._ref(identity or self._begin_own())
        if self.turn is not None and self.turn.ref == ref:
            self.turn.said_at = _now()
        no_turn = ref.generation == 0 and ref.own is None
        self.append(inputs.Said(ref.execution, content) if no_turn else inputs.Output(ref, content))

    async def asked(self, ask: transcript.PermissionAsk) -> asyncio.Future[str]:
        identity = self._attribution.of_permission(ask.tool_call_id, _now())
        ref = self._ref(identity or self._begin_own())
        answer = self.permissions.ask(ref, ask)
        if self.turn is None or self.turn.ref != ref:
            self.permissions.cancel(ref, "end")
        elif self.turn.cancelled:
            self.permissions.cancel(ref, "cancel")
        elif self.spec.auto_approve:
            self.permissions.approve(ask.request_id)
        return answer

    async def call_tool(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return await self.tunnel.call("tools/call", {"name": tool, "arguments": arguments})

    async def prompt_over(self, stop_reason: str, error: str | None) -> None:
        if self.turn is not None and self.turn.ref.own is None:
            self._over(self.turn, inputs.Ended(self.turn.ref, stop_reason, error))

    async def exited(self, code: int) -> None:
        self.exit_code = code
        self.finish()

    def _ref(self, identity: Identity) -> TurnRef:
        return TurnRef(self.spec.execution, identity.generation, identity.own_turn_id)

    def _begin_own(self) -> Identity:
        if self.turn is not None:
            return Identity(self.turn.ref.generation, self.turn.ref.own)
        self._own_turns += 1
        identity = Identity(0, f"own-{self._own_turns}")
        self.turn = SimTurn(self._ref(identity), said_at=_now())
        self._attribution.started(identity)
        self.append(inputs.OwnTurn(self.turn.ref))
        self._tasks.run(self._await_silence(self.turn))
        return identity

    async def _await_silence(self, turn: SimTurn) -> None:
        silent_s = self.settings.own_turn_silent_s
        while not turn.over.is_set():
            held = self.permissions.holds(turn.ref)
            left = turn.said_at + silent_s - _now()
            if left <= 0 and not held:
                self._over(turn, inputs.Ended(turn.ref, "idle"))
            await within(turn.over, max(left, silent_s / 10))

    def _over(self, turn: SimTurn, ended: inputs.Ended) -> None:
        if turn.over.is_set():
            return
        self.permissions.cancel(turn.ref, "end")
        self._attribution.ended(_now())
        if turn.cancel_written:
            self._settle_until = _now() + self.settings.cancel_settle_s
        if self.turn is turn:
            self.turn = None
        self.append(ended)
        turn.over.set()

    # -- ends -----------------------------------------------------------------------------------

    async def end(self) -> Down:
        if self.state in ("starting", "ready"):
            await asyncio.sleep(self.end_s)
            self.finish()
        return Down(len(self.frames), self.journal, self.survivors, self.exit_code)

    async def put_to_sleep(self, seen: int) -> str | None:
        goes_on = self.turn is not None or len(self.frames) > seen or self.agent.beside
        if self.state == "starting" or (self.state == "ready" and goes_on):
            return "something goes on, or still runs"
        await self.end()
        return None

    def lose(self) -> None:
        """agentctl dies: nobody knows what became of a prompt that was being written, nor how the agent
        ended."""
        for dispatch in self._known.values():
            dispatch.lose()
        self.finish()

    def finish(self) -> None:
        """The process is gone: the last frame closes what was open."""
        if self.state in ("ended", "failed"):
            return
        turn, self.turn = self.turn, None
        self.permissions.cancel(None, "end")
        self.append(inputs.Exited(self.spec.execution, self.exit_code))
        self.state = "ended" if self.state == "ready" else "failed"
        if turn is not None:
            turn.over.set()
        self._agents.cancel()
        self.tunnel.close()
        self.over.set()
        self.wake()


async def _either(*events: asyncio.Event) -> None:
    waiters = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()


async def within(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def _now() -> float:
    return asyncio.get_running_loop().time()

"""Bugs that are put into the product on purpose, to see that the simulation finds each of them.

Each is one rule of turn control left out, in the module that keeps it. The product's code stays as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from kandev.core import decide, reports, sending, task, workflow
from kandev.core.effects import Prompt, Reply, Teardown
from kandev.core.errors import StoreFault
from kandev.core.inputs import Asleep, CancelFailed, Ended, Gone, Refused, Send, Taken
from kandev.core.session import Launch, Session
from kandev.core.steps import Step
from kandev.core.views import owed
from kandev.ports.execution import Unreachable
from kandev.runtime import keeper
from kandev.runtime.actor import Actor
from kandev.runtime.effects import SessionEffects
from kandev.runtime.prompting import prompt_of

Plant = Callable[[], contextlib.AbstractContextManager[Any]]


def _no_staleness_check() -> contextlib.AbstractContextManager[Any]:
    """Every report is taken for one about the present turn."""

    def stale(s: Session, given: Any) -> bool:
        return s.turn is None or s.launch is not Launch.READY if hasattr(given, "turn") else really(s, given)

    really = decide._stale
    return patch.object(decide, "_stale", stale)


def _no_parking() -> contextlib.AbstractContextManager[Any]:
    """After a person's cancel the queue runs on."""

    def over(s: Session, stop_reason: str, cause: str, error: str | None = None) -> Step:
        after, notes = really(s, stop_reason, cause, error)
        cancelled = s.turn is not None and s.turn.ending == "user"
        return (replace(after, parked=None) if cancelled else after), notes

    really = reports._over
    return patch.object(reports, "_over", over)


def _unknown_is_sent_again() -> contextlib.AbstractContextManager[Any]:
    """No answer is read as a refusal, without asking agentctl."""

    async def prompt(self: SessionEffects, effect: Prompt, tell: Any) -> None:
        turn = effect.turn
        content = await self._store.read(lambda tx: prompt_of(tx, self._session, effect))
        try:
            answer = await self._agents.prompt(turn, f"{turn.execution}:{turn.generation}", content, 10)
        except Unreachable:
            await tell(Refused(turn, "no answer"))
            return
        await tell(Taken(turn) if answer.taken else Refused(turn, answer.reason))

    return patch.object(SessionEffects, "_prompt", prompt)


def _effects_first(kind: type) -> contextlib.AbstractContextManager[Any]:
    """Effects of a kind are begun by the decision, before it is committed."""

    async def step(self: Actor) -> None:
        after, taken, notes = self._fold()
        for due in owed(after):
            if isinstance(due, kind) and due not in self._under_way:
                work = asyncio.create_task(self._outside.perform(due, self.tell))
                self._under_way[due] = (work, 0.0)
        with patch.object(self, "_fold", lambda: (after, taken, notes)):
            await really(self)

    really = Actor._step
    return patch.object(Actor, "_step", step)


def _answers_first() -> contextlib.AbstractContextManager[Any]:
    """Whoever asks hears the answer before it is true."""

    async def step(self: Actor) -> None:
        after, taken, notes = self._fold()
        for note in notes:
            if isinstance(note, Reply):
                self._answer(note)
        with patch.object(self, "_fold", lambda: (after, taken, notes)):
            await really(self)

    really = Actor._step
    return patch.object(Actor, "_step", step)


def _nobody_drains() -> contextlib.AbstractContextManager[Any]:
    """At the end of a turn nobody looks at the queue."""

    def ended(s: Session, given: Ended) -> Step:
        skip.append(True)
        return reports.ended(s, given)

    def start(s: Session) -> Step:
        if not skip:
            return really(s)
        skip.clear()
        return s, ()

    skip: list[bool] = []
    really = decide._next
    stack = contextlib.ExitStack()
    stack.enter_context(patch.dict(decide._HANDLERS, {Ended: ended}))
    stack.enter_context(patch.object(decide, "_next", start))
    return stack


def _seen_is_forgotten() -> contextlib.AbstractContextManager[Any]:
    """The journal's position is not stored with what it changed."""

    def stored(book: Any) -> Any:
        def booked(tx: Any, record: Any, decided: Step, stamp: Any, plan: Any) -> Any:
            after, notes = decided
            written = book(tx, record, (replace(after, seen=record.value.seen), notes), stamp, plan)
            return replace(written, value=after)

        return booked

    return patch.object(keeper, "book", stored(vars(keeper)["book"]))


def _acknowledged_at_once() -> contextlib.AbstractContextManager[Any]:
    """agentctl may forget what is not committed yet."""
    return patch.object(SessionEffects, "_committed", lambda self: self._record.value.seen + 1)


def _no_teardown() -> contextlib.AbstractContextManager[Any]:
    """A stopped process is called gone without being ended."""

    async def teardown(self: SessionEffects, effect: Teardown, tell: Any) -> None:
        await tell(Gone(effect.execution, None))

    return patch.object(SessionEffects, "_teardown", teardown)


def _stop_goes_on() -> contextlib.AbstractContextManager[Any]:
    """The effects of a stopped session are not taken back."""

    def let_go(self: Actor, task: Any) -> None:
        if not task.done() and "Prompt" not in task.get_name():
            really(self, task)

    really = Actor._let_go
    return patch.object(Actor, "_let_go", let_go)


def _no_second_chance() -> contextlib.AbstractContextManager[Any]:
    """After a failed commit the actor goes on with what it believes."""

    async def reload(self: Actor, taken: Any, fault: StoreFault) -> None:
        for given in taken:
            self._fail(getattr(given, "ask", ""), fault)

    return patch.object(Actor, "_reload", reload)


def _review_beside_work() -> contextlib.AbstractContextManager[Any]:
    """A turn's end moves the task although another session works."""
    return patch.object(task, "WORKING_SESSIONS", frozenset({"STARTING"}))


def _joined_twice() -> contextlib.AbstractContextManager[Any]:
    """A returned entry goes to the end of the queue instead of its place."""

    def give_back(s: Session) -> Session:
        assert s.turn is not None
        return replace(s, queue=(*s.queue, *s.turn.entries), turn=replace(s.turn, entries=()))

    return patch.object(reports, "give_back", give_back)


def _full_is_no_limit() -> contextlib.AbstractContextManager[Any]:
    """A refused message is stored all the same."""

    def send(s: Session, given: Any) -> Step:
        after, notes = really(s, given)
        if notes and isinstance(notes[0], Reply) and notes[0].status == "queue_full":
            stored, more = really(s, replace(given, limit=0))
            return stored, (*notes, *more)
        return after, notes

    really = sending.send
    return patch.dict(decide._HANDLERS, {Send: send})


def _deaf_while_it_dozes() -> contextlib.AbstractContextManager[Any]:
    """What the agent says while agentctl is asked is taken for history."""
    return patch.object(reports, "awake", lambda s: s)


def _asleep_whatever_agentctl_says() -> contextlib.AbstractContextManager[Any]:
    """An agent that something goes on in is ended all the same."""

    async def doze(self: SessionEffects, execution: str, seen: int, tell: Any) -> None:
        await self._agents.put_to_sleep(execution, seen, 10)
        await tell(Asleep(execution))

    return patch.object(SessionEffects, "_doze", doze)


def _interrupts_whatever_runs() -> contextlib.AbstractContextManager[Any]:
    """An interrupt ends the turn that it meets, be it another one."""
    return patch.object(sending, "_takes_the_place", lambda s, given: True)


def _a_failed_cancel_keeps_its_promise() -> contextlib.AbstractContextManager[Any]:
    """An interrupt whose cancel failed goes on being first: its sender is told nothing."""

    def cancel_failed(s: Session, given: CancelFailed) -> Step:
        after, notes = really(s, given)
        return replace(after, jumps=s.jumps), notes

    really = reports.cancel_failed
    return patch.dict(decide._HANDLERS, {CancelFailed: cancel_failed})


def _interrupts_park() -> contextlib.AbstractContextManager[Any]:
    """The end of an interrupted turn parks what waits behind."""

    def over(s: Session, *args: Any) -> Step:
        silent = s.turn is not None and s.turn.ending == "interrupt"
        after, notes = really(s, *args)
        return (replace(after, parked="silently") if silent and after.queue else after), notes

    really = reports._over
    return patch.object(reports, "_over", over)


def _sent_when_it_is_stored() -> contextlib.AbstractContextManager[Any]:
    """Who interrupts hears "sent" before the agent has anything."""

    def send(s: Session, given: Any) -> Step:
        after, notes = really(s, given)
        if given.interrupt is None or given.ask in {n.ask for n in notes if isinstance(n, Reply)}:
            return after, notes
        return after, (*notes, Reply(given.ask, "sent"))

    really = sending.send
    return patch.dict(decide._HANDLERS, {Send: send})


def _turns_of_any_entering_move() -> contextlib.AbstractContextManager[Any]:
    """Two sessions that complete their turn in one step move the card twice."""
    real = workflow.turn_closed

    def closed(now: workflow.Snapshot, end: Any, entered: int, *, held: bool) -> workflow.Moved:
        return real(now, end, now.task.entered, held=held)

    return patch.object(workflow, "turn_closed", closed)


def _every_end_completes() -> contextlib.AbstractContextManager[Any]:
    """A turn that was lost, stopped or interrupted runs the step too."""
    return patch.object(workflow, "completed", lambda end: True)


BUGS: dict[str, Plant] = {
    "turns of any entering move": _turns_of_any_entering_move,
    "every end completes": _every_end_completes,
    "no staleness check": _no_staleness_check,
    "no parking after a cancel": _no_parking,
    "unknown is sent again": _unknown_is_sent_again,
    "prompt before the commit": lambda: _effects_first(Prompt),
    "teardown before the commit": lambda: _effects_first(Teardown),
    "answer before the commit": _answers_first,
    "nobody drains": _nobody_drains,
    "seen is forgotten": _seen_is_forgotten,
    "acknowledged before the commit": _acknowledged_at_once,
    "gone without a teardown": _no_teardown,
    "stop takes nothing back": _stop_goes_on,
    "no reading anew": _no_second_chance,
    "review beside work": _review_beside_work,
    "not in its place": _joined_twice,
    "full is no limit": _full_is_no_limit,
    "deaf while it dozes": _deaf_while_it_dozes,
    "asleep whatever agentctl says": _asleep_whatever_agentctl_says,
    "interrupts whatever runs": _interrupts_whatever_runs,
    "a failed cancel keeps its promise": _a_failed_cancel_keeps_its_promise,
    "interrupts park": _interrupts_park,
    "sent when it is stored": _sent_when_it_is_stored,
}


@contextlib.contextmanager
def planted(name: str | None) -> Iterator[None]:
    """With this bug, or with none."""
    with BUGS[name]() if name else contextlib.nullcontext():
        yield

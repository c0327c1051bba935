"""What a session does next. Pure: no I/O, no clock, no await.

Four ideas carry the rules (`sending`, `queueing`, `asks`, `questions`, `reports`):

* A handler only changes facts. `_next` alone starts turns and processes; it runs after every input, so
  nothing that may run is ever left lying.
* What is owed to the outside is a function of the value (`views.owed`, `views.timers`). The actor performs
  the difference between before and after; after a crash it performs all of it again.
* A turn is over only by a report about that turn, or because its process is proven gone.
* An ask waits only while its entry is promised the next turn; otherwise it hears "queued".

Not here: the text of output, what several sessions of a task have to do with each other (`task`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kandev.core import asks, questions, queueing, reports, sending
from kandev.core.effects import Claimed, Dropped, LaunchOver, Note, Review, TurnOpened
from kandev.core.inputs import (
    Allow,
    AskPerson,
    Asleep,
    AutoRun,
    Awake,
    Cancel,
    CancelFailed,
    CancelHeard,
    CancelUnheard,
    Clear,
    Drain,
    Edit,
    Ended,
    Exited,
    Expired,
    Frame,
    Gone,
    Input,
    LaunchFailed,
    Looked,
    Output,
    OwnTurn,
    Park,
    PermissionAsked,
    PermissionDone,
    QuestionDone,
    QuestionLeft,
    QuestionReport,
    Ready,
    Refused,
    Remembered,
    Remove,
    Reorder,
    Respond,
    Resume,
    Said,
    Send,
    SendNow,
    Stop,
    Taken,
    TurnReport,
)
from kandev.core.machines import check
from kandev.core.session import Launch, Outcome, Phase, Session, Turn, TurnRef
from kandev.core.steps import CANCELLED_BY_A_PERSON, CLAIMED, NOT_PROVEN_GONE, Step, replies, silent
from kandev.core.views import batch, timers, wire_state


def decide(before: Session, given: Input) -> Step:
    """The next value and what is to be written or told with it. Raises IllegalMove: a bug in the rules."""
    s, report = before, given
    if isinstance(given, Frame):
        early = s.launch in (Launch.ABSENT, Launch.STARTING)
        if given.execution != s.execution or given.seq <= s.seen or early:
            return before, (Dropped(given),)
        s, report = _aside(replace(s, seen=given.seq), given.report)
        if s.launch is Launch.DOZING and not isinstance(report, Exited):
            # It spoke: agentctl, which knows that too, does not end it.
            up = reports.awake(s)
            s, report = (s, Awake(s.execution)) if _stale(up, report) else (up, report)
    if _stale(s, report):
        return s, (Dropped(report),)
    s, notes = _HANDLERS[type(report)](s, report)
    s, started = _next(s)
    s, answered = _answer_unpromised(s)
    if s.cancelling != before.cancelling:
        s = replace(s, cancellations=s.cancellations + 1)
    check(before, s)
    return s, (*notes, *started, *_nothing_to_say(before, s, notes), *answered)


def recovered(s: Session) -> Session:
    """The value as it is after a crash: whoever waited is gone. What is owed is then done again.

    A row that claims a turn without a process lies: its execution is looked for and ended, which settles it.
    """
    if s.turn and s.launch is Launch.ABSENT:
        s = replace(s, launch=Launch.CLOSING, closing="its process was not known any more")
    turn = replace(s.turn, asks=(), entries=silent(s.turn.entries)) if s.turn else None
    questions = tuple(
        replace(q, waits=False, answer=replace(q.answer, asks=())) if q.answer else q for q in s.questions
    )
    return replace(s, queue=silent(s.queue), turn=turn, questions=questions)


def _aside(s: Session, report: Input) -> tuple[Session, Input]:
    """What an agent says by itself before our prompt reaches it is heard, although that turn is not shown."""
    match report:
        case OwnTurn(turn) if s.phase is Phase.DISPATCHING:
            return replace(s, aside=turn), report
        case Output(turn, content) if s.phase is Phase.DISPATCHING and turn == s.aside:
            return s, Said(s.execution, content)
        case Ended(turn) if turn == s.aside:
            return replace(s, aside=None), report
    return s, report


def _stale(s: Session, given: Input) -> bool:
    """The one staleness check. What is about anything but the present is history."""
    match given:
        case Expired(timer):
            return timer not in timers(s)
        case Ready(execution) | LaunchFailed(execution):
            return execution != s.execution or s.launch is not Launch.STARTING
        case Exited(execution):
            return execution != s.execution or s.launch not in (Launch.STARTING, Launch.READY, Launch.DOZING)
        case Gone(execution) | Looked(execution):
            return execution != s.execution or s.launch not in (Launch.CLOSING, Launch.LOST)
        case Asleep(execution) | Awake(execution):
            return execution != s.execution or s.launch is not Launch.DOZING
        case Remembered(execution) | Said(execution):
            return execution != s.execution or s.launch is Launch.ABSENT
        case OwnTurn(turn):
            # Also of a process that is being ended, if it was up: it began before it knew that.
            up = s.launch is Launch.READY or (s.launch is Launch.CLOSING and s.journal is not None)
            idle = s.turn is None and up and s.outcome is Outcome.OPEN
            return not idle or turn.execution != s.execution
        case QuestionReport():
            return questions.stale(s, given)
        case TurnReport(turn):
            return s.turn is None or s.turn.ref != turn or _contradicts(s, s.turn, given)
    return False


def _contradicts(s: Session, turn: Turn, given: TurnReport) -> bool:
    """About the present turn, and yet of no consequence."""
    if s.launch is not Launch.READY and turn.ending in CLAIMED:
        return True  # we claimed its end: the real one is late
    match given:
        case Refused():
            return turn.taken
        case CancelFailed(_, attempt) | CancelHeard(_, attempt) | CancelUnheard(_, attempt):
            if isinstance(given, CancelUnheard) and turn.heard:
                return True  # asked again after a crash, and answered before it
            return attempt != turn.attempt or turn.ending is None or s.launch is not Launch.READY
    return False


def _next(s: Session) -> Step:
    """The one rule that starts things."""
    parked = s.parked if s.queue else None
    s = replace(s, parked=parked, retry=s.retry and bool(s.queue) and parked is None)
    coming = batch(s)
    if s.turn or s.outcome is not Outcome.OPEN or not (coming or s.resuming):
        return s, ()
    if s.launch is Launch.ABSENT:
        return replace(
            s,
            launch=Launch.STARTING,
            executions=s.executions + 1,
            seen=0,
            journal=None,
            closing=None,
            force=False,
            looked=False,
        ), ()
    if s.launch is not Launch.READY or not coming:
        return s, ()
    taken_out = {e.id for e in coming}
    queue = tuple(e for e in s.queue if e.id not in taken_out)
    s = replace(
        s,
        generation=s.generation + 1,
        aside=None,
        retry=False,
        queue=queue,
        jumps=tuple(j for j in s.jumps if j not in taken_out),
        parked=s.parked if queue else None,
    )
    ref = TurnRef(s.execution, s.generation)
    return replace(s, turn=Turn(ref, coming)), (TurnOpened(ref), Claimed(ref, tuple(e.id for e in coming)))


def _answer_unpromised(s: Session) -> Step:
    coming = (Launch.STARTING, Launch.CLOSING, Launch.DOZING)
    soon = batch(s) if not s.turn and s.launch in coming else ()
    promised = {*s.jumps, *(e.id for e in soon)}
    idle = [e for e in s.queue if e.asks and e.id not in promised]
    if not idle:
        return s, ()
    queue = tuple(replace(e, asks=()) if e in idle else e for e in s.queue)
    return replace(s, queue=queue), replies((a for e in idle for a in e.asks), "queued")


def _nothing_to_say(before: Session, after: Session, notes: tuple[Note, ...]) -> tuple[Note, ...]:
    """A start that ends without a turn is over for the task too: it came up, was called off, may not be."""
    over = wire_state(before) == "STARTING" and wire_state(after) == "WAITING_FOR_INPUT"
    if not over or any(isinstance(note, LaunchOver | Review) for note in notes):
        return ()
    why = NOT_PROVEN_GONE if after.launch is Launch.LOST else None
    return (LaunchOver(why, cancelled=after.parked == CANCELLED_BY_A_PERSON),)


_HANDLERS: Mapping[type, Callable[[Session, Any], Step]] = {
    Send: sending.send,
    SendNow: sending.send_now,
    Remove: queueing.remove,
    Clear: queueing.clear,
    Edit: queueing.edit,
    Reorder: queueing.reorder,
    Drain: queueing.drain,
    AutoRun: queueing.auto_run,
    Park: queueing.park,
    AskPerson: questions.ask,
    Respond: questions.respond,
    QuestionLeft: questions.left,
    QuestionDone: questions.done,
    Cancel: asks.cancel,
    Stop: asks.stop,
    Resume: asks.resume,
    Allow: asks.allow,
    Taken: reports.taken,
    Output: reports.output,
    OwnTurn: reports.own_turn,
    Refused: reports.refused,
    Ended: reports.ended,
    CancelFailed: reports.cancel_failed,
    CancelHeard: reports.cancel_heard,
    CancelUnheard: reports.cancel_unheard,
    PermissionAsked: reports.permission_asked,
    PermissionDone: reports.permission_done,
    Ready: reports.ready,
    LaunchFailed: reports.launch_failed,
    Exited: reports.exited,
    Looked: reports.looked,
    Gone: reports.gone,
    Asleep: reports.asleep,
    Awake: lambda s, _: (reports.awake(s), ()),
    Remembered: reports.remembered,
    Said: reports.said,
    Expired: reports.expired,
}

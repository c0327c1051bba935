"""What follows from a session's value: its wire state, what is owed, what is waited for. No rules."""

from typing import Final

from kandev.core.effects import (
    AnswerPermission,
    CancelTurn,
    Doze,
    Follow,
    HandAnswer,
    Owed,
    Prompt,
    Start,
    Teardown,
    Timer,
)
from kandev.core.session import Entry, Launch, Outcome, Session, Turn, TurnRef

SWITCHED_OFF: Final = "auto-run was switched off"
"""Why a queue is parked by a person's switch."""


def wire_state(s: Session) -> str:
    """The session state that the world sees: a projection, never an input to a rule."""
    if s.outcome is not Outcome.OPEN:
        return s.outcome.upper()
    if s.turn and not s.resuming:
        return "RUNNING"
    if s.launch is Launch.STARTING or starts_over(s):
        return "STARTING"
    return "WAITING_FOR_INPUT" if s.executions else "CREATED"


def starts_over(s: Session) -> bool:
    """The process ends, and something waits for the next one."""
    return s.launch in (Launch.CLOSING, Launch.DOZING) and (s.resuming or bool(batch(s)))


def execution_status(s: Session) -> str | None:
    """`starting`, `ready`, `busy`, `replacing`, `ending`; None without an execution. It is gone only when
    that was seen."""
    match s.launch:
        case Launch.ABSENT:
            return None
        case Launch.STARTING:
            return "starting"
        case Launch.READY:
            return "busy" if s.turn else "ready"
        case Launch.DOZING:
            return "replacing" if starts_over(s) else "ready"
        case _:
            return "replacing" if s.outcome is Outcome.OPEN else "ending"


def waiting_for(s: Session) -> str | None:
    """`permission` while the agent waits for a decision of ours, `question` for an answer."""
    if s.launch is Launch.READY and any(p.answer is None for p in s.permissions):
        return "permission"
    return "question" if asks_a_person(s) else None


def asks_a_person(s: Session) -> bool:
    """A question is open: then the queue does not run, and no workflow goes on."""
    return any(q.answer is None for q in s.questions)


def held(s: Session) -> str | None:
    """Why the queue does not run by itself, as far as that is a person's matter."""
    return s.parked or (None if s.auto_run else SWITCHED_OFF)


def current_turn(s: Session) -> TurnRef | None:
    """What somebody who interrupts now aims at: the turn under way, or the one that a launch will begin."""
    return s.turn.ref if s.turn else coming_turn(s)


def coming_turn(s: Session) -> TurnRef | None:
    """The turn that a launch under way, or the next one, will begin."""
    if s.turn is not None or not batch(s):
        return None
    if s.launch is Launch.STARTING:
        return TurnRef(s.execution, s.generation + 1)
    if s.launch in (Launch.CLOSING, Launch.DOZING):
        return TurnRef(f"{s.id}.{s.executions + 1}", s.generation + 1)
    return None


def owed(s: Session) -> tuple[Owed, ...]:
    """Everything that has to be done outside, in the order in which it should begin."""
    match s.launch:
        case Launch.ABSENT:
            return ()
        case Launch.STARTING:
            return (Start(s.execution),)
        case Launch.CLOSING | Launch.LOST:
            unsettled = s.turn.ref if s.turn and not s.turn.taken else None
            return (Teardown(s.execution, unsettled, s.force),)
        case Launch.DOZING:
            return (Doze(s.execution, s.seen),)
    due: list[Owed] = [Follow(s.execution)]
    if s.turn:
        if not s.turn.taken:
            due.append(Prompt(s.turn.ref, tuple(e.id for e in s.turn.entries), not s.introduced))
        if _cancels(s.turn):
            # agentctl answers the turn's permission requests itself, as part of its cancel: an answer of
            # ours beside it could reach the agent first and let it go on.
            due.append(CancelTurn(s.turn.ref, s.turn.attempt))
        elif not s.turn.ending:
            due += [AnswerPermission(s.turn.ref, p.request, p.answer) for p in s.permissions if p.answer]
    due += [HandAnswer(q.turn, q.id, q.answer.id, not q.waits) for q in s.questions if q.answer]
    return tuple(due)


def _cancels(turn: Turn) -> bool:
    """A silent end waits until it is known whether the agent has the prompt: nobody is in a hurry to see
    it end, and a cancel that comes too early is lost at some agents."""
    return turn.ending is not None and (turn.taken or turn.ending != "interrupt")


def timers(s: Session) -> frozenset[Timer]:
    """Everything that is waited for has an end."""
    in_hand = tuple(q.answer for q in s.questions if q.answer)
    due = {Timer("ask", a) for e in (*s.queue, *in_turn(s), *in_hand) for a in e.asks}
    due |= {Timer("question", q.id) for q in s.questions if q.answer is None}
    if s.launch is Launch.STARTING:
        due.add(Timer("start", s.execution))
    if s.launch is Launch.CLOSING:
        # Read on, it begins anew with every frame: what is waited for then is no process any more.
        due.add(Timer("close", (s.execution, s.seen) if s.looked else s.execution))
    if s.launch is Launch.DOZING:
        due.add(Timer("doze", s.execution))
    if may_sleep(s):
        # Whatever the agent says moves `seen`, and the wait begins anew.
        due.add(Timer("idle", f"{s.execution}:{s.seen}"))
    if s.turn:
        due |= {Timer("cancel", a) for a in s.turn.asks}
        if s.launch is Launch.READY:
            if not s.turn.taken:
                due.add(Timer("accept", s.turn.ref))
            if _cancels(s.turn):
                due.add(Timer("end", _end(s, s.turn)))
    if s.retry:
        due.add(Timer("retry", s.generation))
    return frozenset(due)


def may_sleep(s: Session) -> bool:
    """Nothing to do and nothing to come; a process that ended now would lose nothing that we know of."""
    quiet = s.launch is Launch.READY and s.turn is None and s.outcome is Outcome.OPEN
    in_hand = any(q.answer for q in s.questions)
    return quiet and s.conversation is not None and not s.retry and not batch(s) and not in_hand


def _end(s: Session, turn: Turn) -> tuple[TurnRef, int] | tuple[TurnRef, int, int]:
    """An agent has one deadline to obey. An end that is known to come is waited for as long as the journal
    goes on: the deadline begins anew with every frame."""
    return (turn.ref, turn.attempt, s.seen) if turn.heard else (turn.ref, turn.attempt)


def batch(s: Session) -> tuple[Entry, ...]:
    """What the next turn would say, if it could begin now."""
    if s.outcome is not Outcome.OPEN:
        return ()
    jumping = tuple(e for i in s.jumps for e in s.queue if e.id == i)
    if jumping:
        # A session's first prompt begins with its first message, unless a person has cancelled its turn.
        by_peers = all(e.by != "person" for e in jumping)
        opens = s.generation == 0 or (not s.spoken and by_peers)
        first = s.queue[:1] if opens and not s.parked else ()
        return (*(e for e in first if e not in jumping), *jumping)
    return () if held(s) or s.retry or asks_a_person(s) else s.queue[:1]


def in_turn(s: Session) -> tuple[Entry, ...]:
    """The entries that the present turn carries."""
    return s.turn.entries if s.turn else ()


def needs_actor(s: Session) -> bool:
    """Whether something is under way, or would start by itself."""
    runs = bool(s.queue) and not held(s) and s.outcome in (Outcome.OPEN, Outcome.COMPLETED)
    asks = bool(s.questions)
    return s.launch is not Launch.ABSENT or s.turn is not None or s.retry or s.resuming or runs or asks


def dispatch_id(turn: TurnRef) -> str:
    """The id under which agentctl knows a prompt attempt."""
    return f"{turn.execution}:{turn.generation}"


def turn_id(turn: TurnRef) -> str:
    """The id of a turn's row."""
    return f"{turn.execution}:{turn.own or turn.generation}"

"""What people and programs ask of a session, one rule each. Run by `decide` only.

An ask that does not have to wait is answered here; one that waits for the agent is kept on its entry or
turn and answered by the report that settles it.
"""

from dataclasses import replace
from typing import Final

from kandev.core.effects import Enqueued, Fate, Line, Note, Reply, Review, TurnClosed
from kandev.core.inputs import Allow, Cancel, Remove, Resume, Send, Stop
from kandev.core.session import Entry, Launch, Outcome, Session
from kandev.core.steps import (
    CANCELLED_BY_A_PERSON,
    COMPLETED,
    NOT_PROVEN_GONE,
    NOT_RUNNING,
    TIMED_OUT,
    Step,
    closed,
    ending,
    replies,
)
from kandev.core.views import batch, in_turn, wire_state

LEFT_BY_RESUME_ONLY: Final = (Outcome.FAILED, Outcome.CANCELLED)
RESUMABLE: Final = ("CREATED", "WAITING_FOR_INPUT", "COMPLETED", "FAILED", "CANCELLED")


def send(s: Session, given: Send) -> Step:
    """A message: into the queue, whatever happens next."""
    if known := next((e for e in (*s.queue, *in_turn(s)) if e.id == given.entry.id), None):
        return _joined(s, given.ask, known)
    if s.outcome in LEFT_BY_RESUME_ONLY:
        state = wire_state(s)
        sentence = f"The session is {state}: resume it before sending a message."
        return s, (Reply(given.ask, "rejected", sentence, {"state": state}),)
    starts = s.launch is Launch.STARTING and not s.parked
    idle = s.turn is None and s.launch is not Launch.LOST and not starts
    by_person = given.entry.by == "person"
    # A person is heard at once on an idle session, and next while a person's cancel runs.
    jumps = s.launch is not Launch.LOST and by_person and ((idle and bool(s.parked)) or s.cancelling)
    size = len(s.queue)
    if given.limit and size >= given.limit and not (jumps and idle):
        details = {"error": "queue_full", "queue_size": size, "max": given.limit}
        sentence = f"The session's queue is full ({size} of {given.limit}): wait for it or remove an entry."
        return s, (Reply(given.ask, "queue_full", sentence, details),)
    return _enqueued(s, given, waits=jumps or idle, jumps=jumps, releases=by_person and idle)


def _enqueued(s: Session, given: Send, *, waits: bool, jumps: bool, releases: bool) -> Step:
    first = s.executions == 0 and s.launch is Launch.ABSENT
    entry = replace(given.entry, place=s.places + 1, asks=(given.ask,) if waits and not first else ())
    status = "started" if first else "queued"
    told: tuple[Note, ...] = () if entry.asks else (Reply(given.ask, status),)
    parked = None if releases else s.parked
    if s.launch is Launch.LOST and s.outcome is Outcome.COMPLETED:
        parked = parked or NOT_PROVEN_GONE  # nobody would drain a queue of a session that is over
    held = s.launch is Launch.LOST or (parked is not None and not jumps)
    s = replace(
        s,
        queue=(*s.queue, entry),
        places=entry.place,
        parked=parked,
        outcome=s.outcome if held else Outcome.OPEN,
        jumps=(*s.jumps, entry.id) if jumps else s.jumps,
        # A retry that waits must not hold up a person who speaks now.
        retry=s.retry and not releases,
    )
    return s, (Enqueued(entry, given.draft), *told)


def _joined(s: Session, ask: str, known: Entry) -> Step:
    """The same entry again: a place beside whoever still waits, or what is true now."""
    if not known.asks:
        taken = s.turn is not None and s.turn.taken and known in s.turn.entries
        return s, (Reply(ask, "sent" if taken else "queued"),)

    def swapped(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        return tuple(replace(e, asks=(*e.asks, ask)) if e is known else e for e in entries)

    turn = s.turn and replace(s.turn, entries=swapped(s.turn.entries))
    return replace(s, queue=swapped(s.queue), turn=turn), ()


def remove(s: Session, given: Remove) -> Step:
    """Out of the queue, by name. One that a turn has claimed cannot be taken back."""
    found = next((e for e in s.queue if e.id == given.entry), None)
    if found is None:
        claimed = any(e.id == given.entry for e in in_turn(s))
        return s, (Reply(given.ask, "claimed" if claimed else "not_found"),)
    s = replace(
        s,
        queue=tuple(e for e in s.queue if e is not found),
        jumps=tuple(j for j in s.jumps if j != found.id),
    )
    told: tuple[Note, ...] = (*replies(found.asks, "removed"), Reply(given.ask, "ok"))
    if s.retry and not s.queue:  # it was refused and waited for another try: nothing is tried any more
        s, told = replace(s, retry=False, refusals=0), (Review(), *told)
    return s, (Fate(found.id, "removed", by=given.by), *told)


def cancel(s: Session, given: Cancel) -> Step:
    """End the turn that is current now. Session, execution, turn: looked up in this order."""
    if s.outcome is not Outcome.OPEN or s.launch in (Launch.ABSENT, Launch.LOST):
        return s, (Reply(given.ask, "not_running", NOT_RUNNING),)
    if s.turn is None:
        return _cancel_before_a_turn(s, given)
    if s.launch is Launch.CLOSING and s.turn.ending == "user":
        return s, (Reply(given.ask, "timeout", TIMED_OUT),)
    if s.launch is Launch.CLOSING and s.turn.ending is None:  # it died: its end is settled already
        return s, (Reply(given.ask, "not_running", NOT_RUNNING),)
    if s.turn.ending != "user":
        s = replace(ending(s, "user", given.by), jumps=())
    assert s.turn is not None
    return replace(s, turn=replace(s.turn, asks=(*s.turn.asks, given.ask))), ()


def _cancel_before_a_turn(s: Session, given: Cancel) -> Step:
    starts = wire_state(s) == "STARTING"
    if s.launch is Launch.CLOSING and not starts:
        return s, (Reply(given.ask, "not_running", NOT_RUNNING),)
    if not (batch(s) or s.retry):
        return s, (Reply(given.ask, "ok"),)
    # The process comes up (or stays) and says nothing: what would have been said waits.
    s = replace(s, jumps=(), retry=False, refusals=0, parked=CANCELLED_BY_A_PERSON)
    line = Line("status", f"Turn cancelled by {given.by} before it began.", {"cancelled_by": given.by})
    return s, (line, Review(), Reply(given.ask, "ok"))


def stop(s: Session, given: Stop) -> Step:
    """End the session, whatever the agent is or is not doing."""
    stirs = s.launch is not Launch.ABSENT or s.retry  # it runs, or would again by itself
    if s.outcome is not Outcome.OPEN and stirs and given.force and not s.force:
        return replace(s, force=True), (Reply(given.ask, "stopped"),)  # stopped already: hurried
    if s.outcome is not Outcome.OPEN or not (stirs or given.idle_too):
        return s, (Reply(given.ask, "not_running"),)
    told = replies(s.turn.asks if s.turn else (), "stopped")
    shut = closed(s.permissions, s, "stop")
    over: tuple[Note, ...] = ()
    turn = s.turn
    if turn is not None and turn.taken:
        over, turn = (TurnClosed(turn.ref, "stopped", "stopped"),), None
    elif turn is not None:
        # Its prompt is on its way: `Gone` says what became of it, be the session resumed before that or not.
        turn = replace(turn, asks=(), ending="stop", ended_by=None)
    s = replace(
        s,
        outcome=given.outcome,
        launch=s.launch if s.launch in (Launch.ABSENT, Launch.LOST) else Launch.CLOSING,
        turn=turn,
        jumps=(),
        retry=False,
        resuming=False,
        permissions=(),
        closing=given.reason,
        force=given.force or s.force,
    )
    if given.outcome is Outcome.COMPLETED and s.queue:
        s = replace(s, parked=s.parked or COMPLETED)
    metadata = {"stopped_by": given.by, "reason": given.reason}
    line = Line("status", f"Session stopped by {given.by}: {given.reason}.", metadata)
    return s, (*told, *shut, *over, line, Review(), Reply(given.ask, "stopped"))


def resume(s: Session, given: Resume) -> Step:
    """Start a process, and take up what a terminal outcome had left. Releases nothing that is parked."""
    state = wire_state(s)
    if s.launch is Launch.LOST:
        sentence = "The session's old process is not proven gone: end it by hand, then resume."
        return s, (Reply(given.ask, "conflict", sentence),)
    if state not in RESUMABLE or (s.outcome is Outcome.OPEN and s.launch is Launch.READY):
        sentence = f"The session is {state} and its agent runs: there is nothing to resume."
        return s, (Reply(given.ask, "conflict", sentence),)
    s = replace(s, outcome=Outcome.OPEN, resuming=True, refusals=0, retry=False)
    return s, (Reply(given.ask, "resuming", details={"queued": len(s.queue)}),)


def allow(s: Session, given: Allow) -> Step:
    """A person's decision, taken once."""
    open_ones = {p.request for p in s.permissions if p.answer is None}
    if s.launch is not Launch.READY or given.request not in open_ones:
        return s, (Reply(given.ask, "not_found"),)
    permissions = tuple(
        replace(p, answer=given.answer) if p.request == given.request else p for p in s.permissions
    )
    return replace(s, permissions=permissions), (Reply(given.ask, "ok"),)

"""Cancel, stop, resume, and decisions about permissions: one rule each. Run by `decide` only.

An ask that does not have to wait is answered here; one that waits for the agent is kept on its entry or
turn and answered by the report that settles it.
"""

from dataclasses import replace
from typing import Final

from kandev.core.effects import Line, Note, Reply, Review, TurnClosed
from kandev.core.inputs import Allow, Cancel, Resume, Stop
from kandev.core.session import Launch, Outcome, Session
from kandev.core.steps import (
    CANCELLED_BY_A_PERSON,
    COMPLETED,
    NOT_RUNNING,
    TIMED_OUT,
    Step,
    closed,
    dropped,
    ending,
    replies,
)
from kandev.core.views import batch, wire_state

RESUMABLE: Final = ("CREATED", "WAITING_FOR_INPUT", "COMPLETED", "FAILED", "CANCELLED")


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
    told: tuple[Note, ...] = ()
    if s.turn.ending != "user":  # a silent end becomes a person's: what was promised by it is not
        s, told = ending(s, "user", given.by)
        s = replace(s, jumps=())
    assert s.turn is not None
    return replace(s, turn=replace(s.turn, asks=(*s.turn.asks, given.ask))), told


def _cancel_before_a_turn(s: Session, given: Cancel) -> Step:
    starts = wire_state(s) == "STARTING"
    if s.launch is Launch.CLOSING and not starts:
        return s, (Reply(given.ask, "not_running", NOT_RUNNING),)
    s, unasked = dropped(s, given.by)
    if unasked:
        s = replace(s, parked=CANCELLED_BY_A_PERSON if s.queue else s.parked)
    if not (batch(s) or s.retry):
        review = (Review(),) if unasked else ()
        return s, (*unasked, *review, Reply(given.ask, "ok"))
    # The process comes up (or stays) and says nothing: what would have been said waits.
    s = replace(s, jumps=(), retry=False, refusals=0, parked=CANCELLED_BY_A_PERSON)
    line = Line("status", f"Turn cancelled by {given.by} before it began.", {"cancelled_by": given.by})
    return s, (*unasked, line, Review(), Reply(given.ask, "ok"))


def stop(s: Session, given: Stop) -> Step:
    """End the session, whatever the agent is or is not doing."""
    # It runs, or would again by itself.
    stirs = s.launch is not Launch.ABSENT or s.retry or bool(s.questions)
    if s.outcome is not Outcome.OPEN and stirs and given.force and not s.force:
        return replace(s, force=True), (Reply(given.ask, "stopped"),)  # stopped already: hurried
    if s.outcome is not Outcome.OPEN or not (stirs or given.idle_too):
        return s, (Reply(given.ask, "not_running"),)
    told = replies(s.turn.asks if s.turn else (), "stopped")
    shut = closed(s.permissions, s, "stop")
    s, unasked = dropped(s, given.by)
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
    return s, (*told, *shut, *unasked, *over, line, Review(), Reply(given.ask, "stopped"))


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

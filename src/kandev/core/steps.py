"""Small steps that several rules of a session share. Not here: any rule of its own."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kandev.core.effects import Note, PermissionClosed, QuestionClosed, Reply
from kandev.core.session import Answer, Ending, Entry, Permission, Session
from kandev.core.views import in_turn

Step = tuple[Session, tuple[Note, ...]]

CANCELLED_BY_A_PERSON: Final = "cancelled by a person"
"""Why a queue is parked after an explicit cancel."""
COMPLETED: Final = "the session was completed"
NOT_PROVEN_GONE: Final = "the old process is not proven gone"
"""Why a queue is parked otherwise."""
FELL_ASLEEP: Final = "it had nothing to do"
"""Why a process is ended whose session sleeps."""
CLAIMED: Final = ("user", "interrupt")
"""Our intents that decide by themselves what the turn's end means."""
NOT_RUNNING: Final = "agent not running"
TIMED_OUT: Final = "cancel timed out, still under way"
"""What a cancel hears, in the contract's words."""


def replies(asks: Iterable[str], status: str, error: str | None = None) -> tuple[Note, ...]:
    """The same answer to all of them."""
    return tuple(Reply(a, status, error) for a in asks)


def silent(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Nobody waits for them (any more)."""
    return tuple(replace(e, asks=()) if e.asks else e for e in entries)


def ending(s: Session, why: Ending, by: str | None = None) -> Step:
    """Record the intent. Everything that the turn asked is answered as cancelled."""
    s, unasked = dropped(s, by)
    if s.turn is None:
        return s, unasked
    permissions = tuple(replace(p, answer=p.answer or Answer()) for p in s.permissions)
    attempt = s.turn.attempt + (s.turn.ending is None)
    turn = replace(s.turn, ending=why, attempt=attempt, ended_by=by or s.turn.ended_by)
    return replace(s, turn=turn, permissions=permissions), unasked


def dropped(s: Session, by: str | None = None) -> Step:
    """Nobody is asked any more. An answer that is in hand stays there until its way is known."""
    kept = tuple(q for q in s.questions if q.answer is not None)
    told = tuple(QuestionClosed(q.id, "cancelled", by) for q in s.questions if q.answer is None)
    return replace(s, questions=kept), told


def in_places(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """A queue of them: the order in which they came, or were put."""
    return tuple(sorted(entries, key=lambda e: e.place))


def waiting(s: Session, entry: str) -> Entry | None:
    """The entry of this id, if it waits."""
    return next((e for e in s.queue if e.id == entry), None)


def elsewhere(s: Session, entry: str) -> str:
    """What is answered about an entry that does not wait."""
    return "claimed" if any(e.id == entry for e in in_turn(s)) else "not_found"


def give_back(s: Session) -> Session:
    """Certainly not taken: every entry returns to its old place, and the turn carries none."""
    assert s.turn is not None
    queue = in_places((*s.queue, *s.turn.entries))
    return replace(s, queue=queue, turn=replace(s.turn, entries=()))


def closed(permissions: Iterable[Permission], s: Session, by: str) -> tuple[Note, ...]:
    """The transcript's account of requests that end with their turn."""
    if s.turn is None:
        return ()
    return tuple(PermissionClosed(s.turn.ref, p.request, "cancelled", by) for p in permissions)

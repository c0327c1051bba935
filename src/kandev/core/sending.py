"""Messages of people and programs: into the queue, ahead of it, or in the place of the current turn.

An entry that is promised the next turn keeps its asks until the agent has it; any other hears "queued" at
once. Nothing here starts a turn: `decide` does, for whatever the value then promises. Not here: what is done
with entries that wait (`queueing`), answers to questions (`questions`).
"""

from dataclasses import replace
from typing import Final

from kandev.core.effects import Enqueued, Fate, Note, Reply
from kandev.core.inputs import Send, SendNow
from kandev.core.session import Entry, Launch, Outcome, Session
from kandev.core.steps import (
    COMPLETED,
    NOT_PROVEN_GONE,
    Step,
    elsewhere,
    ending,
    in_places,
    replies,
    waiting,
)
from kandev.core.views import asks_a_person, batch, coming_turn, held, in_turn, wire_state

LEFT_BY_RESUME_ONLY: Final = (Outcome.FAILED, Outcome.CANCELLED)
REPLACED: Final = "A later message of the same automation took the place of this one."
"""What its sender hears, who still waited."""


def send(s: Session, given: Send) -> Step:
    """A message: into the queue, whatever happens next."""
    if known := next((e for e in (*s.queue, *in_turn(s)) if e.id == given.entry.id), None):
        return _joined(s, given.ask, known)
    if s.outcome in LEFT_BY_RESUME_ONLY:
        return s, (_rejected(s, given.ask),)
    older = _replaced(s, given.entry)
    idle, jumps = _is_idle(s), _jumps(s, given)
    at_once = jumps and idle and given.entry.by == "person"
    size = len(s.queue)
    if given.limit and size >= given.limit and older is None and not at_once:
        details = {"error": "queue_full", "queue_size": size, "max": given.limit}
        sentence = f"The session's queue is full ({size} of {given.limit}): wait for it or remove an entry."
        return s, (Reply(given.ask, "queue_full", sentence, details),)
    return _enqueued(s, given, older, waits=jumps or idle, jumps=jumps)


def _rejected(s: Session, ask: str) -> Reply:
    state = wire_state(s)
    sentence = f"The session is {state}: resume it before sending a message."
    return Reply(ask, "rejected", sentence, {"state": state})


def _is_idle(s: Session) -> bool:
    """The next turn could be this message's."""
    starts = s.launch is Launch.STARTING and held(s) is None
    return s.turn is None and s.launch is not Launch.LOST and not starts and not asks_a_person(s)


def _jumps(s: Session, given: Send) -> bool:
    """Ahead of what waits."""
    if given.patient or s.launch is Launch.LOST:
        return False
    if given.interrupt is not None:
        return _takes_the_place(s, given)
    # A person is heard at once on an idle session, and next while a person's cancel runs.
    return given.entry.by == "person" and ((_is_idle(s) and held(s) is not None) or s.cancelling)


def _takes_the_place(s: Session, given: Send) -> bool:
    """An interrupt aims at the turn that its sender saw. Another turn is spared, and a person's cancel
    outranks it."""
    assert given.interrupt is not None
    if s.turn is not None:
        return s.turn.ref == given.interrupt.noted and s.turn.ending != "user"
    coming = coming_turn(s)
    return coming is None or coming == given.interrupt.noted


def _replaced(s: Session, new: Entry) -> Entry | None:
    if new.coalesce is None:
        return None
    return next((e for e in s.queue if e.coalesce == new.coalesce), None)


def _enqueued(s: Session, given: Send, older: Entry | None, *, waits: bool, jumps: bool) -> Step:
    first = s.executions == 0 and s.launch is Launch.ABSENT and (jumps or held(s) is None)
    place = s.places + 1 if older is None else older.place
    entry = replace(given.entry, place=place, asks=(given.ask,) if waits and not first else ())
    status = "started" if first else "queued"
    told: tuple[Note, ...] = () if entry.asks else (Reply(given.ask, status),)
    if older is not None:
        told = (Fate(older.id, "replaced", by=entry.id), *replies(older.asks, "replaced", REPLACED), *told)
    releases = entry.by == "person" and not given.patient and _is_idle(s)
    parked = None if releases else s.parked
    if s.launch is Launch.LOST and s.outcome is Outcome.COMPLETED:
        parked = parked or NOT_PROVEN_GONE  # nobody would drain a queue of a session that is over
    waits_for_good = s.launch is Launch.LOST or ((parked is not None or not s.auto_run) and not jumps)
    if waits_for_good and s.outcome is Outcome.COMPLETED:
        parked = parked or COMPLETED
    ahead = _ahead(s, jumps and given.interrupt is not None)
    s = replace(
        s,
        queue=in_places((*(e for e in s.queue if e is not older), entry)),
        places=max(s.places, place),
        parked=parked,
        outcome=s.outcome if waits_for_good else Outcome.OPEN,
        jumps=(*ahead, entry.id) if jumps else s.jumps,
        # A retry that waits must not hold up a person who speaks now.
        retry=s.retry and not releases,
    )
    if jumps and given.interrupt is not None:
        s, closed = ends_silently(s)
        told = (*closed, *told)
    return s, (Enqueued(entry, given.draft), *told)


def _ahead(s: Session, interrupts: bool) -> tuple[str, ...]:
    """What goes out before an interrupt, in the same prompt: what its launch will begin with."""
    if not interrupts or s.turn is not None or coming_turn(s) is None:
        return s.jumps
    return (*(e.id for e in batch(s) if e.id not in s.jumps), *s.jumps)


def ends_silently(s: Session) -> Step:
    """The current turn, if there is one that goes on, ends for the sake of what jumps. An open question that
    it, or an earlier one, has left is not waited for any more."""
    if s.turn is None or (s.turn.ending is None and s.launch is Launch.READY):
        return ending(s, "interrupt")
    return s, ()


def _joined(s: Session, ask: str, known: Entry) -> Step:
    """The same entry again: a place beside whoever still waits, or what is true now."""
    if not known.asks:
        taken = s.turn is not None and s.turn.taken and known in s.turn.entries
        return s, (Reply(ask, "sent" if taken else "queued"),)

    def swapped(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        return tuple(replace(e, asks=(*e.asks, ask)) if e is known else e for e in entries)

    turn = s.turn and replace(s.turn, entries=swapped(s.turn.entries))
    return replace(s, queue=swapped(s.queue), turn=turn), ()


def send_now(s: Session, given: SendNow) -> Step:
    """Like an interrupt, by a person, of the turn that is current now; the queue runs by itself again."""
    found = waiting(s, given.entry)
    if found is None:
        return s, (Reply(given.ask, elsewhere(s, given.entry)),)
    if s.outcome in LEFT_BY_RESUME_ONLY:
        return s, (_rejected(s, given.ask),)
    if s.launch is Launch.LOST:
        sentence = "The session's old process is not proven gone: end it by hand, then send."
        return s, (Reply(given.ask, "conflict", sentence),)
    asked = replace(found, asks=(*found.asks, given.ask))
    s = replace(
        s,
        auto_run=True,
        parked=None,
        retry=False,
        outcome=Outcome.OPEN,
        queue=tuple(asked if e is found else e for e in s.queue),
        jumps=(*(id for id in _ahead(s, True) if id != found.id), found.id),
    )
    return ends_silently(s)

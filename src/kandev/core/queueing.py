"""What people do with entries that wait. An entry that a turn has claimed cannot be taken back.

Not here: what comes into the queue (`sending`).
"""

from dataclasses import replace
from typing import Final

from kandev.core.effects import Edited, Fate, Note, Placed, Reply, Review
from kandev.core.inputs import AutoRun, Clear, Drain, Edit, Park, Remove, Reorder
from kandev.core.session import Entry, Launch, Outcome, Session
from kandev.core.steps import NOT_PROVEN_GONE, Step, elsewhere, replies, waiting
from kandev.core.views import asks_a_person, held, wire_state

TAKEN_OUT: Final = "The message was taken out of the queue before an agent had it."
"""What its sender hears, who still waited."""


def remove(s: Session, given: Remove) -> Step:
    """One entry, by name."""
    found = waiting(s, given.entry)
    if found is None:
        return s, (Reply(given.ask, elsewhere(s, given.entry)),)
    s, told = _taken_out(s, (found,), given.by)
    return s, (*told, Reply(given.ask, "ok"))


def clear(s: Session, given: Clear) -> Step:
    """Every entry that waits."""
    size = len(s.queue)
    s, told = _taken_out(s, s.queue, given.by)
    return s, (*told, Reply(given.ask, "ok", details={"removed": size}))


def _taken_out(s: Session, entries: tuple[Entry, ...], by: str) -> Step:
    gone = {e.id for e in entries}
    s = replace(
        s,
        queue=tuple(e for e in s.queue if e.id not in gone),
        jumps=tuple(j for j in s.jumps if j not in gone),
    )
    fates: tuple[Note, ...] = tuple(Fate(e.id, "removed", by=by) for e in entries)
    told = (*fates, *replies((a for e in entries for a in e.asks), "removed", TAKEN_OUT))
    if s.retry and not s.queue:  # it was refused and waited for another try: nothing is tried any more
        return replace(s, retry=False, refusals=0), (Review(), *told)
    return s, told


def edit(s: Session, given: Edit) -> Step:
    """Its words are in the store; here only whether they may still change."""
    found = waiting(s, given.entry)
    if found is None:
        return s, (Reply(given.ask, elsewhere(s, given.entry)),)
    return s, (Edited(given.entry, given.content), Reply(given.ask, "ok"))


def reorder(s: Session, given: Reorder) -> Step:
    """They share the places that they have."""
    by_id = {e.id: e for e in s.queue}
    if sorted(given.entries) != sorted(by_id):
        return s, (Reply(given.ask, "mismatch"),)
    places = sorted(e.place for e in s.queue)
    queue = tuple(replace(by_id[id], place=place) for id, place in zip(given.entries, places, strict=True))
    if queue == s.queue:
        return s, (Reply(given.ask, "ok"),)
    placed = Placed(tuple((e.id, e.place) for e in queue))
    return replace(s, queue=queue), (placed, Reply(given.ask, "ok"))


def drain(s: Session, given: Drain) -> Step:
    """What may run does so by itself; this tries a refused entry at once, and says why nothing runs."""
    if (why := _stands(s)) is not None:
        return s, (Reply(given.ask, "conflict", why),)
    return replace(s, retry=False), (Reply(given.ask, "ok", details={"count": len(s.queue)}),)


def _stands(s: Session) -> str | None:
    if s.outcome in (Outcome.FAILED, Outcome.CANCELLED):
        return f"The session is {wire_state(s)}: resume it first."
    if s.launch is Launch.LOST:
        return "The session's old process is not proven gone: end it by hand first."
    if s.turn is not None:
        return "A turn is under way: the queue goes on at its end, or send an entry now."
    if asks_a_person(s):
        return "The agent's question is open: answer it first."
    if s.queue and (why := held(s)) is not None:
        return f"The queue is parked ({why}): switch auto-run on, or send an entry now."
    return None


def auto_run(s: Session, given: AutoRun) -> Step:
    """Off stays off until a person switches it on, or sends an entry now."""
    if not given.on:
        review = (Review(),) if s.retry else ()  # it was refused: nothing is tried any more
        s = replace(s, auto_run=False, retry=False, refusals=0)
        return s, (*review, Reply(given.ask, "ok"))
    stays = s.launch is Launch.LOST and s.outcome is Outcome.COMPLETED
    parked = NOT_PROVEN_GONE if stays and s.queue else None
    released = s.outcome is Outcome.COMPLETED and s.queue and not parked
    outcome = Outcome.OPEN if released else s.outcome
    return replace(s, auto_run=True, parked=parked, outcome=outcome), (Reply(given.ask, "ok"),)


def park(s: Session, given: Park) -> Step:
    """Holds what waits now, except what was promised the next turn already."""
    if any(e.id not in s.jumps for e in s.queue):
        s = replace(s, parked=s.parked or given.reason)
    return s, (Reply(given.ask, "ok"),)

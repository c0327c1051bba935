"""What a turn's end does to its session beyond the end itself, because of the step that its task enters.

The step's prompt is the next turn, the queue is parked, or the session is completed: decided together with
the end, so that nothing that waits comes in between. Pure: the inputs are decided anew with what follows in
its place. Not here: what follows (`workflow`, by `runtime.task_booking`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kandev.core.decide import decide
from kandev.core.effects import Enqueued, Note, Reply, TurnClosed
from kandev.core.inputs import Draft, Input, Stop
from kandev.core.session import Entry, Outcome, Session, TurnRef
from kandev.core.steps import COMPLETED, Step
from kandev.core.views import held

OURS = ""
"""Nobody waits for the answer to this ask."""


@dataclass(frozen=True)
class Follow:
    """At the end of one turn. `prompt`: the next turn, ahead of what waits. `parks`: why what waits stays.
    `finishes`: why the session is over."""

    prompt: tuple[Entry, Draft] | None = None
    parks: str | None = None
    finishes: str | None = None


def fold(s: Session, inputs: Iterable[Input], follow: Mapping[TurnRef, Follow]) -> Step:
    """As `decide` for each of them, with what follows."""
    notes = list[Note]()
    for given in inputs:
        after, told = decide(s, given)
        then = next((follow[n.turn] for n in told if isinstance(n, TurnClosed) and n.turn in follow), None)
        if then is not None:
            ready, before = _ready(s, then)
            after, told = decide(ready, given)
            notes += before
        notes += told
        if then is not None and then.finishes is not None:
            over = Stop(OURS, Outcome.COMPLETED, then.finishes, by="workflow", idle_too=True)
            after, told = decide(after, over)
            notes += [note for note in told if not (isinstance(note, Reply) and note.ask == OURS)]
        s = after
    return s, tuple(notes)


def _ready(s: Session, then: Follow) -> Step:
    """As it has to be when the turn ends."""
    notes: tuple[Note, ...] = ()
    parks = COMPLETED if then.finishes is not None else then.parks
    parked = s.parked or (parks if s.queue else None)
    if then.prompt is not None:
        entry, draft = then.prompt
        entry = replace(entry, place=s.places + 1)
        # What a person has parked holds the step's prompt too; other messages of the same moment come first.
        jumps = s.jumps if s.jumps or held(s) else (entry.id,)
        s = replace(s, places=entry.place, queue=(*s.queue, entry), jumps=jumps)
        notes = (Enqueued(entry, draft),)
    return replace(s, parked=parked), notes

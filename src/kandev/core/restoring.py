"""What becomes of a session whose database went back in time. Pure.

What such a database says of processes and prompts was true once. Its processes are ended before this is
asked, and what they said since is nobody's any more; so a turn under way is lost, a prompt on its way has an
unknown fate, and nothing starts by itself: what waited may long have been done.
"""

from dataclasses import replace
from typing import Final

from kandev.core.decide import decide, recovered
from kandev.core.effects import LaunchOver, Line, Note, Review
from kandev.core.inputs import Gone
from kandev.core.session import Launch, Outcome, Session
from kandev.core.steps import Step, dropped
from kandev.core.views import wire_state

WHY: Final = "the database was restored from a copy"
"""Why a queue is parked, and a turn lost."""
LINE: Final = (
    "The database was restored from a copy: what happened after the copy was made is not shown here, "
    "and the agent may remember it."
)
RUNS_BY_ITSELF: Final = (Outcome.OPEN, Outcome.COMPLETED)


def restored(before: Session) -> Step:
    """The value as it is from now on, which owes nothing, and what is to be written with it."""
    s = recovered(before)
    s = replace(_held(s), jumps=(), retry=False, refusals=0, resuming=False)
    s, notes = dropped(s)
    if s.launch is not Launch.ABSENT:
        s, over = decide(replace(s, launch=Launch.CLOSING, closing=WHY), Gone(s.execution))
        s, notes = _held(s), (*notes, *over)
    told = (Line("status", LINE),) if before.executions and before.outcome is Outcome.OPEN else ()
    return s, (*notes, *_over(before), *told)


def _held(s: Session) -> Session:
    """Its queue waits for a person. A session that is over holds it by that."""
    return replace(s, parked=WHY) if s.queue and s.outcome in RUNS_BY_ITSELF else s


def _over(before: Session) -> tuple[Note, ...]:
    """For the task: it is worked at no more."""
    match wire_state(before):
        case "STARTING":
            return (LaunchOver(WHY),)
        case "RUNNING":
            return (Review(),)
    return ()


def numbered(s: Session, highest: int) -> Session:
    """With execution numbers that go on behind the highest that was ever given: an id is never used twice.

    Only for a session without a process, whose execution would change its name.
    """
    return replace(s, executions=highest + 1) if highest >= max(s.executions, 1) else s

"""A session's value: everything that decides what it does next, frozen, in three machines.

Launch (is there a process), turn (what it works on) and outcome (is the session over) stand side by side.
The state on the wire is a projection of the three (`views.wire_state`). Not here: what may come in
(`inputs`), what goes out (`effects`), the rules (`decide`).
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Launch(StrEnum):
    """The process, as it was observed."""

    ABSENT = "absent"
    """No process; the next turn starts one."""
    STARTING = "starting"
    READY = "ready"
    DOZING = "dozing"
    """Idle for long: agentctl was asked to end it, unless something goes on after all. Goes on to
    CLOSING, or back."""
    CLOSING = "closing"
    """Stopped, dead or given up: ends with `Gone`, then a new one may start."""
    LOST = "lost"
    """Not proven gone in time: still tried, and nothing is started beside it."""


class Phase(StrEnum):
    """The turn."""

    WAITING = "waiting"
    DISPATCHING = "dispatching"
    """A prompt was handed over, its fate is not known yet."""
    RUNNING = "running"
    CANCELLING = "cancelling"


class Outcome(StrEnum):
    """Whether the session is over, and how."""

    OPEN = "open"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


Ending = Literal["user", "interrupt", "replace", "stop"]
"""Why we end a turn: a person's cancel, a message that takes its place (silent), no answer about its prompt
in time, or the session's stop."""
By = Literal["person", "peer", "workflow", "automation", "answer"]
"""Whose message it is; `answer`: a person's, to a question of the agent that did not wait for it."""


@dataclass(frozen=True)
class TurnRef:
    """The identity of a turn. Compared for equality only.

    A prompt's turn is `(execution, generation)`; one that the agent began by itself has generation 0 and
    agentctl's own id.
    """

    execution: str
    generation: int
    own: str | None = None


@dataclass(frozen=True)
class Entry:
    """A message that waits for a turn, or is in one. Its text is in the store."""

    id: str
    by: By = "person"
    place: int = 0
    """Where an entry that comes back goes to; only a person's reordering changes it."""
    asks: tuple[str, ...] = ()
    """Who waits to hear whether the agent took it."""
    coalesce: str | None = None
    """An automation's: a later one of the same key replaces it while it waits."""


@dataclass(frozen=True)
class Turn:
    """The turn under way."""

    ref: TurnRef
    entries: tuple[Entry, ...]
    """None: the agent began by itself."""
    taken: bool = False
    ending: Ending | None = None
    """Our intent. The agent's stop reason never decides."""
    ended_by: str | None = None
    """Who cancelled, for the chat's line."""
    attempt: int = 0
    """Which of our cancels; the failure of an older one is history."""
    heard: bool = False
    """agentctl has seen its end: the report of it is in the journal, behind what was said before."""
    asks: tuple[str, ...] = ()
    """Who waits to hear that it ended."""


@dataclass(frozen=True)
class Answer:
    """A decision about a permission: one option, or rejected, or (neither) cancelled."""

    option_id: str | None = None
    rejected: bool = False


@dataclass(frozen=True)
class Permission:
    """A request of the agent that waits, or whose answer is on its way."""

    request: str
    answer: Answer | None = None


@dataclass(frozen=True)
class Question:
    """A question of the agent that is open, or whose answer is on its way to the agent's tool call."""

    id: str
    turn: TurnRef
    """In which it was asked."""
    waits: bool = True
    """The tool call is still there to take the answer; with an answer in hand: it has not been handed over
    by a backend that is gone."""
    answer: Entry | None = None
    """Given, and in hand until it is known whether the tool call took it."""


@dataclass(frozen=True)
class Session:
    """The value. Committed whole, by compare-and-set on the version of its row."""

    id: str
    outcome: Outcome = Outcome.OPEN
    launch: Launch = Launch.ABSENT
    executions: int = 0
    """How many there were; the id of the latest derives from it."""
    generation: int = 0
    """Session-wide, durable, never reset; grows before every dispatch attempt."""
    places: int = 0
    turn: Turn | None = None
    aside: TurnRef | None = None
    """What the agent began by itself before the present prompt reached it: heard, and shown as no turn."""
    queue: tuple[Entry, ...] = ()
    jumps: tuple[str, ...] = ()
    """Entries that are promised the next turn, together and before the others."""
    parked: str | None = None
    """Why the queue does not run by itself, as long as something waits in it."""
    auto_run: bool = True
    """A person's switch, which stays: off, the queue does not run by itself, be it empty or not."""
    retry: bool = False
    """The agent refused a prompt; a timer tries again."""
    refusals: int = 0
    resuming: bool = False
    """Start a process even if there is nothing to say."""
    closing: str | None = None
    """Why the process is being ended, for the turn that ends with it."""
    force: bool = False
    """The teardown under way skips the polite steps."""
    looked: bool = False
    """Its process tree was ended and looked at; the teardown reads what the journal still says."""
    permissions: tuple[Permission, ...] = ()
    questions: tuple[Question, ...] = ()
    journal: str | None = None
    """The journal of the present execution; frames of another are not followed."""
    seen: int = 0
    """Last journal position of the present execution whose consequences are committed."""
    conversation: str | None = None
    """What takes up the agent's conversation in a new process."""
    introduced: bool = False
    """The present conversation has taken a prompt that began with the context block."""
    spoken: bool = False
    """An agent has taken a prompt of this session."""
    cancellations: int = 0
    """Grows with every change of `cancellation_pending`."""

    @property
    def execution(self) -> str:
        """The id of the latest execution."""
        return f"{self.id}.{self.executions}"

    @property
    def phase(self) -> Phase:
        """The turn's phase."""
        if self.turn is None:
            return Phase.WAITING
        if self.turn.ending:
            return Phase.CANCELLING
        return Phase.RUNNING if self.turn.taken else Phase.DISPATCHING

    @property
    def cancelling(self) -> bool:
        """A person's cancel is under way (`cancellation_pending`)."""
        return self.turn is not None and self.turn.ending == "user"

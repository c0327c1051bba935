"""Everything that can come out of a decision. Owed effects survive a crash; notes are told once.

What is owed is a function of the committed value (`views.owed`), so every owed effect is idempotent: by
execution, dispatch or request id.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from kandev.core.session import Answer, Entry, TurnRef
from kandev.core.transcript import Content, PermissionAsk

# -- owed -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """Bring the execution up; a repeat joins the first. Ends with `Ready` or `LaunchFailed`."""

    execution: str


@dataclass(frozen=True)
class Follow:
    """Read the journal behind `seen`. Unknown there, or another journal: `Exited`."""

    execution: str


@dataclass(frozen=True)
class Prompt:
    """Hand the entries over as one prompt; the dispatch id is the turn's. `introduces`: the agent is told
    first where it is and what it may do. Ends with `Taken` or `Refused`."""

    turn: TurnRef
    entries: tuple[str, ...]
    introduces: bool = False


@dataclass(frozen=True)
class CancelTurn:
    """Have agentctl cancel the turn."""

    turn: TurnRef
    attempt: int


@dataclass(frozen=True)
class Teardown:
    """End the process tree, look, read the journal's rest. Ends with `Gone`."""

    execution: str
    unsettled: TurnRef | None
    """A prompt whose fate is to be asked for once nothing can be accepted any more."""
    force: bool = False


@dataclass(frozen=True)
class Doze:
    """End the process if nothing goes on: no turn, nothing said behind `seen`, nothing that a turn began and
    left running, and the agent can take its conversation up again. Ends with `Asleep` or `Awake`."""

    execution: str
    seen: int


@dataclass(frozen=True)
class AnswerPermission:
    """Hand a decision to the agent."""

    turn: TurnRef
    request: str
    answer: Answer


@dataclass(frozen=True)
class HandAnswer:
    """Hand a person's answer to the tool call that waits for it. `again`: it may have been handed over
    before a crash of ours. Ends with `QuestionDone`."""

    turn: TurnRef
    question: str
    entry: str
    again: bool = False


Owed = Start | Follow | Prompt | CancelTurn | Teardown | Doze | AnswerPermission | HandAnswer


def execution_of(effect: Owed) -> str:
    """The execution that it is about."""
    match effect:
        case Start(execution) | Follow(execution) | Teardown(execution) | Doze(execution):
            return execution
        case Prompt(turn) | CancelTurn(turn) | AnswerPermission(turn) | HandAnswer(turn):
            return turn.execution


@dataclass(frozen=True)
class Timer:
    """A deadline. One that is not in `views.timers` any more is history."""

    kind: Literal["accept", "end", "start", "close", "retry", "ask", "cancel", "idle", "doze", "question"]
    key: str | TurnRef | int | tuple[TurnRef | str, int] | tuple[TurnRef, int, int]


# -- notes: written in the same transaction as the value, or told once ----------------------------


@dataclass(frozen=True)
class Reply:
    """The answer to an ask. `error` is a sentence when it is a refusal or a failure."""

    ask: str
    status: str
    error: str | None = None
    details: dict[str, Any] | None = field(default=None, hash=False)


@dataclass(frozen=True)
class Enqueued:
    """A new entry and what it says."""

    entry: Entry
    draft: Any
    """The `inputs.Draft`."""


@dataclass(frozen=True)
class Claimed:
    """Entries were reserved for a turn."""

    turn: TurnRef
    entries: tuple[str, ...]


@dataclass(frozen=True)
class Returned:
    """Entries that certainly were not taken are back in their places."""

    entries: tuple[str, ...]


@dataclass(frozen=True)
class Edited:
    """An entry that waits says something else."""

    entry: str
    content: str


@dataclass(frozen=True)
class Placed:
    """Entries wait in other places: `(entry, place)`."""

    places: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Fate:
    """Where an entry ended."""

    entry: str
    fate: Literal["delivered", "unknown", "removed", "replaced"]
    turn: TurnRef | None = None
    by: str | None = None


@dataclass(frozen=True)
class TurnOpened:
    """A turn exists from now on."""

    turn: TurnRef


@dataclass(frozen=True)
class TurnClosed:
    """It is over. `cause`: `agent`, `user`, `interrupted` (a message took its place), `process`, `stopped`,
    `refused`, `lost`; `stop_reason`: the agent's word, or ours."""

    turn: TurnRef
    stop_reason: str
    cause: str
    error: str | None = None


@dataclass(frozen=True)
class Told:
    """Output for the transcript."""

    content: Content
    turn: TurnRef | None = None


@dataclass(frozen=True)
class Line:
    """A line of Kandev itself in the transcript."""

    type: Literal["status", "error"]
    text: str
    metadata: dict[str, Any] = field(default_factory=dict, hash=False)
    turn: TurnRef | None = None


@dataclass(frozen=True)
class PermissionOpened:
    """A permission request for the transcript."""

    turn: TurnRef
    asked: PermissionAsk


@dataclass(frozen=True)
class PermissionClosed:
    """How it ended."""

    turn: TurnRef
    request: str
    outcome: str
    by: str
    option_id: str | None = None


@dataclass(frozen=True)
class QuestionOpened:
    """A question for the transcript. `payload`: what a person is shown."""

    turn: TurnRef
    question: str
    payload: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class QuestionClosed:
    """How it ended: `answered`, `declined`, `cancelled`, `expired`."""

    question: str
    outcome: Literal["answered", "declined", "cancelled", "expired"]
    by: str | None = None
    answer: str | None = None
    """The id of the entry."""


@dataclass(frozen=True)
class LaunchOver:
    """A launch is over without a turn: it failed (`error`), was cancelled, or there was nothing to say."""

    error: str | None
    cancelled: bool = False


@dataclass(frozen=True)
class ExecutionOver:
    """An execution's end, with what was seen. `error` None: it fell asleep."""

    execution: str
    exit_code: int | None
    survivors: tuple[str, ...]
    error: str | None = None


@dataclass(frozen=True)
class Review:
    """The task may be ready for review (guarded: `task.to_review`)."""


@dataclass(frozen=True)
class Dropped:
    """The input was history: it changed nothing."""

    given: Any


Note = (
    Reply
    | Enqueued
    | Claimed
    | Returned
    | Edited
    | Placed
    | Fate
    | TurnOpened
    | TurnClosed
    | Told
    | Line
    | PermissionOpened
    | PermissionClosed
    | QuestionOpened
    | QuestionClosed
    | LaunchOver
    | ExecutionOver
    | Review
    | Dropped
)

"""Everything that can come to a session: asks of people and programs, reports of the world, deadlines.

Every report may come twice, late and in any order; a later one implies the earlier ones.
"""

from dataclasses import dataclass, field
from typing import Any

from kandev.core.effects import Timer
from kandev.core.session import Answer, Entry, Outcome, TurnRef
from kandev.core.transcript import Content, PermissionAsk


@dataclass(frozen=True)
class Ask:
    """Somebody waits for a `Reply` under this name."""

    ask: str


@dataclass(frozen=True)
class Draft:
    """What a new entry says; goes to the store with it, and is no matter of the rules."""

    content: str
    message_id: str
    sender_task_id: str | None = None
    sender_session_id: str | None = None
    key: str | None = None
    """Idempotency key, unique per sender and target task in the store."""


@dataclass(frozen=True)
class Interrupt:
    """The message takes the place of the turn that its sender saw (`views.current_turn`; None: no turn was
    there). A turn that came after that is not its business."""

    noted: TurnRef | None


@dataclass(frozen=True)
class Send(Ask):
    """A message. `limit` is the queue's (0: none). `patient`: strictly behind what waits, and it releases
    nothing."""

    entry: Entry
    draft: Draft
    limit: int = 0
    interrupt: Interrupt | None = None
    patient: bool = False


@dataclass(frozen=True)
class Remove(Ask):
    """Take an entry out of the queue."""

    entry: str
    by: str = "user"


@dataclass(frozen=True)
class Clear(Ask):
    """Take every entry out of the queue."""

    by: str = "user"


@dataclass(frozen=True)
class Edit(Ask):
    """Other words for an entry that waits."""

    entry: str
    content: str


@dataclass(frozen=True)
class Reorder(Ask):
    """Let the entries wait in this order: every one of them, once."""

    entries: tuple[str, ...]


@dataclass(frozen=True)
class SendNow(Ask):
    """A person lets an entry that waits take the place of the current turn, and the queue run again."""

    entry: str


@dataclass(frozen=True)
class Drain(Ask):
    """Run the queue now, as far as it runs by itself."""


@dataclass(frozen=True)
class AutoRun(Ask):
    """A person's switch: whether the queue runs by itself. On releases what is parked."""

    on: bool


@dataclass(frozen=True)
class Park(Ask):
    """What waits does not run by itself any more (`reason`), until a person lets it."""

    reason: str


@dataclass(frozen=True)
class AskPerson(Ask):
    """The agent asks by a tool call. `payload`: what a person is shown."""

    question: str
    payload: dict[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Respond(Ask):
    """A person's answer to a question; without an entry it is declined."""

    question: str
    entry: Entry | None = None
    draft: Draft | None = None
    by: str = "user"


@dataclass(frozen=True)
class Cancel(Ask):
    """End the current turn, whichever it is when this is decided."""

    by: str = "user"


@dataclass(frozen=True)
class Stop(Ask):
    """End the session."""

    outcome: Outcome = Outcome.CANCELLED
    reason: str = "stopped via API"
    by: str = "user"
    force: bool = False
    idle_too: bool = False
    """Also a session that neither runs nor would by itself: its task is over."""


@dataclass(frozen=True)
class Resume(Ask):
    """Start the agent, or take the session up again, even with nothing to say."""


@dataclass(frozen=True)
class Allow(Ask):
    """A person's decision about a permission request."""

    request: str
    answer: Answer


@dataclass(frozen=True)
class TurnReport:
    """About one turn."""

    turn: TurnRef


@dataclass(frozen=True)
class Taken(TurnReport):
    """The agent has the prompt."""


@dataclass(frozen=True)
class Refused(TurnReport):
    """agentctl itself says: not taken, and never will be. A broken connection is not this."""

    reason: str = ""


@dataclass(frozen=True)
class OwnTurn(TurnReport):
    """The agent began a turn by itself."""


@dataclass(frozen=True)
class Output(TurnReport):
    """Something was said or done in the turn."""

    content: Content


@dataclass(frozen=True)
class Ended(TurnReport):
    """The agent's account of the end. `outlived`: command lines of processes that outlive it."""

    stop_reason: str = "end_turn"
    error: str | None = None
    outlived: tuple[str, ...] = ()


@dataclass(frozen=True)
class CancelFailed(TurnReport):
    """agentctl refused the cancel, or could not be asked while the execution is known to live."""

    attempt: int
    why: str = ""


@dataclass(frozen=True)
class CancelHeard(TurnReport):
    """The agent obeyed, or had ended the turn before: the end is in the journal, be it far behind."""

    attempt: int


@dataclass(frozen=True)
class CancelUnheard(TurnReport):
    """The agent did not acknowledge in time."""

    attempt: int


@dataclass(frozen=True)
class PermissionAsked(TurnReport):
    """The agent waits for a decision."""

    asked: PermissionAsk


@dataclass(frozen=True)
class PermissionDone(TurnReport):
    """It was answered, by whomever."""

    request: str
    outcome: str = "cancelled"
    by: str = "client"
    option_id: str | None = None


@dataclass(frozen=True)
class QuestionReport:
    """About one question."""

    question: str


@dataclass(frozen=True)
class QuestionLeft(QuestionReport):
    """The agent's tool call does not wait for the answer any more."""


@dataclass(frozen=True)
class QuestionDone(QuestionReport):
    """What became of an answer that was in hand. `served`: the tool call took it (None: nobody can tell)."""

    served: bool | None


@dataclass(frozen=True)
class ExecutionReport:
    """About one execution."""

    execution: str


@dataclass(frozen=True)
class Ready(ExecutionReport):
    """The agent is up. `memory` False: its earlier conversation could not be taken up."""

    journal: str
    conversation: str | None = None
    memory: bool | None = None
    agent: str | None = None


@dataclass(frozen=True)
class LaunchFailed(ExecutionReport):
    """One sentence why, in the agent's own words where it gave any."""

    why: str
    stderr: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exited(ExecutionReport):
    """The process ended by itself, agentctl does not know it (any more), or we want it ended (`ours`)."""

    exit_code: int | None = None
    stderr: tuple[str, ...] = ()
    why: str = "the agent's process ended"
    ours: bool = False


@dataclass(frozen=True)
class Looked(ExecutionReport):
    """Its process tree was ended and looked at. What the journal still says is being read; then comes
    `Gone`."""


@dataclass(frozen=True)
class Gone(ExecutionReport):
    """Proven dead and fenced: nothing more is accepted. Comes after everything the journal still said.
    `taken`: what became of a dispatch that was open (None: nobody can tell)."""

    taken: bool | None = None
    survivors: tuple[str, ...] = ()
    exit_code: int | None = None


@dataclass(frozen=True)
class Asleep(ExecutionReport):
    """Nothing went on, and its process was ended."""


@dataclass(frozen=True)
class Awake(ExecutionReport):
    """It was not put to sleep: something goes on (`why`), and goes on."""

    why: str = ""


@dataclass(frozen=True)
class Remembered(ExecutionReport):
    """The agent named the token that takes its conversation up again."""

    conversation: str | None


@dataclass(frozen=True)
class Said(ExecutionReport):
    """Output that belongs to no turn: commands, mode, notices of the start."""

    content: Content


@dataclass(frozen=True)
class Frame(ExecutionReport):
    """A journal event. Replayed after a crash, so its position is stored with what it changed."""

    seq: int
    report: "TurnReport | Exited | Remembered | Said"
    at: str = ""
    size: int = 0
    """Bytes that it takes in the journal. Decides nothing: what waits in memory is bounded by it."""


@dataclass(frozen=True)
class Expired:
    """A deadline of `views.timers` has passed."""

    timer: Timer


Input = Ask | TurnReport | QuestionReport | ExecutionReport | Expired

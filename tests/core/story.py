"""A session and what it said, told input by input; and the beginnings that stories share.

Stories reach the rules through their modules, so that a planted bug (`mutants`) is met by them too.
"""

from typing import Any

from kandev.core import decide, views
from kandev.core.effects import Claimed, Dropped, Fate, Line, Note, Owed, Reply, Timer, TurnClosed
from kandev.core.inputs import (
    Cancel,
    Draft,
    Ended,
    Exited,
    Expired,
    Frame,
    Gone,
    Input,
    OwnTurn,
    PermissionAsked,
    Ready,
    Refused,
    Send,
    Taken,
)
from kandev.core.session import Answer, Entry, Launch, Session, TurnRef
from kandev.core.transcript import PermissionAsk

LIMIT = 10
OWN = TurnRef("s.1", 0, "o1")
"""A turn that the first agent begins by itself."""


class Story:
    """Call it with inputs. `said` is what each ask heard; `notes` are those of the last input."""

    def __init__(self, *begin: Input) -> None:
        self.s = Session("s")
        self.said: dict[str, str] = {}
        self.replies: dict[str, Reply] = {}
        self.notes: tuple[Note, ...] = ()
        self.told: list[Note] = []
        for given in begin:
            self(given)

    def __call__(self, given: Input) -> "Story":
        self.s, self.notes = decide.decide(self.s, given)
        self.told += self.notes
        for note in self.notes:
            if isinstance(note, Reply):
                assert note.ask not in self.said, "answered twice"
                self.said[note.ask] = note.status
                self.replies[note.ask] = note
        return self

    @property
    def ref(self) -> TurnRef:
        assert self.s.turn
        return self.s.turn.ref

    @property
    def saying(self) -> tuple[str, ...]:
        """The entries of the turn under way."""
        return tuple(e.id for e in views.in_turn(self.s))

    @property
    def queued(self) -> tuple[str, ...]:
        return tuple(e.id for e in self.s.queue)

    @property
    def launch(self) -> str:
        return str(self.s.launch)

    @property
    def permissions(self) -> dict[str, Answer | None]:
        return {p.request: p.answer for p in self.s.permissions}

    @property
    def wire(self) -> str:
        return views.wire_state(self.s)

    @property
    def owed(self) -> tuple[Owed, ...]:
        return views.owed(self.s)

    @property
    def timers(self) -> set[str]:
        """What is waited for; that an agent has been idle for long is no such thing."""
        return {str(t.kind) for t in views.timers(self.s)} - {"idle"}

    @property
    def lines(self) -> list[str]:
        return [n.text for n in self.notes if isinstance(n, Line)]

    @property
    def fates(self) -> dict[str, str]:
        return {n.entry: n.fate for n in self.told if isinstance(n, Fate)}

    @property
    def closed(self) -> list[TurnClosed]:
        return [n for n in self.notes if isinstance(n, TurnClosed)]

    @property
    def prompts(self) -> list[tuple[str, ...]]:
        """Every claim so far, in order."""
        return [n.entries for n in self.told if isinstance(n, Claimed)]

    def owes(self, kind: type) -> bool:
        return any(isinstance(o, kind) for o in self.owed)

    def has(self, kind: type) -> bool:
        return any(isinstance(n, kind) for n in self.notes)

    def ignores(self, given: Input) -> None:
        """It is history: nothing changes, nothing is told."""
        before = self.s
        self(given)
        assert self.s == before and [type(n) for n in self.notes] == [Dropped], self.notes

    def refuses(self, given: Any, status: str) -> Reply:
        """The ask hears `status`, and nothing else happens."""
        before = self.s
        self(given)
        assert self.s == before and [type(n) for n in self.notes] == [Reply], self.notes
        assert self.said[given.ask] == status
        return self.replies[given.ask]


def message(name: str, by: Any = "person", limit: int = LIMIT) -> Send:
    return Send(name, Entry(name, by), Draft(f"text of {name}", f"message {name}"), limit)


def up(execution: str = "s.1") -> Ready:
    return Ready(execution, f"journal of {execution}", "conversation")


def permission(turn: TurnRef, request: str = "p") -> PermissionAsked:
    return PermissionAsked(turn, PermissionAsk(request, "rm -r"))


def frame(seq: int, report: Any, execution: str = "s.1") -> Frame:
    return Frame(execution, seq, report)


def starting() -> Story:
    """The first message M is in the queue, and the agent is coming up."""
    return Story(message("M"))


def dispatching() -> Story:
    """M was handed over; nobody knows yet whether it was taken."""
    return Story(message("M"), up())


def running() -> Story:
    s = dispatching()
    return s(Taken(s.ref))


def cancelling(by: Any = "person") -> Story:
    """D waits behind the turn under way, and somebody cancels that turn: c."""
    return running()(message("D", by))(Cancel("c"))


def parked(by: Any = "person") -> Story:
    """That turn has ended: D waits, parked by a person's cancel."""
    s = cancelling(by)
    return s(Ended(s.ref, "cancelled"))


def waiting() -> Story:
    """The first turn is over, the agent is up."""
    s = running()
    return s(Ended(s.ref))


def dozing() -> Story:
    """Nothing happened for long: agentctl is asked to end the process."""
    s = waiting()
    return s(Expired(Timer("idle", "s.1:0")))


def asleep() -> Story:
    """The first turn is over, and its process too."""
    s = waiting()(Exited("s.1"))(Gone("s.1", None))
    assert s.s.launch is Launch.ABSENT
    return s


def refused_once() -> Story:
    """D was refused and waits for the retry."""
    s = waiting()(message("D", "peer"))
    return s(Refused(s.ref, "busy"))


def refused_and_asleep() -> Story:
    """D waits for the retry, and the process has ended meanwhile."""
    s = refused_once()(Exited("s.1"))(Gone("s.1"))
    assert s.s.launch is Launch.ABSENT
    return s


def busy_by_itself() -> Story:
    """The agent has begun a turn of its own."""
    return waiting()(OwnTurn(OWN))

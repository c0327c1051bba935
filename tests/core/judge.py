"""What must hold of every history, said without the core's own tables.

`Judge` sees each step (value before, input, value after, notes) and what the agents heard. It keeps its own
books: where each accepted entry is, which turns and permissions are open, who waits for an answer.
"""

from kandev.core import views
from kandev.core.effects import (
    CancelTurn,
    Claimed,
    Doze,
    Dropped,
    ExecutionOver,
    Fate,
    Line,
    Note,
    PermissionClosed,
    PermissionOpened,
    Prompt,
    Reply,
    Returned,
    Start,
    Teardown,
    Told,
    TurnClosed,
    TurnOpened,
)
from kandev.core.inputs import Ask, Cancel, Frame, Input, Ready, Refused, Resume, Send, Stop
from kandev.core.session import Launch, Outcome, Session, TurnRef
from kandev.core.transcript import Content
from tests.core.sidecar import Sidecar

REFUSALS = frozenset({"rejected", "queue_full", "not_found", "claimed", "not_running", "conflict"})
OVER = {"COMPLETED", "FAILED", "CANCELLED"}
ALLOWED = {
    "CREATED": {"STARTING", *OVER},
    "STARTING": {"RUNNING", "WAITING_FOR_INPUT", *OVER},
    "RUNNING": {"WAITING_FOR_INPUT", "STARTING", *OVER},
    "WAITING_FOR_INPUT": {"RUNNING", "STARTING", *OVER},
    "COMPLETED": {"RUNNING", "STARTING"},
    "FAILED": {"STARTING"},
    "CANCELLED": {"STARTING"},
}
"""The specification's state table, written down a second time."""

BOUNDS: dict[type, str] = {
    Prompt: "accept",
    CancelTurn: "end",
    Start: "start",
    Teardown: "close",
    Doze: "doze",
}
"""Whatever waits for an agent has a deadline."""

WAITERS = {"ask", "cancel"}
"""Deadlines of somebody who waits for an answer."""


class Judge:
    """The books of one session."""

    def __init__(self, sidecar: Sidecar) -> None:
        self._sidecar = sidecar
        self.asked: dict[str, Input] = {}
        self.replies: dict[str, str] = {}
        self.forgotten: set[str] = set()
        self.accepted: list[str] = []
        self.may_jump: set[str] = set()
        self.fates: dict[str, str] = {}
        self.claimed: dict[str, TurnRef] = {}
        self.open_turn: TurnRef | None = None
        self.turns: set[TurnRef] = set()
        self.permissions: set[str] = set()
        self.over: set[str] = set()
        self.shown: list[Content] = []

    # -- one step -----------------------------------------------------------------------------

    def step(self, before: Session, given: Input, after: Session, notes: tuple[Note, ...]) -> None:
        if isinstance(given, Send):
            self._sent(before, given, after)
        for note in notes:
            self._note(note, before, after)
        if isinstance(given, Ask):
            self._answered(before, given, after, notes)
        if any(isinstance(n, Dropped) for n in notes):
            assert isinstance(given, Frame) or after == before, "history changed something"
            assert len(notes) == 1, ("history was told", notes)
        self._moves(before, given, after)
        self._ends(before, after, notes)
        self.books(after)

    def _sent(self, before: Session, given: Send, after: Session) -> None:
        here = {e.id for e in (*after.queue, *views.in_turn(after))}
        if given.entry.id not in here or given.entry.id in self.accepted:
            return
        self.accepted.append(given.entry.id)
        if given.entry.by == "person" and (before.parked or before.cancelling):
            self.may_jump.add(given.entry.id)

    def _note(self, note: Note, before: Session, after: Session) -> None:
        match note:
            case Reply(ask, status):
                assert ask in self.asked, note
                assert ask not in self.replies, ("answered twice", note)
                self.replies[ask] = status
            case Fate() | Claimed() | Returned():
                self._moved(note, after)
            case TurnOpened() | TurnClosed():
                self._turned(note)
            case PermissionOpened(_, asked):
                self.permissions.add(asked.request_id)
            case PermissionClosed(_, request):
                self.permissions.discard(request)
            case ExecutionOver(execution):
                assert execution not in self.over, "an execution ended twice"
                self.over.add(execution)
            case Told(content):
                assert before.outcome is Outcome.OPEN, "output was shown after the end"
                assert content not in self.shown, "output was shown twice"
                self.shown.append(content)

    def _moved(self, note: Fate | Claimed | Returned, after: Session) -> None:
        match note:
            case Fate(entry, fate):
                assert entry not in self.fates, ("two fates", note)
                self.fates[entry] = fate
                self.claimed.pop(entry, None)
            case Claimed(turn, entries):
                self._claim(turn, entries, after)
            case Returned(entries):
                for entry in entries:
                    del self.claimed[entry]

    def _turned(self, note: TurnOpened | TurnClosed) -> None:
        if isinstance(note, TurnClosed):
            assert note.turn == self.open_turn, ("closed what is not open", note)
            self.open_turn = None
            return
        assert self.open_turn is None, "two turns"
        assert note.turn not in self.turns, "an identity came twice"
        self.open_turn = note.turn
        self.turns.add(note.turn)

    def _claim(self, turn: TurnRef, entries: tuple[str, ...], after: Session) -> None:
        waiting = {e.id for e in after.queue}
        for entry in entries:
            assert entry not in self.claimed, "claimed twice"
            assert entry not in self.fates, "claimed after its fate"
            self.claimed[entry] = turn
            older = self.accepted[: self.accepted.index(entry)]
            passed = [e for e in older if e in waiting]
            assert not passed or entry in self.may_jump, ("not first in, first out", entry, passed)

    # -- what one step must not do ----------------------------------------------------------------

    def _answered(self, before: Session, given: Ask, after: Session, notes: tuple[Note, ...]) -> None:
        said = {n.status for n in notes if isinstance(n, Reply) and n.ask == given.ask}
        if said & REFUSALS:
            assert after == before, ("a refusal changed something", given)
            assert all(isinstance(n, Reply) for n in notes), ("a refusal was told", notes)
        if isinstance(given, Stop) and "not_running" in said and before.outcome is Outcome.OPEN:
            assert before.launch is Launch.ABSENT, "not running, but it has a process"
            assert not {t.kind for t in views.timers(before)} & {"retry", "start"}, "it would start by itself"
        if "stopped" in said and isinstance(given, Stop):
            ends = any(isinstance(o, Teardown) for o in views.owed(after))
            assert after.outcome is given.outcome
            assert ends or before.launch is Launch.ABSENT, "stopped, but nothing ends its process"
            assert ends or before.queue, "stopped, but nothing ran and nothing would have"
        if isinstance(given, Cancel) and before.turn:
            same = after.turn is not None and after.turn.ref == before.turn.ref
            assert same, "an ask ended a turn that nobody reported as over"
        self._parks(before, given, after)
        nothing = not (before.turn or before.retry or before.jumps)
        if isinstance(given, Cancel) and nothing and (before.parked or not before.queue):
            assert after == before, "a cancel without anything to cancel changed something"
            assert not any(isinstance(n, Line) for n in notes), "a cancel of nothing was told in the chat"

    def _parks(self, before: Session, given: Ask, after: Session) -> None:
        """Who may park and who may release."""
        if not (before.queue and after.queue):
            return
        match given:
            case Stop(_, Outcome.CANCELLED) | Resume():
                assert after.parked == before.parked, "a stop parks nothing, a resume releases nothing"
            case Send(_, entry) if entry.by != "person" and before.parked:
                assert after.parked, "somebody else released what a person holds"

    def _moves(self, before: Session, given: Input, after: Session) -> None:
        old, new = views.wire_state(before), views.wire_state(after)
        assert old == new or new in ALLOWED[old], (old, new)
        grown = after.cancellations - before.cancellations
        assert grown == (before.cancelling != after.cancelling), "the revision is not the count of changes"
        if before.outcome is not after.outcome and before.outcome is not Outcome.OPEN:
            reopens = isinstance(given, Send) and before.outcome is Outcome.COMPLETED
            assert reopens or isinstance(given, Resume), "a terminal state was overwritten"
        if after.outcome is not Outcome.OPEN:
            forbidden = (Prompt, Start, CancelTurn)
            assert not [o for o in views.owed(after) if isinstance(o, forbidden)], "after the end"
        starts = [o for o in views.owed(after) if isinstance(o, Start | Prompt)]
        assert not starts or after.launch in (Launch.STARTING, Launch.READY), "beside an old process"
        says = before.launch is Launch.STARTING and before.queue and not before.parked
        if says and isinstance(given, Ready) and given.execution == before.execution:
            assert new == "RUNNING", "a launch with a prompt passed through another state"
        if isinstance(given, Refused) and before.turn and before.turn.ending is None and not after.parked:
            assert not after.turn or after.turn.ref == before.turn.ref, "no pause after a refusal"

    def _ends(self, before: Session, after: Session, notes: tuple[Note, ...]) -> None:
        turn = before.turn
        if turn is None or (after.turn is not None and after.turn.ref == turn.ref):
            return
        causes = [n.cause for n in notes if isinstance(n, TurnClosed) and n.turn == turn.ref]
        assert len(causes) == 1, ("a turn ended without its end being told, or twice", causes)
        if before.outcome is not Outcome.OPEN or after.outcome is not Outcome.OPEN:
            assert causes == ["stopped"], causes
            return
        failed = any(n.error is not None for n in notes if isinstance(n, TurnClosed) and n.cause == "agent")
        if failed and turn.ending is None and after.queue and not before.jumps:
            assert after.parked, "a failed turn burns no queue"
        assert turn.ending == "user" or causes != ["user"], "it counts as cancelled, but nobody cancelled it"
        if turn.ending == "user":
            assert causes == ["user"], "our intent decides, not the agent's word"
            assert before.jumps or not after.turn, "something ran by itself after a person's cancel"

    # -- at any time ------------------------------------------------------------------------------

    def books(self, s: Session) -> None:
        heard = [e for e, _ in self._sidecar.heard]
        assert len(self._sidecar.live) <= 1, "two processes"
        assert len(heard) == len(set(heard)), ("an entry was dispatched twice", heard)
        open_turn = s.turn.ref if s.turn else None
        assert self.open_turn == open_turn, "the turns that were told are not the turns that are"
        going = {e.id for e in s.turn.entries} if s.turn and not s.turn.taken else set[str]()
        assert set(self.claimed) == going, "claimed entries are those of the turn on its way"
        places = [*(e.id for e in s.queue), *going]
        assert len(places) == len(set(places)), places
        for entry in self.accepted:
            assert (entry in places) + (entry in self.fates) == 1, ("not exactly one place", entry)
        assert not {e.id for e in s.queue} & set(heard), "queued, but the agent has it"
        for entry, fate in self.fates.items():
            assert fate != "delivered" or entry in heard, ("delivered, but never heard", entry)
            assert fate != "removed" or entry not in heard, ("removed, but heard", entry)
        self._waiters(s, set(heard))

        kinds = {t.kind for t in views.timers(s)}
        stirs = bool(views.owed(s)) or bool(kinds - WAITERS)
        assert not stirs or views.needs_actor(s), "a restart would forget what is owed"
        for due in views.owed(s):
            bound = BOUNDS.get(type(due))
            assert bound is None or bound in kinds or s.launch is Launch.LOST, ("no deadline", due)

    def _waiters(self, s: Session, heard: set[str]) -> None:
        for ask, status in self.replies.items():
            given = self.asked[ask]
            if isinstance(given, Send) and status == "sent":
                assert given.entry.id in heard, ("sent, but not heard", ask)
        waiting = {t.key for t in views.timers(s) if t.kind in WAITERS}
        open_ones = self.asked.keys() - self.replies.keys() - self.forgotten
        assert open_ones <= waiting, ("an ask without an end", open_ones - waiting)
        assert not waiting & self.replies.keys(), "an answered ask still waits"

    def quiet(self, s: Session) -> None:
        """When nothing is under way any more."""
        assert not [t for t in views.timers(s) if t.kind != "idle"], ("not quiet", s)
        assert {type(o).__name__ for o in views.owed(s)} <= {"Follow"}, ("still owed", views.owed(s))
        assert s.turn is None, s
        assert not self.permissions, ("permission requests that never end", self.permissions)
        runs = s.queue and s.outcome in (Outcome.OPEN, Outcome.COMPLETED) and not s.parked
        idle = s.launch is Launch.ABSENT
        assert views.needs_actor(s) is not idle, "an idle session is a row, and only that"
        assert not runs, ("a queue that nobody drains", s)
        assert not self.asked.keys() - self.replies.keys() - self.forgotten
        if s.outcome is not Outcome.OPEN:
            assert not self._sidecar.live, "a process of a session that is over lives"

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
from kandev.core.inputs import (
    Ask,
    AutoRun,
    Cancel,
    Frame,
    Input,
    QuestionDone,
    Ready,
    Refused,
    Reorder,
    Respond,
    Resume,
    Send,
    SendNow,
    Stop,
)
from kandev.core.session import Entry, Launch, Outcome, Session, TurnRef
from kandev.core.transcript import Content
from tests.core.sidecar import Sidecar

REFUSALS = frozenset(
    {"rejected", "queue_full", "not_found", "claimed", "not_running", "conflict", "mismatch", "answered"}
)
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


def _here(s: Session) -> set[str]:
    """The entries that this session has, wherever they are."""
    in_hand = (q.answer.id for q in s.questions if q.answer)
    return {*(e.id for e in (*s.queue, *views.in_turn(s))), *in_hand}


def _reorder(accepted: list[str], before: Session, given: Reorder, after: Session) -> None:
    """The book of who came first follows a person's order."""
    waiting = [e.id for e in before.queue]
    if sorted(given.entries) != sorted(waiting):
        return
    claimed = {e.id for e in views.in_turn(after)}
    left = [e for e in given.entries if e not in claimed]
    assert [e.id for e in after.queue] in (list(given.entries), left), "not the order that was asked for"
    at = sorted(accepted.index(id) for id in waiting)
    for place, id in zip(at, given.entries, strict=True):
        accepted[place] = id


def _ended_silently(causes: list[str], before: Session, after: Session, notes: tuple[Note, ...]) -> None:
    unseen = causes in (["refused"], ["lost"])
    assert causes == ["interrupted"] or unseen, "our intent decides, not the agent's word"
    if not unseen:
        same = after.parked == before.parked or after.launch is Launch.LOST
        assert same or not after.queue, "a silent end parks nothing"
        assert not any(isinstance(n, Line) and "cancelled" in n.text for n in notes), "told as a cancel"


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
        self._arrived(before, given, after)
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

    def _arrived(self, before: Session, given: Input, after: Session) -> None:
        match given:
            case Send(_, entry):
                self._sent(before, given, entry.id, after)
            case Respond(_, _, Entry(id)):
                if id in _here(after) and id not in self.accepted:
                    self.accepted.append(id)
                    self.may_jump.add(id)
            case SendNow(_, id) if id in after.jumps or id in {e.id for e in views.in_turn(after)}:
                self.may_jump.add(id)
            case Reorder():
                _reorder(self.accepted, before, given, after)

    def _sent(self, before: Session, given: Send, id: str, after: Session) -> None:
        if id not in _here(after) or id in self.accepted:
            return
        older = [e.id for e in before.queue if given.entry.coalesce and e.coalesce == given.entry.coalesce]
        self.accepted.insert(self.accepted.index(older[0]) if older else len(self.accepted), id)
        jumps = given.entry.by == "person" and (before.parked or not before.auto_run or before.cancelling)
        if jumps or given.interrupt is not None:
            self.may_jump.add(id)

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
            # What a launch would have begun with goes out before the message that joins it.
            jumps = any(e in self.may_jump for e in entries[entries.index(entry) :])
            assert not passed or jumps, ("not first in, first out", entry, passed)

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
            assert ends or before.queue or before.questions, "stopped, but nothing ran and nothing would have"
        if isinstance(given, Cancel) and before.turn:
            same = after.turn is not None and after.turn.ref == before.turn.ref
            assert same, "an ask ended a turn that nobody reported as over"
        self._parks(before, given, after)
        nothing = not (before.turn or before.retry or before.jumps or before.questions)
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
            spoken = isinstance(given, Send | SendNow | AutoRun | Respond | QuestionDone)
            reopens = spoken and before.outcome is Outcome.COMPLETED
            assert reopens or isinstance(given, Resume), "a terminal state was overwritten"
        if after.outcome is not Outcome.OPEN:
            forbidden = (Prompt, Start, CancelTurn)
            assert not [o for o in views.owed(after) if isinstance(o, forbidden)], "after the end"
        starts = [o for o in views.owed(after) if isinstance(o, Start | Prompt)]
        assert not starts or after.launch in (Launch.STARTING, Launch.READY), "beside an old process"
        asks = any(q.answer is None for q in before.questions)
        runs = before.queue and not before.parked and before.auto_run and not (asks or before.retry)
        says = before.launch is Launch.STARTING and runs
        if says and isinstance(given, Ready) and given.execution == before.execution:
            assert new == "RUNNING", "a launch with a prompt passed through another state"
        goes_on = before.turn and before.turn.ending is None and not (after.parked or before.jumps)
        if isinstance(given, Refused) and before.turn and goes_on:
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
        if turn.ending == "interrupt":
            _ended_silently(causes, before, after, notes)
        else:
            assert causes != ["interrupted"], "nobody interrupted it"
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
        in_hand = [q.answer.id for q in s.questions if q.answer]
        places = [*(e.id for e in s.queue), *going, *in_hand]
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
            if isinstance(given, Respond) and given.entry and status == "sent":
                assert given.entry.id in heard, ("answered, but not heard", ask)
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
        assert not s.questions, "a question that never ends"
        runs = s.queue and s.outcome in (Outcome.OPEN, Outcome.COMPLETED) and not s.parked and s.auto_run
        idle = s.launch is Launch.ABSENT
        assert views.needs_actor(s) is not idle, "an idle session is a row, and only that"
        assert not runs, ("a queue that nobody drains", s)
        assert not self.asked.keys() - self.replies.keys() - self.forgotten
        if s.outcome is not Outcome.OPEN:
            assert not self._sidecar.live, "a process of a session that is over lives"

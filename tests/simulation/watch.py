"""What must hold at every moment: checked at each commit, notification and call against rows and world.

The first violation is kept; the schedule ends with it. Not here: what must hold when all is quiet.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from kandev.core.effects import (
    Claimed,
    Enqueued,
    ExecutionOver,
    Note,
    QuestionOpened,
    Reply,
    TurnClosed,
)
from kandev.core.machines import WIRE_MOVES
from kandev.core.records import Notification, SessionRecord
from kandev.core.session import Answer, Launch, Outcome, Phase, Session, TurnRef
from kandev.core.steps import FELL_ASLEEP, Step
from kandev.core.views import turn_id, wire_state
from kandev.ports.store import Tx
from tests.simulation.world import World

FINAL_FATES = ("delivered", "removed", "replaced", "unknown")
REFUSALS = ("rejected", "queue_full", "not_running", "conflict", "not_found", "claimed", "mismatch")
AT_EACH_COMMIT = {
    "one turn": "SELECT session_id FROM turns WHERE state = 'active' GROUP BY session_id HAVING count(*) > 1",
    "one execution": (
        "SELECT session_id FROM executions WHERE status != 'gone' GROUP BY session_id HAVING count(*) > 1"
    ),
    "review beside work": (
        "SELECT s.id FROM sessions s JOIN tasks t ON t.id = s.task_id "
        "WHERE s.state IN ('STARTING', 'RUNNING') AND t.state = 'REVIEW'"
    ),
    "work is in progress": (
        "SELECT s.id FROM sessions s JOIN tasks t ON t.id = s.task_id "
        "WHERE s.state = 'RUNNING' AND t.state != 'IN_PROGRESS'"
    ),
}
Book = Callable[..., SessionRecord]


class Violation(Exception):
    """`rule` names the invariant in a few words."""

    def __init__(self, rule: str, sentence: str) -> None:
        super().__init__(f"{rule}: {sentence}")
        self.rule = rule


def session_of(execution: str) -> str:
    """The session that an execution belongs to, by its name."""
    return execution.rpartition(".")[0]


class Watcher:
    """One schedule's eyes."""

    def __init__(self, rows: sqlite3.Connection, world: World) -> None:
        self.rows, self.world = rows, world
        self.first: Violation | None = None
        self.alarm: Callable[[], None] = lambda: None
        self.commits = 0
        self.values: dict[str, Session] = {}
        self.stops: Counter[str] = Counter()
        self.resumes: Counter[str] = Counter()
        self.stopped: set[str] = set()
        """Sessions whose stop was answered, and that nobody resumed since."""
        self.fates: dict[str, str] = {}
        self._intents: set[TurnRef] = set()
        self._dozed: set[str] = set()
        self._answers: set[tuple[str, Answer]] = set()
        self.jumpers: set[str] = set()
        """Entries that may go before others."""
        self.aims: set[tuple[str, TurnRef | None]] = set()
        """What interrupts noted, by session."""
        self.answered: list[str] = []
        """Tokens of answers that a tool call took to its agent."""
        self.sent_now: set[str] = set()
        """Sessions in which a person sent something now, whatever turn there was."""
        self._seqs: dict[tuple[str, str], int] = {}
        self._states: dict[str, str] = {}
        self._revisions: dict[str, int] = {}
        self._active: dict[str, set[str]] = {}

    def violated(self, rule: str, sentence: str) -> None:
        """Keep the first one and end the schedule."""
        if self.first is None:
            self.first = Violation(rule, sentence)
            self.alarm()

    def holds(self, truth: object, rule: str, sentence: str) -> None:
        """Violated unless it is true."""
        if not truth:
            self.violated(rule, sentence)

    # -- each decision, in its transaction --------------------------------------------------------

    def watched(self, book: Book) -> Book:
        """`booking.book`, seen from outside."""

        def watching(tx: Tx, record: SessionRecord, decided: Step, stamp: Any, plan: Any) -> SessionRecord:
            written = book(tx, record, decided, stamp, plan)
            self._decided(record.value, *decided)
            return written

        return watching

    def _decided(self, before: Session, after: Session, notes: tuple[Note, ...]) -> None:
        self.commits += 1
        self.aims |= {(after.id, note.turn) for note in notes if isinstance(note, QuestionOpened)}
        for note in notes:
            self._noted(before, after, note)
        if after.turn and after.turn.ending:
            self._intents.add(after.turn.ref)
        self._promises(before, after)
        if after.launch is Launch.DOZING:
            self._dozed.add(after.execution)
        self._answers |= {(p.request, p.answer) for p in after.permissions if p.answer}
        stopped = before.outcome is Outcome.OPEN and after.outcome is Outcome.CANCELLED
        hurried = before.outcome is not Outcome.OPEN and after.force and not before.force
        if stopped or hurried:
            self.stops[after.id] += 1
        if before.outcome is not Outcome.OPEN and after.outcome is Outcome.OPEN:
            self.stopped.discard(after.id)
        if after.resuming and not before.resuming:
            self.resumes[after.id] += 1
        self.values[after.id] = after
        self._entries_agree(after)

    def _promises(self, before: Session, after: Session) -> None:
        """Where a turn that we wanted to end goes on after all, nothing is promised its place."""
        same = before.turn is not None and after.turn is not None and before.turn.ref == after.turn.ref
        goes_on = same and before.phase is Phase.CANCELLING and after.phase is not Phase.CANCELLING
        kept = after.jumps if goes_on and after.launch is Launch.READY else ()
        self.holds(not kept, "promises", f"{kept} wait for the end of a turn that goes on")

    def _noted(self, before: Session, after: Session, note: Note) -> None:
        match note:
            case Enqueued(entry):
                if before.parked or before.cancelling or not before.auto_run or entry.by == "answer":
                    self.jumpers.add(entry.id)
            case Claimed(_, entries):
                self._in_order(after, entries)
                asked = not before.cancelling or self.jumpers.issuperset(entries)
                self.holds(asked, "parked", f"{entries} run right after a cancel")
            case Reply(ask, status) if status in REFUSALS and not _waited(before, ask):
                self.holds(after == before, "refused", f"{status} changed {before} to {after}")
            case TurnClosed(ref, cause="agent"):
                self.holds(
                    turn_id(ref) in self.world.ended,
                    "late identities",
                    f"{ref} ended, says nobody but Kandev",
                )
            case TurnClosed(ref, cause="user"):
                self.holds(ref in self._intents, "aimed", f"{ref} was cancelled, but nobody aimed at it")
                waits = [e.id for e in after.queue] if not before.jumps else []
                self.holds(after.parked or not waits, "parked", f"{waits} would run after a cancel")
            case TurnClosed(ref, cause="interrupted"):
                meant = (after.id, ref) in self.aims or after.id in self.sent_now
                self.holds(meant, "aimed", f"{ref} was interrupted, but nobody aimed at it")
                same = after.parked == before.parked or not after.queue or after.launch is Launch.LOST
                self.holds(same, "parked", f"an interrupt parked {after.queue}")
            case ExecutionOver(execution):
                living = {one.spec.execution for one in self.world.living()}
                self.holds(execution not in living, "gone", f"{execution} is called over and lives")
                if note.error is None:
                    self._fell_asleep(execution)

    def _fell_asleep(self, execution: str) -> None:
        """Whatever its agent ever said is in the transcript."""
        shown = "\n".join(
            text
            for (text,) in self.rows.execute(
                "SELECT content FROM messages WHERE session_id = ?", (session_of(execution),)
            )
        )
        spoken = {
            turn: text for turn, text in self.world.said.items() if turn.rpartition(":")[0] == execution
        }
        unheard = [turn for turn, texts in spoken.items() if not all(text in shown for text in texts)]
        self.holds(not unheard, "asleep", f"{execution} fell asleep, and nobody heard {unheard}")

    def _in_order(self, after: Session, entries: Sequence[str]) -> None:
        places = dict(self.rows.execute("SELECT id, place FROM entries WHERE session_id = ?", (after.id,)))
        for waiting in after.queue:
            for at, taken in enumerate(entries):
                # What a launch would have begun with goes out before the message that joins it.
                jumps = not self.jumpers.isdisjoint(entries[at:])
                overtook = places[taken] > waiting.place and not jumps
                self.holds(not overtook, "in order", f"{taken} overtook {waiting.id}")

    def _entries_agree(self, value: Session) -> None:
        found = self.rows.execute(
            "SELECT id, state FROM entries WHERE session_id = ? ORDER BY place", (value.id,)
        ).fetchall()
        queued = [id for id, state in found if state == "queued"]
        claimed = [id for id, state in found if state == "claimed"]
        carried = [e.id for e in value.turn.entries] if value.turn and not value.turn.taken else []
        in_hand = {q.answer.id for q in value.questions if q.answer}
        waits = [id for id in queued if id not in in_hand]
        self.holds(waits == [e.id for e in value.queue], "one fate", f"rows {queued}, value {value.queue}")
        self.holds(
            sorted(claimed) == sorted(carried), "one fate", f"claimed {claimed}, the turn has {carried}"
        )
        for id, state in found:
            earlier = self.fates.get(id)
            kept = earlier not in FINAL_FATES or earlier == state
            self.holds(kept, "one fate", f"{id} was {earlier} and is {state}")
            self.fates[id] = state

    # -- each commit --------------------------------------------------------------------------------

    def publish(self, notifications: Sequence[Notification]) -> None:
        """`ports.store.Publisher`: after the commit."""
        for notification in notifications:
            stream = (notification.stream, notification.stream_id)
            expected = self._seqs.get(stream, 0) + 1
            self.holds(
                notification.seq == expected, "sequence", f"{stream}: {notification.seq}, not {expected}"
            )
            self._seqs[stream] = notification.seq
            if notification.stream == "session":
                self._told(notification)
        for rule, query in AT_EACH_COMMIT.items():
            if found := self.rows.execute(query).fetchall():
                self.violated(rule, str(found))

    def _told(self, notification: Notification) -> None:
        session, payload = notification.stream_id, notification.payload
        match notification.action:
            case "session.state_changed":
                old, new = payload["old_state"], payload["new_state"]
                known = self._states.get(session, "CREATED")
                self.holds(old == known, "state path", f"{session}: {old} -> {new}, but it was {known}")
                self.holds(new in WIRE_MOVES[old], "state path", f"{session}: {old} -> {new}")
                self._states[session] = new
            case "session.cancellation_changed":
                revision, last = payload["cancellation_revision"], self._revisions.get(session, 0)
                self.holds(revision > last, "revision", f"{session}: {revision} after {last}")
                self._revisions[session] = revision
            case "session.turn.started":
                active = self._active.setdefault(session, set())
                active.add(payload["turn_id"])
                self.holds(len(active) == 1, "one turn", f"{session}: {active}")
            case "session.turn.completed":
                active = self._active.setdefault(session, set())
                self.holds(payload["turn_id"] in active, "one turn", f"{payload['turn_id']} ends twice")
                active.discard(payload["turn_id"])

    # -- each call to agentctl ----------------------------------------------------------------------

    def stored(self, session_id: str) -> Session | None:
        """The value as it is committed."""
        row = self.rows.execute("SELECT value FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return None if row is None else msgspec.json.decode(row[0], type=Session)

    def calls(self, call: str, execution: str, about: Any) -> None:
        """A request begins."""
        session = session_of(execution)
        value = self.stored(session)
        if value is None:
            return
        rule, sentence = "committed first", f"{call} {about or execution}: {value}"
        match call:
            case "start":
                self.holds(value.executions >= int(execution.rpartition(".")[2]), rule, sentence)
            case "prompt":
                found = self.rows.execute("SELECT 1 FROM turns WHERE id = ?", (turn_id(about),)).fetchone()
                self.holds(found, rule, sentence)
                self.holds(session not in self.stopped, "after a stop", sentence)
            case "cancel":
                self.holds(about in self._intents, rule, sentence)
            case "answer_permission":
                self.holds(about in self._answers, rule, sentence)
            case "put_to_sleep":
                # It may have spoken, and be up again, before the request is begun: agentctl refuses it then.
                self.holds(execution in self._dozed, rule, sentence)
            case "end":
                lives = value.execution == execution and value.launch in (Launch.STARTING, Launch.READY)
                self.holds(not lives, rule, sentence)
                if value.closing == FELL_ASLEEP:
                    living = {one.spec.execution for one in self.world.living()}
                    self.holds(execution not in living, "asleep", f"{execution} is called asleep, and works")

    def cancelled(self, turn: TurnRef | None) -> None:
        """A cancel reaches an agent that works on this turn."""
        self.holds(turn is None or turn in self._intents, "aimed", f"a cancel hits {turn}")

    def acknowledges(self, execution: str, position: int) -> None:
        """What agentctl may forget."""
        value = self.values.get(session_of(execution))
        if value is not None and value.execution == execution:
            self.holds(position <= value.seen, "acknowledged", f"{execution}: {position} > {value.seen}")

    def state(self, session_id: str) -> str | None:
        """As it is committed, by the value."""
        value = self.stored(session_id)
        return wire_state(value) if value else None


def _waited(before: Session, ask: str) -> bool:
    """An accepted cancel whose process turns out to be gone: what settles it changes the session."""
    return before.turn is not None and ask in before.turn.asks

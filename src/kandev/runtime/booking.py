"""A decision becomes rows: everything that one input changed, in one transaction.

`book` writes the session's value (compare-and-set), its entries, turns, executions and transcript, what they
mean for the task (`task_booking`), and the notifications that tell of it.
"""

from dataclasses import dataclass, replace
from typing import Any

from kandev.core import payloads
from kandev.core.effects import (
    Claimed,
    Edited,
    Enqueued,
    ExecutionOver,
    Fate,
    LaunchOver,
    Line,
    Note,
    PermissionClosed,
    PermissionOpened,
    Placed,
    QuestionClosed,
    QuestionOpened,
    Returned,
    Told,
    TurnClosed,
    TurnOpened,
)
from kandev.core.records import ExecutionRecord, SessionRecord, TurnRecord
from kandev.core.session import Launch, Session
from kandev.core.steps import Step
from kandev.core.views import execution_status, held, turn_id, waiting_for, wire_state
from kandev.ports.clock import Ids
from kandev.ports.store import Tx
from kandev.runtime.entries import Entries
from kandev.runtime.pictures import picture
from kandev.runtime.scribe import Scribe
from kandev.runtime.task_booking import Plan, book_task


@dataclass(frozen=True)
class Stamp:
    """What a booking needs beside the rows: the time, new names, the queue's limit for payloads."""

    at: str
    ids: Ids
    queue_max: int


def book(tx: Tx, record: SessionRecord, decided: Step, stamp: Stamp, plan: Plan) -> SessionRecord:
    """Returns the record as it is stored now. `plan`: what the decision means for the task. Raises
    StaleVersion when somebody else wrote."""
    after, notes = decided
    booking = _Booking(tx, record, after, stamp, plan)
    for note in notes:
        booking.note(note)
    return booking.close()


class _Booking:
    """One transaction's worth of one session."""

    def __init__(self, tx: Tx, record: SessionRecord, after: Session, stamp: Stamp, plan: Plan) -> None:
        self._tx, self._record, self._after, self._stamp = tx, record, after, stamp
        self._scribe = Scribe(tx, stamp.ids, record.id, stamp.at, record.open_message)
        self._state = wire_state(after)
        self._error = record.error
        self._entries = Entries(tx, record, self._scribe, stamp.at)
        self._plan = plan
        self._launch_over: LaunchOver | None = None

    def note(self, note: Note) -> None:
        match note:
            case Enqueued() | Claimed() | Returned() | Fate() | Edited() | Placed():
                self._entries.note(note)
            case TurnOpened() | TurnClosed():
                self._scribe.close()
                self._turn(note)
            case Told() | Line() | PermissionOpened() | PermissionClosed():
                self._written(note)
            case QuestionOpened():
                self._scribe.question(note)
            case QuestionClosed(_, _, _, answer):
                row = self._tx.entries.get(answer) if answer else None
                self._scribe.question_closed(note, row.content if row else None)
            case LaunchOver():
                self._launch_over = note
                self._error = note.error
            case ExecutionOver():
                self._execution_over(note)

    def close(self) -> SessionRecord:
        """The parts that follow from the value as a whole."""
        before, after, at = self._record, self._after, self._stamp.at
        changed = self._state != before.state
        self._execution_row()
        if self._state == "RUNNING":
            self._error = None
        fresh = replace(
            before,
            value=after,
            state=self._state,
            since=at if changed else before.since,
            waiting_for=waiting_for(after),
            open_message=self._scribe.finish(),
            error=self._error,
            meta={**before.meta, **self._scribe.meta},
            updated_at=at,
        )
        self._tx.sessions.update(fresh)
        fresh = replace(fresh, version=before.version + 1)
        book_task(self._tx, self._plan, at)
        self._announce(before, fresh, changed)
        return fresh

    # -- turns, executions, transcript ----------------------------------------------------------

    def _turn(self, note: TurnOpened | TurnClosed) -> None:
        ref, at = note.turn, self._stamp.at
        named = {"turn_id": turn_id(ref), "execution_id": ref.execution, "prompt_generation": ref.generation}
        if isinstance(note, TurnOpened):
            row = TurnRecord(
                turn_id(ref),
                self._record.id,
                ref.execution,
                ref.generation,
                "active",
                at,
                own_turn_id=ref.own,
                entered=self._plan.began.get(ref, 0),
            )
            self._tx.turns.insert(row)
            self._notify("session.turn.started", {**named, "own_turn_id": ref.own})
            return
        found = self._tx.turns.get(turn_id(ref))
        if found is not None:
            over = replace(found, state="ended", ended_at=at, stop_reason=note.stop_reason, cause=note.cause)
            self._tx.turns.update(replace(over, error=note.error))
        end = {"stop_reason": note.stop_reason, "cause": note.cause, "error": note.error}
        self._notify("session.turn.completed", {**named, **end})

    def _written(self, note: Told | Line | PermissionOpened | PermissionClosed) -> None:
        match note:
            case Told():
                self._scribe.told(note)
            case Line():
                self._scribe.line(note)
            case PermissionOpened():
                self._scribe.permission(note)
            case PermissionClosed():
                self._scribe.permission_closed(note)

    def _execution_row(self) -> None:
        before, after = self._record.value, self._after
        if after.executions != before.executions:
            row = ExecutionRecord(
                after.execution, self._record.id, after.executions, "starting", self._stamp.at
            )
            self._tx.executions.insert(row)
            return
        status = execution_status(after)
        if status is None or (status == execution_status(before) and after.journal == before.journal):
            return
        found = self._tx.executions.get(after.execution)
        if found is not None:
            self._tx.executions.update(
                replace(found, status=status, journal_id=after.journal or found.journal_id)
            )

    def _execution_over(self, note: ExecutionOver) -> None:
        found = self._tx.executions.get(note.execution)
        if found is None:
            return
        gone = replace(
            found, status="gone", ended_at=self._stamp.at, exit_code=note.exit_code, error=note.error
        )
        self._tx.executions.update(replace(gone, survivors=note.survivors))

    # -- who is told ----------------------------------------------------------------

    def _announce(self, before: SessionRecord, fresh: SessionRecord, changed: bool) -> None:
        if changed:
            states = {"task_id": fresh.task_id, "old_state": before.state, "new_state": fresh.state}
            self._notify_both("session.state_changed", {**states, "since": fresh.since})
        if fresh.value.cancellations != before.value.cancellations:
            pending = {
                "cancellation_pending": fresh.value.cancelling,
                "cancellation_revision": fresh.value.cancellations,
            }
            self._notify_both("session.cancellation_changed", pending)
        self._announce_execution(before.value, fresh.value)
        waiting = [e.id for e in before.value.queue] != [e.id for e in fresh.value.queue]
        if waiting or held(before.value) != held(fresh.value) or self._entries.reworded:
            queue = payloads.queue(fresh.value, self._stamp.queue_max)
            reason = {"parked_reason": held(fresh.value)}
            self._notify("message.queue.status_changed", {**queue, **reason})
        if self._looks_the_same(before, fresh):
            return
        shown, old = (picture(self._tx, record, self._stamp.queue_max) for record in (fresh, before))
        if {**shown, "updated_at": ""} != {**old, "updated_at": ""}:
            self._notify_both("session.updated", {"session": shown})

    @staticmethod
    def _looks_the_same(before: SessionRecord, fresh: SessionRecord) -> bool:
        """Output alone moves nothing but the journal's position: then no picture is made."""
        moved = replace(before.value, seen=fresh.value.seen)
        return moved == fresh.value and before.error == fresh.error and before.meta == fresh.meta

    def _announce_execution(self, before: Session, after: Session) -> None:
        if before.launch is after.launch:
            return
        execution: dict[str, Any] = {"execution_id": after.execution}
        if after.launch is Launch.READY:
            self._notify("session.agentctl_ready", execution)
        elif self._launch_over is not None and self._launch_over.error:
            self._notify("session.agentctl_error", {**execution, "error": self._launch_over.error})

    def _notify(self, action: str, payload: dict[str, Any]) -> None:
        self._tx.notifications.add(
            "session", self._record.id, action, {"session_id": self._record.id, **payload}
        )

    def _notify_workspace(self, action: str, payload: dict[str, Any]) -> None:
        self._tx.notifications.add("workspace", self._record.workspace_id, action, payload)

    def _notify_both(self, action: str, payload: dict[str, Any]) -> None:
        self._notify(action, payload)
        self._notify_workspace(action, {"session_id": self._record.id, **payload})

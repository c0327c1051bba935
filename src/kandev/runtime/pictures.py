"""A session as clients see it, with what stands beside its row. Not here: the shape itself
(`core.payloads`)."""

from typing import Any

from kandev.core import payloads
from kandev.core.records import SessionRecord
from kandev.core.views import turn_id
from kandev.ports.store import Tx


def picture(tx: Tx, record: SessionRecord, queue_max: int) -> dict[str, Any]:
    """The payload, with the active turn and the task's worktree."""
    turn = record.value.turn
    row = tx.turns.get(turn_id(turn.ref)) if turn else None
    worktree = tx.tasks.worktree(record.task_id)
    shown = payloads.session(record, queue_max=queue_max, turn=row, worktree=worktree)
    return {**shown, "questions": asked} if (asked := _questions(tx, record)) else shown


def _questions(tx: Tx, record: SessionRecord) -> list[dict[str, Any]]:
    """Those that are open, as they stand in the transcript."""
    open_ones = [q.id for q in record.value.questions if q.answer is None]
    found = (tx.messages.find(record.id, "clarification_request", id) for id in open_ones)
    return [payloads.question(message) for message in found if message is not None]


def announce_session(tx: Tx, record: SessionRecord, queue_max: int, action: str) -> None:
    """On the session's and the workspace's stream."""
    payload = {"session_id": record.id, "session": picture(tx, record, queue_max)}
    tx.notifications.add("session", record.id, action, payload)
    tx.notifications.add("workspace", record.workspace_id, action, payload)

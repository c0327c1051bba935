"""Tasks, sessions and messages as agents see them. Not here: what clients see (`core.payloads`)."""

from typing import Final

from kandev.core import transcript
from kandev.core.board import Task
from kandev.core.records import SessionRecord
from kandev.core.views import wire_state
from kandev.mcp import results
from kandev.ports.store import Tx

DESCRIPTION_MAX: Final = 500
SENTENCE_MAX: Final = 500
MESSAGE_MAX: Final = 8_000
"""Characters of one message."""
ASIDE_MAX: Final = 500
"""Characters of one thought or tool call."""
SESSIONS_MAX: Final = 10
"""Sessions beside each task of a list, newest first."""


def cut(text: str, most: int) -> str:
    """Its beginning, with a mark where it goes on."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def session(row: SessionRecord) -> results.Session:
    """A session."""
    return results.Session(
        session_id=row.id,
        name=row.name,
        state=wire_state(row.value),
        is_primary=row.is_primary,
        agent_profile_id=row.agent_profile_id,
        queued=len(row.value.queue),
        since=row.since,
        waiting_for=row.waiting_for,
        parked_reason=row.value.parked,
        error=None if row.error is None else cut(row.error, SENTENCE_MAX),
    )


def task(tx: Tx, row: Task, *, sessions: bool = False) -> results.Task:
    """A task, with its newest sessions if they are asked for."""
    step = tx.workflows.step(row.workflow_step_id)
    its = [session(s) for s in tx.sessions.of_task(row.id)[:SESSIONS_MAX]] if sessions else None
    return results.Task(
        task_id=row.id,
        title=row.title,
        state=row.state,
        workflow_id=row.workflow_id,
        workflow_step_id=row.workflow_step_id,
        step=step.name if step else "",
        priority=row.priority,
        description=cut(row.description, DESCRIPTION_MAX) or None,
        parent_id=row.parent_id,
        external_id=row.external_id,
        archived_at=row.archived_at,
        error=None if row.error is None else cut(row.error, SENTENCE_MAX),
        updated_at=row.updated_at,
        sessions=its,
    )


def message(row: transcript.Message) -> results.Message:
    """A line of a conversation: thinking and tool calls in a few words."""
    most = ASIDE_MAX if row.type in ("thought", "tool_call") else MESSAGE_MAX
    sender = row.metadata.get("sender_task_id")
    return results.Message(
        message_id=row.id,
        author=row.author_type,
        type=row.type,
        content=row.content[:most],
        created_at=row.created_at,
        sender_task_id=sender if isinstance(sender, str) else None,
        cut=max(len(row.content) - most, 0),
    )

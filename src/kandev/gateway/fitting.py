"""What of a long list goes into one answer: as much as fits, so that no answer grows with the board or the
transcript.

A part of a list tells where the next one begins, or is a page that may be short. Not here: what waits for a
client (`outbox`).
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, TypeVar

import msgspec

from kandev.core import payloads
from kandev.core.board import Task
from kandev.core.errors import Invalid
from kandev.core.records import SessionRecord
from kandev.ports.store import Tx
from kandev.runtime.pictures import picture
from kandev.usecases import finding
from kandev.usecases.tasks import is_in

ANSWER_BYTES: Final = 16 << 20
"""Of the things that are listed in one answer, as JSON: a board of some ten thousand tasks with their
sessions. One thing alone may be larger."""
LATEST_BYTES: Final = 4 << 20
"""Of the messages in a session's snapshot; earlier ones are read page by page."""
READ_AT_ONCE: Final = 200

T = TypeVar("T", bound=dict[str, Any])


def fitting(things: Iterable[T], most: int = ANSWER_BYTES) -> list[T]:
    """The first ones, as many as fit; at least one, if there is any."""
    taken, size = list[T](), 0
    for thing in things:
        size += weight(thing)
        if taken and size > most:
            break
        taken.append(thing)
    return taken


def weight(thing: dict[str, Any]) -> int:
    """In an answer, in bytes."""
    return len(msgspec.json.encode(thing))


def board(tx: Tx, workspace_id: str, queue_max: int, cursor: str | None = None) -> dict[str, Any]:
    """Tasks that are not archived, by creation, with their sessions, newest first; `next_cursor` when there
    are more: `{workspace_id, tasks, sessions, next_cursor?}`. Raises NotFound; Invalid (the cursor)."""
    finding.workspace(tx, workspace_id)
    if cursor is not None and not is_in(tx.tasks.get(cursor), workspace_id):
        raise Invalid("The cursor is not known (any more); read the snapshot again without it.")
    tasks, sessions, size = list[dict[str, Any]](), list[dict[str, Any]](), 0
    more: dict[str, Any] = {}
    for row, its in _tasks(tx, workspace_id, cursor):
        task = payloads.task(row)
        shown = [picture(tx, session, queue_max) for session in its]
        size += sum(map(weight, (task, *shown)))
        if tasks and size > ANSWER_BYTES:
            more = {"next_cursor": tasks[-1]["id"]}
            break
        tasks.append(task)
        sessions += shown
    sessions.sort(key=lambda session: (session["created_at"], session["id"]), reverse=True)
    return {"workspace_id": workspace_id, "tasks": tasks, "sessions": sessions, **more}


def _tasks(tx: Tx, workspace_id: str, after: str | None) -> Iterator[tuple[Task, list[SessionRecord]]]:
    """Each with its sessions."""
    while True:
        rows = tx.tasks.list(workspace_id=workspace_id, limit=READ_AT_ONCE, after=after)
        sessions: dict[str, list[SessionRecord]] = {}
        for session in tx.sessions.of_tasks([row.id for row in rows]):
            sessions.setdefault(session.task_id, []).append(session)
        for row in rows:
            yield row, sessions.get(row.id, [])
        if len(rows) < READ_AT_ONCE:
            return
        after = rows[-1].id

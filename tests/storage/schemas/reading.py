"""Everything in a database as the program reads it, and whether a later program still reads the same.

Not here: how rows lie in tables, which a migration may change.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kandev.ports.store import Tx
from kandev.storage.sql.tx import SqlTx

MANY = 100_000


def everything(tx: Tx) -> dict[str, Any]:
    """What people and programs can ask for, as plain values."""
    spaces = tx.workspaces.list()
    sessions = [session for space in spaces for session in tx.sessions.of_workspace(space.id)]
    tasks = tx.tasks.list(include_archived=True)
    found = {
        "epoch": tx.epoch(),
        "first_start": tx.note("first_start"),
        "alive": tx.sessions.alive(),
        "workspaces": spaces,
        "profiles": tx.profiles.list(),
        "repositories": [row for space in spaces for row in tx.repositories.list(space.id)],
        "workflows": [row for space in spaces for row in tx.workflows.list(space.id)],
        "tasks": tasks,
        "worktrees": [tx.tasks.worktree(task.id) for task in tasks],
        "sessions": sessions,
        "entries": [tx.entries.get(id) for id in _entry_ids(tx)],
        "by_session": {session.id: _of_session(tx, session.id) for session in sessions},
        "streams": {space.id: tx.notifications.last("workspace", space.id) for space in spaces},
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    return plain


def _of_session(tx: Tx, id: str) -> dict[str, Any]:
    return {
        "turns": tx.turns.of_session(id),
        "queue": [entry.id for entry in tx.entries.queue(id)],
        "executions": tx.executions.of_session(id),
        "messages": tx.messages.page(id, limit=MANY),
        "last": tx.notifications.last("session", id),
        "kept": [notification.action for notification in tx.notifications.since("session", id, 0) or ()],
    }


def _entry_ids(tx: Tx) -> list[str]:
    assert isinstance(tx, SqlTx)
    return list(tx.connection.exec_driver_sql("SELECT id FROM entries ORDER BY id").scalars())


def missing(was: Any, now: Any, where: str = "") -> list[str]:
    """What is not as it was, by its place; members that came later do not count."""
    if isinstance(was, dict) and isinstance(now, dict):
        gone = [f"{where}/{name} is gone" for name in was if name not in now]
        return [*gone, *(m for k in was if k in now for m in missing(was[k], now[k], f"{where}/{k}"))]
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [
            m for i, (a, b) in enumerate(zip(was, now, strict=True)) for m in missing(a, b, f"{where}/{i}")
        ]
    return [] if was == now else [f"{where} was {was!r} and is {now!r}"]

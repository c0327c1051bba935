"""Rows to put in a store: a board with one task and one session, and what belongs to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kandev.core.board import Repository, Step, Task, Workflow, Workspace
from kandev.core.records import EntryRecord, Notification, SessionRecord
from kandev.core.session import Session
from kandev.core.transcript import Message
from kandev.ports.store import Tx

NOW = "2026-01-31T09:15:00.123Z"


class Listener:
    """A publisher that remembers what it was given, and in how many calls."""

    def __init__(self) -> None:
        self.calls: list[list[Notification]] = []

    def publish(self, notifications: Sequence[Notification]) -> None:
        self.calls.append(list(notifications))

    @property
    def heard(self) -> list[Notification]:
        return [notification for call in self.calls for notification in call]


def at(second: int) -> str:
    return f"2026-01-31T09:15:{second:02}.000Z"


def workspace(id: str = "w1", **changes: Any) -> Workspace:
    return Workspace(**{"id": id, "name": "Default", "created_at": NOW, "updated_at": NOW, **changes})


def repository(id: str = "r1", **changes: Any) -> Repository:
    values = {"workspace_id": "w1", "name": "product", "local_path": "/src/product", "default_branch": "main"}
    return Repository(**{"id": id, **values, "created_at": NOW, "updated_at": NOW, **changes})


def workflow(id: str = "f1", steps: tuple[str | Step, ...] = ("s1", "s2"), **changes: Any) -> Workflow:
    columns = tuple(
        Step(step, id, step.upper(), place) if isinstance(step, str) else step
        for place, step in enumerate(steps)
    )
    values = {"workspace_id": "w1", "name": "Kanban", "style": "kanban", "steps": columns}
    return Workflow(**{"id": id, **values, "created_at": NOW, "updated_at": NOW, **changes})


def task(id: str = "t1", **changes: Any) -> Task:
    values = {"workspace_id": "w1", "workflow_id": "f1", "workflow_step_id": "s1", "title": "Fix it"}
    more = {"description": "", "state": "TODO", "priority": "medium", "position": 0}
    return Task(**{"id": id, **values, **more, "created_at": NOW, "updated_at": NOW, **changes})


def session(id: str = "c1", value: Session | None = None, **changes: Any) -> SessionRecord:
    values = {"task_id": "t1", "workspace_id": "w1", "name": "main", "agent_profile_id": "p1"}
    more = {"is_primary": True, "value": value or Session(id), "state": "CREATED", "since": NOW}
    return SessionRecord(**{"id": id, **values, **more, "created_at": NOW, "updated_at": NOW, **changes})


def entry(id: str = "e1", **changes: Any) -> EntryRecord:
    values = {"session_id": "c1", "task_id": "t1", "message_id": "m1", "content": "go", "queued_by": "person"}
    return EntryRecord(
        **{"id": id, **values, "place": 0, "state": "queued", "queued_at": NOW, "at": NOW, **changes}
    )


def message(id: str = "m1", **changes: Any) -> Message:
    values = {"session_id": "c1", "turn_id": None, "author_type": "agent", "type": "message", "content": "a"}
    return Message(**{"id": id, **values, "metadata": {}, "seq": 0, "created_at": NOW, **changes})


def board(tx: Tx) -> None:
    """One workspace, one workflow with two steps, one task, one primary session."""
    tx.workspaces.insert(workspace())
    tx.workflows.insert(workflow())
    tx.tasks.insert(task())
    tx.sessions.insert(session())

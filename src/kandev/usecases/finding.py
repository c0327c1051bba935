"""Looks things up for use cases: the row, or NotFound with a sentence that names the kind of thing.

Not here: what may be done with them.
"""

from kandev.core.board import Profile, Repository, Step, Task, Workflow, Workspace
from kandev.core.errors import Conflict, NotFound
from kandev.core.records import SessionRecord
from kandev.core.task import ARCHIVED
from kandev.ports.store import Tx


def _absent(kind: str, id: str) -> NotFound:
    return NotFound(f"{kind} not found", {"kind": kind, "id": id})


def workspace(tx: Tx, id: str) -> Workspace:
    """Raises NotFound "workspace not found"."""
    if row := tx.workspaces.get(id):
        return row
    raise _absent("workspace", id)


def repository(tx: Tx, id: str) -> Repository:
    """Raises NotFound "repository not found"."""
    if row := tx.repositories.get(id):
        return row
    raise _absent("repository", id)


def workflow(tx: Tx, id: str) -> Workflow:
    """Raises NotFound "workflow not found"."""
    if row := tx.workflows.get(id):
        return row
    raise _absent("workflow", id)


def step(tx: Tx, id: str) -> Step:
    """Raises NotFound "workflow step not found"."""
    if row := tx.workflows.step(id):
        return row
    raise _absent("workflow step", id)


def profile(tx: Tx, id: str) -> Profile:
    """Raises NotFound "agent profile not found"."""
    if row := tx.profiles.get(id):
        return row
    raise _absent("agent profile", id)


def task(tx: Tx, id: str) -> Task:
    """Raises NotFound "task not found"."""
    if row := tx.tasks.get(id):
        return row
    raise _absent("task", id)


def task_on_board(tx: Tx, id: str) -> Task:
    """Raises NotFound "task not found"; Conflict for an archived one, on which nothing starts."""
    row = task(tx, id)
    if row.archived_at is not None:
        raise Conflict(ARCHIVED)
    return row


def session(tx: Tx, id: str, task_id: str | None = None) -> SessionRecord:
    """Of the given task, if one is given. Raises NotFound "session not found"."""
    row = tx.sessions.get(id)
    if row is not None and task_id in (None, row.task_id):
        return row
    raise _absent("session", id)


def repository_of(tx: Tx, task: Task) -> Repository | None:
    """The one that the task works on; None without one, or when it was removed."""
    return tx.repositories.get(task.works_on.repository_id) if task.works_on else None

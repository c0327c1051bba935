"""Tells clients of what changed on the board: each on the stream that its readers follow.

Not here: what only actors announce of their sessions (`booking`).
"""

from typing import Any

from kandev.core import payloads
from kandev.core.board import Profile, Repository, Task, Workflow
from kandev.ports.store import Tx


def workflow_changed(tx: Tx, row: Workflow, *, deleted: bool = False) -> None:
    """`workflow.changed` on its workspace's stream."""
    _changed(tx, row.workspace_id, "workflow.changed", "workflow", payloads.workflow(row), deleted)


def repository_changed(tx: Tx, row: Repository, *, deleted: bool = False) -> None:
    """`repository.changed` on its workspace's stream."""
    _changed(tx, row.workspace_id, "repository.changed", "repository", payloads.repository(row), deleted)


def profile_changed(tx: Tx, row: Profile, *, deleted: bool = False) -> None:
    """`agent.profile.changed` on every workspace's stream: profiles are shared by all."""
    for workspace in tx.workspaces.list():
        _changed(tx, workspace.id, "agent.profile.changed", "profile", payloads.profile(row), deleted)


def _changed(
    tx: Tx, workspace_id: str, action: str, noun: str, payload: dict[str, Any], deleted: bool
) -> None:
    tx.notifications.add("workspace", workspace_id, action, {noun: payload, "deleted": deleted})


def task_created(tx: Tx, row: Task) -> None:
    """`task.created`."""
    tx.notifications.add("workspace", row.workspace_id, "task.created", {"task": payloads.task(row)})


def task_updated(tx: Tx, row: Task) -> None:
    """`task.updated`."""
    tx.notifications.add("workspace", row.workspace_id, "task.updated", {"task": payloads.task(row)})


def task_deleted(tx: Tx, row: Task) -> None:
    """`task.deleted`."""
    tx.notifications.add("workspace", row.workspace_id, "task.deleted", {"task_id": row.id})


def task_state_changed(tx: Tx, before: Task, after: Task) -> None:
    """`task.state_changed`."""
    states = {"task_id": after.id, "old_state": before.state, "new_state": after.state}
    tx.notifications.add("workspace", after.workspace_id, "task.state_changed", states)

"""What happens to a task's state when its sessions move. Pure, over one snapshot.

There is no task actor: a rule here is a function of the task's row and of its sessions' states, read in
the same transaction that writes what it says. Not here: moving cards between steps.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from kandev.core.board import Task

STATES: Final = (
    "TODO",
    "CREATED",
    "SCHEDULING",
    "IN_PROGRESS",
    "REVIEW",
    "BLOCKED",
    "WAITING_FOR_INPUT",
    "COMPLETED",
    "FAILED",
    "CANCELLED",
)
WORKING_SESSIONS: Final = frozenset({"STARTING", "RUNNING"})
FINAL: Final = frozenset({"COMPLETED", "CANCELLED"})
ARCHIVED: Final = "The task is archived; take it out of the archive first (task.unarchive)."
"""Why nothing starts on it, and nothing of it changes."""


def _left_alone(task: Task) -> bool:
    return task.office or task.archived_at is not None or task.state in FINAL


def launching(task: Task) -> Task:
    """A session of it is STARTING: SCHEDULING, unless another one works already."""
    if _left_alone(task) or task.state in ("SCHEDULING", "IN_PROGRESS"):
        return task
    return replace(task, state="SCHEDULING", state_before=task.state, error=None)


def working(task: Task) -> Task:
    """A session of it is RUNNING: IN_PROGRESS."""
    if _left_alone(task) or task.state == "IN_PROGRESS":
        return task
    before = task.state_before if task.state == "SCHEDULING" else task.state
    return replace(task, state="IN_PROGRESS", state_before=before, error=None)


def to_review(task: Task, siblings: Iterable[str]) -> Task:
    """After a turn's end, a person's cancel, or a stop; never while another session works."""
    kept = _left_alone(task) or task.state not in ("IN_PROGRESS", "SCHEDULING")
    if kept or any(state in WORKING_SESSIONS for state in siblings):
        return task
    return replace(task, state="REVIEW", state_before=None)


def stopped_by_operator(task: Task, siblings: Iterable[str]) -> Task:
    """A person stopped its sessions: REVIEW, whatever it was before, unless final, archived or at work."""
    if _left_alone(task) or any(state in WORKING_SESSIONS for state in siblings):
        return task
    return replace(task, state="REVIEW", state_before=None)


def launch_over(task: Task, siblings: Iterable[str], error: str | None) -> Task:
    """A launch failed, or came up with nothing to say: back to the state before it."""
    siblings = tuple(siblings)
    noted = task if error is None else replace(task, error=error)
    if task.state == "IN_PROGRESS":  # the work beside which it was launched may be over meanwhile
        return to_review(noted, siblings)
    if _left_alone(task) or task.state != "SCHEDULING" or any(s in WORKING_SESSIONS for s in siblings):
        return noted
    return replace(noted, state=task.state_before or "TODO", state_before=None)

"""Where a card stands in its column. The places of a column are counted from 0.

Not here: into which column it goes (`core.workflow`).
"""

from collections.abc import Sequence
from dataclasses import replace

from kandev.core import payloads
from kandev.core.board import Task
from kandev.ports.store import Tx
from kandev.runtime import announcements


def put(tx: Tx, before: Task, moved: Task, position: int | None, at: str) -> None:
    """Write the task and every neighbour whose place changes, and tell of each. Last in its step without
    `position`; one that is too high means last. Both columns are counted anew."""
    column = [place for place in tx.tasks.places(moved.workflow_step_id) if place[0] != moved.id]
    place = len(column) if position is None else min(position, len(column))
    _close_up(tx, column[:place])
    write(tx, before, replace(moved, position=place), at)
    _close_up(tx, column[place:], place + 1)
    if before.workflow_step_id != moved.workflow_step_id:
        _close_up(tx, tx.tasks.places(before.workflow_step_id))


def write(tx: Tx, before: Task, after: Task, at: str) -> None:
    """The task alone, with one event for each thing that changed; nothing when nothing did. What shows
    nowhere (what is owed, what was counted) is told to nobody."""
    if after == before:
        return
    if payloads.task(after) == payloads.task(before):
        tx.tasks.update(after)
        return
    tx.tasks.update(replace(after, updated_at=at))
    written = replace(after, updated_at=at, version=after.version + 1)
    announcements.task_updated(tx, written)
    if before.state != written.state:
        announcements.task_state_changed(tx, before, written)


def _close_up(tx: Tx, column: Sequence[tuple[str, int]], first: int = 0) -> None:
    for position, (id, was) in enumerate(column, first):
        task = tx.tasks.get(id) if position != was else None
        if task is not None:
            tx.tasks.update(replace(task, position=position))
            announcements.task_updated(tx, replace(task, position=position))

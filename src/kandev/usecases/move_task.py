"""Move a task to a step and a place in it; the places of both steps are counted anew from 0.

No step action runs. Entering a step marked as final completes the task, leaving it opens the task again:
that is the board's meaning of the mark, not an action. Not here: the tool `move_task_kandev`, pending
moves.
"""

from collections.abc import Sequence
from dataclasses import replace

from kandev.core.board import Step, Task
from kandev.core.errors import Conflict, Invalid
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.complete_task import complete_sessions
from kandev.usecases.context import Context
from kandev.usecases.live_sessions import Ended


async def move_task(
    ctx: Context, *, id: str, workflow_step_id: str, position: int | None = None
) -> tuple[Task, Ended]:
    """The task, and what became of its sessions when the step is final. Last in the step without
    `position`; one that is too high means last. Raises NotFound; Invalid for a step of another workspace;
    Conflict for an archived task."""
    now = ctx.clock.now()

    def change(tx: Tx) -> tuple[Task, Task]:
        before = finding.task(tx, id)
        step = finding.step(tx, workflow_step_id)
        workflow = finding.workflow(tx, step.workflow_id)
        if workflow.workspace_id != before.workspace_id:
            raise Invalid(f"Step {step.name!r} belongs to another workspace; name one of the task's own.")
        if before.archived_at is not None:
            raise Conflict("The task is archived; take it out of the archive first (task.unarchive).")
        moved = replace(
            before,
            workflow_id=workflow.id,
            workflow_step_id=step.id,
            state=_state(tx, before, step),
            office=workflow.style == "office",
        )
        _place(tx, before, moved, position, now)
        after = finding.task(tx, id)
        if after.state != before.state:
            announcements.task_state_changed(tx, before, after)
        return before, after

    before, after = await ctx.store.write(change)
    completed = after.state == "COMPLETED" and before.state != "COMPLETED"
    return after, await complete_sessions(ctx, task_id=id) if completed else Ended()


def _state(tx: Tx, task: Task, to: Step) -> str:
    if to.id == task.workflow_step_id:
        return task.state
    if to.final:
        return "COMPLETED"
    left = tx.workflows.step(task.workflow_step_id)
    reopened = task.state == "COMPLETED" and left is not None and left.final
    return "TODO" if reopened else task.state


def _place(tx: Tx, before: Task, moved: Task, position: int | None, now: str) -> None:
    """Write the task and every neighbour whose place changes, and tell of each."""
    column = [place for place in tx.tasks.places(moved.workflow_step_id) if place[0] != moved.id]
    place = len(column) if position is None else min(position, len(column))
    _close_up(tx, column[:place])
    placed = replace(moved, position=place)
    if placed != before:
        _write(tx, replace(placed, updated_at=now))
    _close_up(tx, column[place:], place + 1)
    if before.workflow_step_id != moved.workflow_step_id:
        _close_up(tx, tx.tasks.places(before.workflow_step_id))


def _close_up(tx: Tx, column: Sequence[tuple[str, int]], first: int = 0) -> None:
    for position, (id, was) in enumerate(column, first):
        if position != was:
            _write(tx, replace(finding.task(tx, id), position=position))


def _write(tx: Tx, task: Task) -> None:
    tx.tasks.update(task)
    announcements.task_updated(tx, task)

"""Move a task to a step and a place in it; the places of both steps are counted anew from 0.

A person's move is at once: it withdraws one that waits, and runs what the steps do on leaving and entering.
A tool's waits for the end of the turn that runs. Entering a step marked as final completes the task, leaving
it opens the task again: that is the board's meaning of the mark, not an action. Not here: what a turn's end
moves (`runtime.task_booking`), what entering a step owes (`owed_steps`).
"""

from dataclasses import dataclass

import structlog

from kandev.core import workflow as rules
from kandev.core.board import PendingMove, Step, Task
from kandev.core.errors import Conflict, Invalid
from kandev.core.task import ARCHIVED
from kandev.core.workflow import Snapshot
from kandev.ports.store import Tx
from kandev.runtime import places
from kandev.usecases import finding
from kandev.usecases.complete_task import complete_sessions
from kandev.usecases.context import Context
from kandev.usecases.live_sessions import Ended
from kandev.usecases.owed_steps import settled

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Requested:
    """What became of a tool's move: it is done, or waits for the end of the turn that runs."""

    moved: bool
    pending: bool


async def move_task(
    ctx: Context, *, id: str, workflow_step_id: str, position: int | None = None
) -> tuple[Task, Ended]:
    """The task, and what became of its sessions when the step is final. Last in the step without
    `position`; one that is too high means last. Raises NotFound; Invalid for a step of another workspace;
    Conflict for an archived task."""

    def change(tx: Tx) -> tuple[Task, Task]:
        before, step = _found(tx, id, workflow_step_id)
        return before, _at_once(ctx, tx, before, step, position, by_person=True)

    before, after = await ctx.store.write(change)
    if after.state != "COMPLETED" or before.state == "COMPLETED":
        _tell(ctx, after)
        return after, Ended()
    ended = await complete_sessions(ctx, task_id=id)
    if not ended.failures:
        await settled(ctx, id, after.entered)
    return after, ended


async def request_move(
    ctx: Context, *, task_id: str, step_id: str, position: int | None = None, by: str
) -> Requested:
    """A tool's move: at the end of the turn while a session of the task has one, instead of a move that
    waited already; else at once. `by`: who asks. Raises as `move_task`."""

    def change(tx: Tx) -> Task | None:
        before, step = _found(tx, task_id, step_id)
        if any(session.value.turn is not None for session in tx.sessions.of_task(task_id)):
            waits = rules.later(before, PendingMove(step.id, by, position))
            places.write(tx, before, waits, ctx.clock.now())
            return None
        return _at_once(ctx, tx, before, step, position, by_person=False)

    after = await ctx.store.write(change)
    if after is None:
        return Requested(moved=False, pending=True)
    _tell(ctx, after)
    return Requested(moved=True, pending=False)


def _found(tx: Tx, task_id: str, step_id: str) -> tuple[Task, Step]:
    task = finding.task(tx, task_id)
    step = finding.step(tx, step_id)
    if finding.workflow(tx, step.workflow_id).workspace_id != task.workspace_id:
        raise Invalid(f"Step {step.name!r} belongs to another workspace; name one of the task's own.")
    if task.archived_at is not None:
        raise Conflict(ARCHIVED)
    return task, step


def _at_once(
    ctx: Context, tx: Tx, before: Task, step: Step, position: int | None, *, by_person: bool
) -> Task:
    named = sorted({before.workflow_id, step.workflow_id})
    now = Snapshot(before, tuple(finding.workflow(tx, workflow_id) for workflow_id in named))
    moved = rules.move(now, step, by_person=by_person)
    for sentence in moved.ignored:
        log.warning("workflow", task_id=before.id, ignored=sentence)
    places.put(tx, before, moved.task, position, ctx.clock.now())
    return finding.task(tx, before.id)


def _tell(ctx: Context, task: Task) -> None:
    if task.owed_enter is not None:
        ctx.sessions.owing.set()

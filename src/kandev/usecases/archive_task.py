"""Take a task off the board, and put it back. Its sessions end, its worktree and its transcript stay.

Not here: deleting it (`delete_task`).
"""

from dataclasses import dataclass, field, replace

from kandev.core.board import Task
from kandev.core.errors import AgentFault, Conflict
from kandev.ports.store import Tx
from kandev.usecases import announce, finding, stop_task
from kandev.usecases.context import Context


@dataclass(frozen=True)
class Archived:
    """The task. `failures`: sentence by session id (the task's, when none could be stopped)."""

    task: Task
    failures: dict[str, str] = field(default_factory=dict)


async def archive_task(ctx: Context, *, id: str) -> Archived:
    """Marks first, so that nothing starts on it any more; then stops its sessions. Raises NotFound."""
    task = await _mark(ctx, id, ctx.clock.now())
    try:
        stopped = await stop_task.stop_task(ctx, task_id=id, reason="task archived", required=False)
    except (Conflict, AgentFault) as error:
        return Archived(task, {id: error.message})
    return Archived(task, dict(stopped.failures))


async def unarchive_task(ctx: Context, *, id: str) -> Task:
    """Its sessions stay ended. Raises NotFound."""
    return await _mark(ctx, id, None)


async def _mark(ctx: Context, id: str, archived_at: str | None) -> Task:
    now = ctx.clock.now()

    def change(tx: Tx) -> Task:
        before = finding.task(tx, id)
        if (before.archived_at is None) == (archived_at is None):
            return before
        position = before.position if archived_at else tx.tasks.next_position(before.workflow_step_id)
        tx.tasks.update(replace(before, archived_at=archived_at, position=position, updated_at=now))
        after = finding.task(tx, id)
        announce.task_updated(tx, after)
        return after

    return await ctx.store.write(change)

"""Take a task off the board, and put it back. Its sessions end, its worktree and its transcript stay.

Not here: deleting it (`delete_task`).
"""

from dataclasses import replace

from kandev.core import task as task_rules
from kandev.core.board import Task
from kandev.core.errors import Conflict
from kandev.core.session import Outcome
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.live_sessions import end_live_sessions


async def archive_task(ctx: Context, *, id: str) -> Task:
    """Marks first, so that nothing starts on it any more; then stops its sessions, all of them. Raises
    NotFound; Conflict (details `{failures}`) when one could not be stopped: archive it again for the rest."""
    task = await _mark(ctx, id, ctx.clock.now())
    ended = await end_live_sessions(ctx, task_id=id, reason="task archived", finally_as=Outcome.CANCELLED)
    if ended.failures:
        sentence = next(iter(ended.failures.values())).message
        raise Conflict(
            f"The task is archived, but a session of it could not be stopped: {sentence}", ended.details
        )
    return task


async def unarchive_task(ctx: Context, *, id: str) -> Task:
    """Its sessions stay ended; work that ended meanwhile waits for review. Raises NotFound."""
    return await _mark(ctx, id, None)


async def _mark(ctx: Context, id: str, archived_at: str | None) -> Task:
    now = ctx.clock.now()

    def change(tx: Tx) -> Task:
        before = finding.task(tx, id)
        if (before.archived_at is None) == (archived_at is None):
            return before
        position = before.position if archived_at else tx.tasks.next_position(before.workflow_step_id)
        marked = replace(before, archived_at=archived_at, position=position, updated_at=now)
        if archived_at:  # off the board no step is entered any more
            marked = replace(marked, pending_move=None, owed_enter=None)
        # Off the board nothing moves a task: what was at work when it left may have ended since.
        states = [s.state for s in tx.sessions.of_task(id)]
        tx.tasks.update(marked if archived_at else task_rules.to_review(marked, states))
        after = finding.task(tx, id)
        announcements.task_updated(tx, after)
        if before.state != after.state:
            announcements.task_state_changed(tx, before, after)
        return after

    return await ctx.store.write(change)

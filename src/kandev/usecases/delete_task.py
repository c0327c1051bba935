"""Delete a task: end its sessions by force, then remove it with all that was said, then its worktree.

A worktree with work that is not committed stays on disk, and the answer says so; branches always stay.
Subtasks stay, without a parent. Not here: taking a task off the board (`archive_task`).
"""

from dataclasses import dataclass, replace

from kandev.core.board import Repository, Worktree
from kandev.core.errors import AgentFault, Conflict, NotFound
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import delete_session, finding
from kandev.usecases.context import Context
from kandev.usecases.live_sessions import end_live_sessions


@dataclass(frozen=True)
class Deleted:
    """`worktree_kept`: the path of a worktree that is still there, `reason` why."""

    worktree_kept: str | None = None
    reason: str | None = None


async def delete_task(ctx: Context, *, id: str) -> Deleted:
    """Raises NotFound; Conflict when a session cannot be ended, or one is started meanwhile: then the task
    is still there."""
    await ctx.store.read(lambda tx: finding.task(tx, id))
    ended = await end_live_sessions(ctx, task_id=id, reason="task deleted", force=True)
    if ended.failures:
        sentence = next(iter(ended.failures.values())).message
        raise Conflict(
            f"The task was not deleted, for a session of it could not be stopped: {sentence}", ended.details
        )
    for session_id in await ctx.store.read(lambda tx: [s.id for s in tx.sessions.of_task(id)]):
        try:
            await delete_session.delete_session(ctx, session_id=session_id)
        except NotFound:
            continue
    worktree, repository = await ctx.store.write(lambda tx: _remove(tx, id, ctx.clock.now()))
    return await _clear(ctx, worktree, repository)


def _remove(tx: Tx, id: str, now: str) -> tuple[Worktree | None, Repository | None]:
    task = finding.task(tx, id)
    if tx.sessions.of_task(id):
        raise Conflict(
            "The task was not deleted, for a session was started on it meanwhile; delete it again."
        )
    worktree = tx.tasks.worktree(id)
    repository = tx.repositories.get(worktree.repository_id) if worktree and worktree.repository_id else None
    for child in tx.tasks.children(id):
        tx.tasks.update(replace(child, parent_id=None, updated_at=now))
        announcements.task_updated(tx, finding.task(tx, child.id))
    tx.tasks.delete(id)
    announcements.task_deleted(tx, task)
    return worktree, repository


async def _clear(ctx: Context, worktree: Worktree | None, repository: Repository | None) -> Deleted:
    if worktree is None:
        return Deleted()
    try:
        await ctx.worktrees.remove(worktree, repository, force=False)
    except NotFound:
        return Deleted()
    except (Conflict, AgentFault) as error:
        return Deleted(worktree.path, error.message)
    return Deleted()

"""What the agents of a task changed: files against the base commit, and the diff.

Not here: git (`ports.worktrees`).
"""

from pathlib import PurePosixPath

from kandev.core.board import Worktree
from kandev.core.errors import Invalid, NotFound
from kandev.ports.store import Tx
from kandev.ports.worktrees import Change
from kandev.usecases import finding
from kandev.usecases.context import Context


async def session_changes(ctx: Context, *, session_id: str) -> tuple[Change, ...]:
    """Raises NotFound for an unknown session, and for one whose worktree does not exist yet."""
    return await ctx.worktrees.changes(await _worktree(ctx, session_id))


async def session_diff(ctx: Context, *, session_id: str, path: str | None = None) -> str:
    """Unified. `path` is relative to the worktree and stays inside it. Raises NotFound, Invalid."""
    worktree = await _worktree(ctx, session_id)
    if path is not None:
        parts = PurePosixPath(path)
        if "\0" in path or parts.is_absolute() or ".." in parts.parts:
            raise Invalid(f"path must be relative to the worktree and stay inside it: {path!r}.")
    return await ctx.worktrees.diff(worktree, path)


async def _worktree(ctx: Context, session_id: str) -> Worktree:
    def look(tx: Tx) -> Worktree:
        task_id = finding.session(tx, session_id).task_id
        if worktree := tx.tasks.worktree(task_id):
            return worktree
        raise NotFound("worktree not found: the task has none yet; launch the session first")

    return await ctx.store.read(look)

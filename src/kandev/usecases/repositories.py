"""Repositories of a workspace: list, read, add, change, take out. Their files are never touched.

Not here: worktrees of tasks (`ports.worktrees`).
"""

from dataclasses import replace
from pathlib import PurePosixPath

from kandev.core.board import Repository
from kandev.core.errors import Conflict, Invalid
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.workspaces import said


async def list_repositories(ctx: Context, *, workspace_id: str) -> tuple[Repository, ...]:
    """By creation. Raises NotFound."""

    def look(tx: Tx) -> tuple[Repository, ...]:
        return tuple(tx.repositories.list(finding.workspace(tx, workspace_id).id))

    return await ctx.store.read(look)


async def get_repository(ctx: Context, *, id: str) -> Repository:
    """Raises NotFound."""
    return await ctx.store.read(lambda tx: finding.repository(tx, id))


async def create_repository(
    ctx: Context,
    *,
    workspace_id: str,
    local_path: str,
    name: str | None = None,
    default_branch: str | None = None,
) -> Repository:
    """`local_path` may lie anywhere inside the repository. Raises NotFound, Invalid (with git's reason),
    Conflict when the workspace has it already."""
    await ctx.store.read(lambda tx: finding.workspace(tx, workspace_id))
    if "\0" in local_path or not local_path.startswith("/"):
        raise Invalid(
            f"local_path must be an absolute path on the machine that Kandev runs on: {local_path!r}."
        )
    found = await ctx.worktrees.inspect(local_path)
    now = ctx.clock.now()
    row = Repository(
        id=ctx.ids.new("repository"),
        workspace_id=workspace_id,
        name=said(name or PurePosixPath(found.path).name or found.path, "name"),
        local_path=found.path,
        default_branch=said(default_branch or found.default_branch, "default_branch"),
        created_at=now,
        updated_at=now,
    )

    def change(tx: Tx) -> Repository:
        finding.workspace(tx, workspace_id)
        for other in tx.repositories.list(workspace_id):
            if other.local_path == row.local_path:
                there = f"The workspace has the repository {row.local_path} already, as {other.name!r}."
                raise Conflict(there, {"repository_id": other.id})
        tx.repositories.insert(row)
        announcements.repository_changed(tx, row)
        return row

    return await ctx.store.write(change)


async def update_repository(
    ctx: Context, *, id: str, name: str | None = None, default_branch: str | None = None
) -> Repository:
    """None leaves a member as it is. Raises NotFound, Invalid."""
    now = ctx.clock.now()

    def change(tx: Tx) -> Repository:
        row = finding.repository(tx, id)
        row = replace(
            row,
            name=row.name if name is None else said(name, "name"),
            default_branch=row.default_branch
            if default_branch is None
            else said(default_branch, "default_branch"),
            updated_at=now,
        )
        tx.repositories.update(row)
        announcements.repository_changed(tx, row)
        return row

    return await ctx.store.write(change)


async def delete_repository(ctx: Context, *, id: str) -> None:
    """Raises NotFound; Conflict while a task works on it."""

    def change(tx: Tx) -> None:
        row = finding.repository(tx, id)
        tasks = tx.tasks.list(workspace_id=row.workspace_id, include_archived=True)
        using = [t for t in tasks if any(r.repository_id == id for r in t.repositories)]
        if using:
            raise Conflict(
                f"Repository {row.name!r} is used by {len(using)} task(s), among them {using[0].title!r};"
                " delete them first.",
                {"task_ids": [t.id for t in using[:20]]},
            )
        tx.repositories.delete(id)
        announcements.repository_changed(tx, row, deleted=True)

    await ctx.store.write(change)

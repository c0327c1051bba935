"""Workspaces: list, read, create, rename, delete.

Not here: the first one of a new home (`first_start`).
"""

from dataclasses import replace

from kandev.core.board import Workspace
from kandev.core.errors import Conflict, Invalid
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.context import Context


async def list_workspaces(ctx: Context) -> tuple[Workspace, ...]:
    """All, by creation."""
    return await ctx.store.read(lambda tx: tuple(tx.workspaces.list()))


async def get_workspace(ctx: Context, *, id: str) -> Workspace:
    """Raises NotFound."""
    return await ctx.store.read(lambda tx: finding.workspace(tx, id))


async def create_workspace(ctx: Context, *, name: str) -> Workspace:
    """Raises Invalid for a blank name."""
    now = ctx.clock.now()
    row = Workspace(ctx.ids.new("workspace"), said(name, "name"), now, now)
    await ctx.store.write(lambda tx: tx.workspaces.insert(row))
    return row


async def rename_workspace(ctx: Context, *, id: str, name: str) -> Workspace:
    """Raises NotFound, Invalid for a blank name."""
    now = ctx.clock.now()

    def change(tx: Tx) -> Workspace:
        row = replace(finding.workspace(tx, id), name=said(name, "name"), updated_at=now)
        tx.workspaces.update(row)
        return row

    return await ctx.store.write(change)


async def delete_workspace(ctx: Context, *, id: str) -> None:
    """With its repositories (not their files) and workflows. Raises NotFound; Conflict while tasks are in
    it."""

    def change(tx: Tx) -> None:
        row = finding.workspace(tx, id)
        if tx.tasks.list(workspace_id=id, include_archived=True, limit=1):
            raise Conflict(f"Workspace {row.name!r} still has tasks; delete them first.")
        tx.workspaces.delete(id)

    await ctx.store.write(change)


def said(text: str, field: str) -> str:
    """The text without space around it. Raises Invalid when nothing is left, or it holds a NUL character."""
    if not text.strip():
        raise Invalid(f"The field `{field}` is blank; write something in it.")
    if "\0" in text:
        raise Invalid(f"The field `{field}` holds a NUL character; take it out.")
    return text.strip()

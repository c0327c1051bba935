"""Tasks: read, list, change what they say.

Not here: creating (`create_task`), moving (`move_task`), states (`task_state`), archiving, deleting.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from kandev.core.board import Task
from kandev.core.errors import Invalid
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.workspaces import said

PAGE_CHARACTERS: Final = 16 << 20
"""Of titles and descriptions in one page; one task alone may have more."""
READ_AT_ONCE: Final = 200


@dataclass(frozen=True)
class Wanted:
    """Which tasks; None does not narrow."""

    workspace_id: str | None = None
    workflow_id: str | None = None
    parent_id: str | None = None
    include_archived: bool = False


@dataclass(frozen=True)
class Page:
    """A part of a list. `next_cursor` is given when there is more."""

    tasks: tuple[Task, ...]
    next_cursor: str | None = None


async def get_task(ctx: Context, *, id: str) -> Task:
    """Raises NotFound."""
    return await ctx.store.read(lambda tx: finding.task(tx, id))


async def list_tasks(
    ctx: Context, wanted: Wanted, *, limit: int | None = None, cursor: str | None = None
) -> Page:
    """By creation, at most `PAGE_CHARACTERS` of them. Raises NotFound for an unknown workspace, workflow or
    parent; Invalid for an unknown cursor."""

    def look(tx: Tx) -> Page:
        if wanted.workspace_id is not None:
            finding.workspace(tx, wanted.workspace_id)
        if wanted.workflow_id is not None:
            finding.workflow(tx, wanted.workflow_id)
        if wanted.parent_id is not None:
            finding.task(tx, wanted.parent_id)
        if cursor is not None and not is_in(tx.tasks.get(cursor), wanted.workspace_id):
            raise Invalid("The cursor is not known (any more); list again without it.")
        return _page(tx, wanted, limit, cursor)

    return await ctx.store.read(look)


def is_in(task: Task | None, workspace_id: str | None) -> bool:
    """Whether it is there, and in this workspace; None: in any."""
    return task is not None and workspace_id in (None, task.workspace_id)


def _page(tx: Tx, wanted: Wanted, limit: int | None, after: str | None) -> Page:
    """Read a few at a time: a list of all that there is may be larger than memory."""
    taken, size = list[Task](), 0
    while True:
        rows = tx.tasks.list(**vars(wanted), limit=READ_AT_ONCE, after=after)
        for row in rows:
            size += len(row.description) + len(row.title)
            if taken and (len(taken) == limit or size > PAGE_CHARACTERS):
                return Page(tuple(taken), taken[-1].id)
            taken.append(row)
        if len(rows) < READ_AT_ONCE:
            return Page(tuple(taken))
        after = rows[-1].id


async def update_task(ctx: Context, *, id: str, changes: Mapping[str, Any]) -> Task:
    """`changes`: any of title, description, priority, parent_id, agent_profile_id. Raises NotFound; Invalid
    for a blank title, a parent in another workspace, or one that is the task itself or below it."""
    now = ctx.clock.now()

    def change(tx: Tx) -> Task:
        before = finding.task(tx, id)
        if parent_id := changes.get("parent_id"):
            _check_parent(tx, before, parent_id)
        if profile_id := changes.get("agent_profile_id"):
            finding.profile(tx, profile_id)
        words = {name: said(changes[name], name) for name in ("title", "priority") if name in changes}
        after = replace(before, **{**changes, **words})
        if after == before:
            return before
        tx.tasks.update(replace(after, updated_at=now))
        written = finding.task(tx, id)
        announcements.task_updated(tx, written)
        return written

    return await ctx.store.write(change)


def _check_parent(tx: Tx, task: Task, parent_id: str) -> None:
    parent: Task | None = finding.task(tx, parent_id)
    if parent and parent.workspace_id != task.workspace_id:
        raise Invalid("The parent task belongs to another workspace; name one of the task's own.")
    seen = {task.id}
    while parent is not None:
        if parent.id in seen:
            raise Invalid("A task cannot be below itself; name a parent that is not one of its own subtasks.")
        seen.add(parent.id)
        parent = tx.tasks.get(parent.parent_id) if parent.parent_id else None

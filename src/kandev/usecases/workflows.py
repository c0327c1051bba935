"""Workflows of a workspace: list, read, create, change, delete.

Not here: their steps (`workflow_steps`), their documents (`workflow_documents`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kandev.core.board import Step, Workflow, WorkflowStyle
from kandev.core.errors import Conflict
from kandev.core.step_events import checked
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.workspaces import said


@dataclass(frozen=True)
class NewStep:
    """A column to come. `final`: a task that enters it is completed."""

    name: str
    events: dict[str, Any] = field(default_factory=dict)
    final: bool = False


KANBAN: Final = (
    NewStep("Backlog", {"on_turn_start": [{"type": "move_to_next"}]}),
    NewStep("In Progress", {"on_turn_complete": [{"type": "move_to_next"}]}),
    NewStep("Review", {"on_turn_start": [{"type": "move_to_previous"}]}),
    NewStep("Done", final=True),
)
"""A started task goes to In Progress, a finished turn to Review, a new prompt back. Done is left alone."""


async def list_workflows(ctx: Context, *, workspace_id: str) -> tuple[Workflow, ...]:
    """By creation. Raises NotFound."""

    def look(tx: Tx) -> tuple[Workflow, ...]:
        return tuple(tx.workflows.list(finding.workspace(tx, workspace_id).id))

    return await ctx.store.read(look)


async def get_workflow(ctx: Context, *, id: str) -> Workflow:
    """Raises NotFound."""
    return await ctx.store.read(lambda tx: finding.workflow(tx, id))


async def create_workflow(
    ctx: Context,
    *,
    workspace_id: str,
    name: str,
    style: WorkflowStyle = "kanban",
    steps: Sequence[NewStep] = KANBAN,
) -> Workflow:
    """Raises NotFound, Invalid for a blank name or bad events of a step."""
    row = build(ctx, workspace_id, name, style, steps)

    def change(tx: Tx) -> Workflow:
        finding.workspace(tx, workspace_id)
        tx.workflows.insert(row)
        announcements.workflow_changed(tx, row)
        return row

    return await ctx.store.write(change)


def build(
    ctx: Context, workspace_id: str, name: str, style: WorkflowStyle, steps: Sequence[NewStep]
) -> Workflow:
    """A new row with ids of its own. Raises Invalid for a blank name, and for events that say nothing."""
    now, id = ctx.clock.now(), ctx.ids.new("workflow")
    columns = tuple(
        Step(ctx.ids.new("step"), id, said(s.name, "name"), position, s.events, s.final)
        for position, s in enumerate(steps)
    )
    return Workflow(id, workspace_id, said(name, "name"), style, checked(columns), now, now)


async def update_workflow(
    ctx: Context, *, id: str, name: str | None = None, style: WorkflowStyle | None = None
) -> Workflow:
    """None leaves a member as it is. Raises NotFound; Conflict when the style of a workflow with tasks
    would change."""
    now = ctx.clock.now()

    def change(tx: Tx) -> Workflow:
        before = finding.workflow(tx, id)
        if style not in (None, before.style) and tx.tasks.list(
            workflow_id=id, include_archived=True, limit=1
        ):
            raise Conflict("The style of a workflow that has tasks cannot change; move or delete them first.")
        row = replace(
            before,
            name=before.name if name is None else said(name, "name"),
            style=style or before.style,
            updated_at=now,
        )
        tx.workflows.update(row)
        announcements.workflow_changed(tx, row)
        return row

    return await ctx.store.write(change)


async def delete_workflow(ctx: Context, *, id: str) -> None:
    """Raises NotFound; Conflict while tasks are on it, archived ones included."""

    def change(tx: Tx) -> None:
        row = finding.workflow(tx, id)
        if tx.tasks.list(workflow_id=id, include_archived=True, limit=1):
            raise Conflict(f"Workflow {row.name!r} still has tasks; move or delete them first.")
        tx.workflows.delete(id)
        announcements.workflow_changed(tx, row, deleted=True)

    await ctx.store.write(change)

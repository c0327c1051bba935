"""Steps of a workflow: add, change, delete, order. Positions count from 0 without gaps.

Not here: moving tasks between them (`move_task`).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from kandev.core.board import Step, Workflow
from kandev.core.errors import Conflict, Invalid
from kandev.core.step_events import checked_step, leads_to
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.workflows import NewStep
from kandev.usecases.workspaces import said

Steps = tuple[Step, ...]


async def create_step(ctx: Context, *, workflow_id: str, new: NewStep, position: int | None = None) -> Step:
    """At `position`, or last. Raises NotFound, Invalid for a blank name or bad events."""
    id = ctx.ids.new("step")

    def add(tx: Tx, workflow: Workflow) -> Steps:
        place = len(workflow.steps) if position is None else position
        step = Step(id, workflow_id, said(new.name, "name"), place, new.events, new.final)
        step = checked_step(step, (*workflow.steps, step))
        return (*workflow.steps[:place], step, *workflow.steps[place:])

    return _step(await _change(ctx, lambda tx: finding.workflow(tx, workflow_id), add), id)


async def update_step(
    ctx: Context,
    *,
    id: str,
    name: str | None = None,
    events: dict[str, Any] | None = None,
    final: bool | None = None,
) -> Step:
    """None leaves a member as it is. Raises NotFound, Invalid."""

    def change(tx: Tx, workflow: Workflow) -> Steps:
        before = _step(workflow, id)
        after = replace(
            before,
            name=before.name if name is None else said(name, "name"),
            events=before.events if events is None else events,
            final=before.final if final is None else final,
        )
        steps = tuple(after if s.id == id else s for s in workflow.steps)
        if events is not None:
            after = checked_step(after, steps)
        return tuple(after if s.id == id else s for s in steps)

    return _step(await _change(ctx, lambda tx: _owner(tx, id), change), id)


async def delete_step(ctx: Context, *, id: str) -> None:
    """Raises NotFound; Conflict for the last step, while tasks are on it, archived ones included, and while
    another step moves tasks to it."""

    def change(tx: Tx, workflow: Workflow) -> Steps:
        step = _step(workflow, id)
        if len(workflow.steps) == 1:
            raise Conflict(f"{step.name!r} is the last step of its workflow; delete the workflow instead.")
        if leading := next((s for s in workflow.steps if s.id != id and leads_to(s, id)), None):
            sentence = f"Step {leading.name!r} moves tasks to {step.name!r}; change its events first."
            raise Conflict(sentence)
        on_it = [
            t
            for t in tx.tasks.list(workflow_id=workflow.id, include_archived=True)
            if t.workflow_step_id == id
        ]
        if on_it:
            raise Conflict(f"Step {step.name!r} still has {len(on_it)} task(s); move or delete them first.")
        return tuple(s for s in workflow.steps if s.id != id)

    await _change(ctx, lambda tx: _owner(tx, id), change)


async def reorder_steps(ctx: Context, *, workflow_id: str, step_ids: Sequence[str]) -> Workflow:
    """Raises NotFound; Invalid unless `step_ids` names every step exactly once."""

    def change(tx: Tx, workflow: Workflow) -> Steps:
        by_id = {s.id: s for s in workflow.steps}
        if sorted(step_ids) != sorted(by_id):
            raise Invalid("step_ids must name every step of the workflow exactly once.")
        return tuple(by_id[i] for i in step_ids)

    return await _change(ctx, lambda tx: finding.workflow(tx, workflow_id), change)


def _owner(tx: Tx, step_id: str) -> Workflow:
    return finding.workflow(tx, finding.step(tx, step_id).workflow_id)


def _step(workflow: Workflow, id: str) -> Step:
    return next(s for s in workflow.steps if s.id == id)


async def _change(
    ctx: Context, find: Callable[[Tx], Workflow], change: Callable[[Tx, Workflow], Steps]
) -> Workflow:
    now = ctx.clock.now()

    def write(tx: Tx) -> Workflow:
        workflow = find(tx)
        steps = tuple(replace(s, position=i) for i, s in enumerate(change(tx, workflow)))
        row = replace(workflow, steps=steps, updated_at=now)
        tx.workflows.update(row)
        announcements.workflow_changed(tx, row)
        return row

    return await ctx.store.write(write)

"""A workflow as a document without ids, to keep in a file or to carry to another workspace.

Shape: `{version: 1, name, style, steps: [{name, events, final}]}`; events name steps by their
names. Not here: reading its shape (`wire.gateway_board`).
"""

from collections.abc import Sequence
from typing import Any, Final

from kandev.core.board import Workflow, WorkflowStyle
from kandev.core.step_events import named
from kandev.usecases.context import Context
from kandev.usecases.workflows import NewStep, create_workflow, get_workflow

VERSION: Final = 1


async def export_workflow(ctx: Context, *, id: str) -> dict[str, Any]:
    """The document. Raises NotFound."""
    workflow = await get_workflow(ctx, id=id)
    steps = [{"name": s.name, "events": s.events, "final": s.final} for s in named(workflow.steps)]
    return {"version": VERSION, "name": workflow.name, "style": workflow.style, "steps": steps}


async def import_workflow(
    ctx: Context, *, workspace_id: str, name: str, style: WorkflowStyle, steps: Sequence[NewStep]
) -> Workflow:
    """A new workflow from a document's members. Raises NotFound, Invalid."""
    return await create_workflow(ctx, workspace_id=workspace_id, name=name, style=style, steps=steps)

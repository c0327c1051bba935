"""Create a task, and start an agent on it when that is asked for.

Without a start no step action runs. Not here: changing a task (`tasks`), starting an agent on one that exists
(`launch_session`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kandev.core.board import Step, Task, TaskRepository, Workflow
from kandev.core.context_block import strip
from kandev.core.errors import AgentFault, Conflict, Invalid, Refusal
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding, launch_session
from kandev.usecases.context import Context
from kandev.usecases.workspaces import said

DEFAULT_PRIORITY: Final = "medium"


@dataclass(frozen=True)
class NewTask:
    """What a task begins with. Without a step it begins in the workflow's first one."""

    workspace_id: str
    workflow_id: str
    title: str
    workflow_step_id: str | None = None
    description: str = ""
    parent_id: str | None = None
    priority: str = DEFAULT_PRIORITY
    repositories: Sequence[TaskRepository] = ()
    agent_profile_id: str | None = None
    external_id: str | None = None


@dataclass(frozen=True)
class Created:
    """The task. `start_error`: it exists, but no agent could be started, with the sentence why."""

    task: Task
    session_id: str | None = None
    start_error: str | None = None


async def create_task(
    ctx: Context, new: NewTask, *, start_agent: bool = False, sender: tuple[str, str] | None = None
) -> Created:
    """`sender`: task and session of the agent that makes it (None: a person).

    Raises NotFound (workspace, workflow, step, parent, repository, profile), Invalid (they do not belong
    together, several repositories), Conflict (`external_id` is taken: details `{task_id}`; a start without
    any profile). A call that is handled again makes no second task, and goes on where it was."""
    row = _row(ctx, new)

    def insert(tx: Tx) -> tuple[Task, str | None]:
        if known := tx.tasks.get(row.id):
            return known, _starting_profile(tx, new) if start_agent else None
        placed = _placed(tx, row, new)
        profile = _starting_profile(tx, new) if start_agent else None
        tx.tasks.insert(placed)
        announcements.task_created(tx, placed)
        return placed, profile

    task, profile_id = await ctx.store.write(insert)
    if profile_id is None:
        return Created(task)
    told = strip(task.description).strip() or task.title
    prompt = launch_session.Opening(told, *(sender or ()))
    try:
        launched = await launch_session.launch_session(
            ctx, task_id=task.id, agent_profile_id=profile_id, prompt=prompt
        )
    except (Refusal, AgentFault) as error:
        return Created(task, start_error=error.message)
    now = await ctx.store.read(lambda tx: tx.tasks.get(task.id))
    return Created(now or task, launched.session_id)


def _row(ctx: Context, new: NewTask) -> Task:
    if len(new.repositories) > 1:
        raise Invalid(
            "A task works on one repository for now; name one of them, and make a task for each other."
        )
    for chosen in new.repositories:
        if chosen.base_branch is not None:
            said(chosen.base_branch, "base_branch")
    now = ctx.clock.now()
    return Task(
        id=ctx.ids.new("task"),
        workspace_id=new.workspace_id,
        workflow_id=new.workflow_id,
        workflow_step_id=new.workflow_step_id or "",
        title=said(new.title, "title"),
        description=new.description,
        state="TODO",
        priority=said(new.priority, "priority"),
        position=0,
        created_at=now,
        updated_at=now,
        parent_id=new.parent_id,
        agent_profile_id=new.agent_profile_id,
        repositories=tuple(new.repositories),
        external_id=new.external_id,
    )


def _placed(tx: Tx, row: Task, new: NewTask) -> Task:
    """The row with what the store knows. Existence first, then whether things belong together."""
    workspace = finding.workspace(tx, row.workspace_id)
    workflow = finding.workflow(tx, row.workflow_id)
    step = _step(tx, workflow, new.workflow_step_id)
    parent = finding.task(tx, row.parent_id) if row.parent_id else None
    repositories = [finding.repository(tx, r.repository_id) for r in row.repositories]
    if row.agent_profile_id:
        finding.profile(tx, row.agent_profile_id)
    if workflow.workspace_id != workspace.id:
        raise Invalid(f"Workflow {workflow.name!r} belongs to another workspace; name one of this workspace.")
    if step.workflow_id != workflow.id:
        raise Invalid(f"Step {step.name!r} belongs to another workflow; name a step of {workflow.name!r}.")
    if parent and parent.workspace_id != workspace.id:
        raise Invalid("The parent task belongs to another workspace; name one of this workspace.")
    for repository in repositories:
        if repository.workspace_id != workspace.id:
            raise Invalid(f"Repository {repository.name!r} belongs to another workspace; add it to this one.")
    _check_external_id(tx, row)
    return replace(
        row,
        workflow_step_id=step.id,
        position=tx.tasks.next_position(step.id),
        office=workflow.style == "office",
    )


def _step(tx: Tx, workflow: Workflow, step_id: str | None) -> Step:
    return finding.step(tx, step_id) if step_id else workflow.steps[0]


def _check_external_id(tx: Tx, row: Task) -> None:
    if row.external_id is None:
        return
    if other := tx.tasks.by_external_id(row.workspace_id, row.external_id):
        sentence = (
            f"The external id {row.external_id!r} belongs to task {other.id} ({other.title!r}) already."
        )
        raise Conflict(sentence, {"task_id": other.id})


def _starting_profile(tx: Tx, new: NewTask) -> str:
    """The task's, else the oldest profile."""
    if new.agent_profile_id:
        return new.agent_profile_id
    if profiles := tx.profiles.list():
        return profiles[0].id
    raise Conflict("There is no agent profile to start the task with; create one with agent.profile.create.")

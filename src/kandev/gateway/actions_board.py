"""The board's actions: workspaces, repositories, workflows, agents and their profiles.

Each handler turns a payload into a use case's arguments and its result into the answer. Not here: tasks
(`actions_tasks`), sessions (`actions_sessions`).
"""

from typing import Any

from msgspec import UNSET, Struct, structs

from kandev import __version__
from kandev.core import payloads
from kandev.gateway.action import DONE, Chapter, Result
from kandev.ports.catalogue import KnownAgent
from kandev.usecases import (
    list_agents,
    profiles,
    repositories,
    workflow_documents,
    workflow_steps,
    workflows,
    workspaces,
)
from kandev.usecases.context import Context
from kandev.wire import gateway_board as wire

chapter = Chapter()


def given(payload: Struct) -> dict[str, Any]:
    """The members that were written, without the id."""
    members = structs.asdict(payload)
    return {name: value for name, value in members.items() if name != "id" and value is not UNSET}


@chapter.read("health.check", wire.Empty, "Is the backend there.", "{status: ok, version}")
async def health_check(ctx: Context, asked: wire.Empty) -> Result:
    return {"status": "ok", "version": __version__}


# -- workspaces -------------------------------------------------------------------------------


@chapter.read("workspace.list", wire.Empty, "All workspaces, by creation.", "{workspaces: [workspace]}")
async def workspace_list(ctx: Context, asked: wire.Empty) -> Result:
    rows = await workspaces.list_workspaces(ctx)
    return {"workspaces": [payloads.workspace(row) for row in rows]}


@chapter.read("workspace.get", wire.ById, "One workspace.", "workspace")
async def workspace_get(ctx: Context, asked: wire.ById) -> Result:
    return payloads.workspace(await workspaces.get_workspace(ctx, id=asked.id))


@chapter.action("workspace.create", wire.WorkspaceCreate, "A new workspace.", "workspace")
async def workspace_create(ctx: Context, asked: wire.WorkspaceCreate) -> Result:
    return payloads.workspace(await workspaces.create_workspace(ctx, name=asked.name))


@chapter.action("workspace.update", wire.WorkspaceUpdate, "Rename a workspace.", "workspace")
async def workspace_update(ctx: Context, asked: wire.WorkspaceUpdate) -> Result:
    return payloads.workspace(await workspaces.rename_workspace(ctx, id=asked.id, name=asked.name))


@chapter.action("workspace.delete", wire.ById, "Delete a workspace that has no tasks.", "{success}")
async def workspace_delete(ctx: Context, asked: wire.ById) -> Result:
    await workspaces.delete_workspace(ctx, id=asked.id)
    return DONE


# -- repositories -----------------------------------------------------------------------------


@chapter.read(
    "repository.list", wire.OfWorkspace, "A workspace's repositories.", "{repositories: [repository]}"
)
async def repository_list(ctx: Context, asked: wire.OfWorkspace) -> Result:
    rows = await repositories.list_repositories(ctx, workspace_id=asked.workspace_id)
    return {"repositories": [payloads.repository(row) for row in rows]}


@chapter.read("repository.get", wire.ById, "One repository.", "repository")
async def repository_get(ctx: Context, asked: wire.ById) -> Result:
    return payloads.repository(await repositories.get_repository(ctx, id=asked.id))


@chapter.action(
    "repository.create", wire.RepositoryCreate, "Add a git repository of this machine.", "repository"
)
async def repository_create(ctx: Context, asked: wire.RepositoryCreate) -> Result:
    row = await repositories.create_repository(
        ctx,
        workspace_id=asked.workspace_id,
        local_path=asked.local_path,
        name=asked.name,
        default_branch=asked.default_branch,
    )
    return payloads.repository(row)


@chapter.action("repository.update", wire.RepositoryUpdate, "Change name or default branch.", "repository")
async def repository_update(ctx: Context, asked: wire.RepositoryUpdate) -> Result:
    row = await repositories.update_repository(
        ctx, id=asked.id, name=asked.name, default_branch=asked.default_branch
    )
    return payloads.repository(row)


@chapter.action(
    "repository.delete", wire.ById, "Take a repository out; its files stay untouched.", "{success}"
)
async def repository_delete(ctx: Context, asked: wire.ById) -> Result:
    await repositories.delete_repository(ctx, id=asked.id)
    return DONE


# -- workflows --------------------------------------------------------------------------------


@chapter.read(
    "workflow.list", wire.OfWorkspace, "A workspace's workflows, by creation.", "{workflows: [workflow]}"
)
async def workflow_list(ctx: Context, asked: wire.OfWorkspace) -> Result:
    rows = await workflows.list_workflows(ctx, workspace_id=asked.workspace_id)
    return {"workflows": [payloads.workflow(row) for row in rows]}


@chapter.read("workflow.get", wire.ById, "One workflow with its steps.", "workflow")
async def workflow_get(ctx: Context, asked: wire.ById) -> Result:
    return payloads.workflow(await workflows.get_workflow(ctx, id=asked.id))


@chapter.action("workflow.create", wire.WorkflowCreate, "A new workflow.", "workflow")
async def workflow_create(ctx: Context, asked: wire.WorkflowCreate) -> Result:
    steps = workflows.KANBAN if asked.steps is None else tuple(_step(s) for s in asked.steps)
    row = await workflows.create_workflow(
        ctx, workspace_id=asked.workspace_id, name=asked.name, style=asked.style, steps=steps
    )
    return payloads.workflow(row)


@chapter.action("workflow.update", wire.WorkflowUpdate, "Change name or style.", "workflow")
async def workflow_update(ctx: Context, asked: wire.WorkflowUpdate) -> Result:
    row = await workflows.update_workflow(ctx, id=asked.id, name=asked.name, style=asked.style)
    return payloads.workflow(row)


@chapter.action("workflow.delete", wire.ById, "Delete a workflow that has no tasks.", "{success}")
async def workflow_delete(ctx: Context, asked: wire.ById) -> Result:
    await workflows.delete_workflow(ctx, id=asked.id)
    return DONE


@chapter.action("workflow.step.create", wire.StepCreate, "Add a step.", "step")
async def step_create(ctx: Context, asked: wire.StepCreate) -> Result:
    new = workflows.NewStep(asked.name, asked.events, asked.final)
    row = await workflow_steps.create_step(
        ctx, workflow_id=asked.workflow_id, new=new, position=asked.position
    )
    return payloads.step(row)


@chapter.action("workflow.step.update", wire.StepUpdate, "Change a step.", "step")
async def step_update(ctx: Context, asked: wire.StepUpdate) -> Result:
    row = await workflow_steps.update_step(
        ctx, id=asked.id, name=asked.name, events=asked.events, final=asked.final
    )
    return payloads.step(row)


@chapter.action("workflow.step.delete", wire.ById, "Delete a step that has no tasks.", "{success}")
async def step_delete(ctx: Context, asked: wire.ById) -> Result:
    await workflow_steps.delete_step(ctx, id=asked.id)
    return DONE


@chapter.action("workflow.step.reorder", wire.StepReorder, "Put the steps in another order.", "workflow")
async def step_reorder(ctx: Context, asked: wire.StepReorder) -> Result:
    row = await workflow_steps.reorder_steps(ctx, workflow_id=asked.workflow_id, step_ids=asked.step_ids)
    return payloads.workflow(row)


@chapter.read(
    "workflow.export",
    wire.ById,
    "A workflow as a document without ids.",
    "{workflow: {version, name, style, steps: [{name, events, final}]}}",
)
async def workflow_export(ctx: Context, asked: wire.ById) -> Result:
    return {"workflow": await workflow_documents.export_workflow(ctx, id=asked.id)}


@chapter.action("workflow.import", wire.WorkflowImport, "A new workflow from such a document.", "workflow")
async def workflow_import(ctx: Context, asked: wire.WorkflowImport) -> Result:
    document = asked.workflow
    row = await workflow_documents.import_workflow(
        ctx,
        workspace_id=asked.workspace_id,
        name=document.name,
        style=document.style,
        steps=tuple(_step(s) for s in document.steps),
    )
    return payloads.workflow(row)


def _step(new: wire.NewStep) -> workflows.NewStep:
    return workflows.NewStep(new.name, new.events, new.final)


# -- agents and profiles ----------------------------------------------------------------------


@chapter.read(
    "agent.list",
    wire.AgentList,
    "The known agents, found on this machine or not.",
    "{agents: [{name, title, protocol, command, found, install, login?, path?, version?}]}",
)
async def agent_list(ctx: Context, asked: wire.AgentList) -> Result:
    found = await list_agents.list_agents(ctx, versions=asked.versions)
    return {"agents": [_agent(agent) for agent in found]}


def _agent(agent: KnownAgent) -> Result:
    optional = {"login": agent.login, "path": agent.path, "version": agent.version}
    return {
        **{name: value for name, value in optional.items() if value is not None},
        "name": agent.name,
        "title": agent.title,
        "protocol": agent.protocol,
        "command": list(agent.command),
        "found": agent.found,
        "install": agent.install,
    }


@chapter.read("agent.profile.list", wire.Empty, "All profiles, by creation.", "{profiles: [profile]}")
async def profile_list(ctx: Context, asked: wire.Empty) -> Result:
    return {"profiles": [payloads.profile(row) for row in await profiles.list_profiles(ctx)]}


@chapter.read("agent.profile.get", wire.ById, "One profile; secrets read ***.", "profile")
async def profile_get(ctx: Context, asked: wire.ById) -> Result:
    return payloads.profile(await profiles.get_profile(ctx, id=asked.id))


@chapter.action("agent.profile.create", wire.ProfileCreate, "A new way to start an agent.", "profile")
async def profile_create(ctx: Context, asked: wire.ProfileCreate) -> Result:
    return payloads.profile(await profiles.create_profile(ctx, profiles.NewProfile(**given(asked))))


@chapter.action(
    "agent.profile.update", wire.ProfileUpdate, "Change a profile; *** keeps a secret.", "profile"
)
async def profile_update(ctx: Context, asked: wire.ProfileUpdate) -> Result:
    return payloads.profile(await profiles.update_profile(ctx, id=asked.id, changes=given(asked)))


@chapter.action("agent.profile.delete", wire.ById, "Delete a profile that no session uses.", "{success}")
async def profile_delete(ctx: Context, asked: wire.ById) -> Result:
    await profiles.delete_profile(ctx, id=asked.id)
    return DONE

"""Actions that make and change tasks, and start agents on them.

What a call makes is named after the call, so that one that is handled again finds it. Not here: messages
(`actions_talking`), and what only looks (`actions_looking`).
"""

from collections.abc import Mapping
from typing import Any

from kandev.core.board import Task, TaskRepository
from kandev.core.context_block import strip
from kandev.core.errors import Conflict, Forbidden, Invalid
from kandev.core.task import STATES
from kandev.mcp import arguments, results
from kandev.mcp.action import McpChapter
from kandev.mcp.caller import Caller
from kandev.ports.store import Tx
from kandev.usecases import create_task as creating
from kandev.usecases import finding, launch_session, move_task, reach, task_state, tasks
from kandev.usecases.call_ids import for_call
from kandev.usecases.context import Context
from kandev.usecases.workspaces import said

chapter = McpChapter()


@chapter.action("mcp.create_task", arguments.CreateTask)
async def create_task(ctx: Context, caller: Caller, asked: arguments.CreateTask) -> results.CreatedTask:
    if asked.blocked_by:
        raise Invalid(
            "The field `blocked_by` is not supported: tasks cannot wait for one another; leave it out."
        )
    new = await ctx.store.read(lambda tx: _new_task(tx, caller, asked))
    sender = (caller.task_id, caller.session_id)
    created = await creating.create_task(
        for_call(ctx, caller.call_id), new, start_agent=asked.start_agent, sender=sender
    )
    return results.CreatedTask(
        task_id=created.task.id,
        state=created.task.state,
        session_id=created.session_id,
        start_error=created.start_error,
    )


def _new_task(tx: Tx, caller: Caller, asked: arguments.CreateTask) -> creating.NewTask:
    """What is left out is the caller's own."""
    own = reach.own_task(tx, caller.task_id)
    workflow = reach.workflow(tx, caller.task_id, asked.workflow_id)
    if asked.parent_id is not None:
        reach.task(tx, caller.task_id, asked.parent_id)
    return creating.NewTask(
        workspace_id=own.workspace_id,
        workflow_id=workflow.id,
        title=asked.title,
        workflow_step_id=asked.workflow_step_id,
        description=strip(asked.prompt or ""),
        parent_id=asked.parent_id,
        repositories=_repositories(own, asked),
        agent_profile_id=asked.agent_profile_id or _own_profile(tx, caller, own),
        external_id=asked.external_id,
    )


def _repositories(own: Task, asked: arguments.CreateTask) -> tuple[TaskRepository, ...]:
    if asked.repository_id is not None:
        return (TaskRepository(asked.repository_id, asked.base_branch),)
    if own.works_on is None:
        if asked.base_branch is not None:
            raise Invalid(
                "The field `base_branch` needs a repository: your task has none, name repository_id."
            )
        return ()
    return (TaskRepository(own.works_on.repository_id, asked.base_branch or own.works_on.base_branch),)


def _own_profile(tx: Tx, caller: Caller, own: Task) -> str | None:
    """The caller's session's, if both are still there."""
    session = tx.sessions.get(caller.session_id)
    profile_id = session.agent_profile_id if session else own.agent_profile_id
    return profile_id if profile_id and tx.profiles.get(profile_id) else None


@chapter.action("mcp.spawn_session", arguments.SpawnSession)
async def spawn_session(ctx: Context, caller: Caller, asked: arguments.SpawnSession) -> results.Spawned:
    def look(tx: Tx) -> str | None:
        task = reach.own_or_child(tx, caller.task_id, asked.task_id, "Starting a session")
        return asked.agent_profile_id or task.agent_profile_id or _own_profile(tx, caller, task)

    profile_id = await ctx.store.read(look)
    opening = asked.prompt and launch_session.Opening(asked.prompt, caller.task_id, caller.session_id)
    launched = await launch_session.launch_session(
        for_call(ctx, caller.call_id),
        task_id=asked.task_id,
        agent_profile_id=profile_id,
        prompt=opening or None,
    )
    return results.Spawned(task_id=launched.task_id, session_id=launched.session_id, state=launched.state)


@chapter.action("mcp.update_task", arguments.UpdateTask)
async def update_task(ctx: Context, caller: Caller, asked: arguments.UpdateTask) -> results.UpdatedTask:
    given = {"title": asked.title, "description": asked.description, "priority": asked.priority}
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes and asked.state is None:
        raise Invalid("Nothing is to be changed: give title, description, priority or state.")
    await ctx.store.read(lambda tx: _check_update(tx, caller, asked, changes))
    task = await tasks.update_task(ctx, id=asked.task_id, changes=changes)
    if asked.state is not None:
        task, _ = await task_state.set_task_state(ctx, id=asked.task_id, state=asked.state)
    return results.UpdatedTask(task_id=task.id, title=task.title, state=task.state, priority=task.priority)


def _check_update(tx: Tx, caller: Caller, asked: arguments.UpdateTask, changes: Mapping[str, Any]) -> None:
    """All of it, before any of it is written."""
    for name in ("title", "priority"):
        if name in changes:
            said(changes[name], name)
    if asked.state is not None and asked.state not in STATES:
        raise Invalid(f"The field `state` cannot be {asked.state!r}; it is one of {', '.join(STATES)}.")
    task = reach.task(tx, caller.task_id, asked.task_id)
    if asked.state is None:
        return
    if asked.state == "COMPLETED" and task.state != "COMPLETED":
        _may_complete(caller, task)
    if task.archived_at is not None:
        raise Conflict(
            "The task is archived and keeps its state: leave the field `state` out, or have a person put "
            "the task back on the board."
        )


def _may_complete(caller: Caller, task: Task) -> None:
    """Completing a task ends its sessions, whatever they are doing."""
    if task.id == caller.task_id:
        raise Forbidden(
            "Completing your own task would end this session in the middle of its turn: end your turn, or "
            "move the task to a final step, which waits for that."
        )
    if task.parent_id != caller.task_id:
        raise Forbidden("Completing a task ends its sessions: only its direct parent may do that.")


@chapter.action("mcp.move_task", arguments.MoveTask)
async def move(ctx: Context, caller: Caller, asked: arguments.MoveTask) -> results.Moved:
    def look(tx: Tx) -> None:
        task = reach.task(tx, caller.task_id, asked.task_id)
        step = finding.step(tx, asked.workflow_step_id)
        reach.workflow(tx, caller.task_id, step.workflow_id)
        # Its own move waits for the end of its turn, so that it ends nothing.
        if step.final and step.id != task.workflow_step_id and task.id != caller.task_id:
            _may_complete(caller, task)

    await ctx.store.read(look)
    done = await move_task.request_move(
        ctx,
        task_id=asked.task_id,
        step_id=asked.workflow_step_id,
        position=asked.position,
        by=caller.session_id,
    )
    task = await ctx.store.read(lambda tx: finding.task(tx, asked.task_id))
    return results.Moved(
        task_id=task.id, workflow_step_id=task.workflow_step_id, state=task.state, pending=done.pending
    )

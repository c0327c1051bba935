"""The actions about tasks. Not here: the sessions on them (`actions_sessions`)."""

from kandev.core import payloads
from kandev.core.board import TaskRepository
from kandev.gateway.action import Chapter, Result, with_details
from kandev.gateway.actions_board import given
from kandev.gateway.fitting import board
from kandev.ports.store import Tx
from kandev.usecases import archive_task, create_task, delete_task, move_task, task_state, tasks
from kandev.usecases.context import Context
from kandev.wire import gateway_board as wire

chapter = Chapter()
ENDED = "task, with details: {failures: {session id: sentence}} when a session could not be ended"


@chapter.action(
    "task.create",
    wire.TaskCreate,
    "A new task; with start_agent an agent begins on it.",
    "{task, session_id?, start_error?}",
)
async def task_create(ctx: Context, asked: wire.TaskCreate) -> Result:
    new = create_task.NewTask(
        workspace_id=asked.workspace_id,
        workflow_id=asked.workflow_id,
        title=asked.title,
        workflow_step_id=asked.workflow_step_id,
        description=asked.description or "",
        parent_id=asked.parent_id,
        priority=asked.priority or create_task.DEFAULT_PRIORITY,
        repositories=[TaskRepository(r.repository_id, r.base_branch) for r in asked.repositories or ()],
        agent_profile_id=asked.agent_profile_id,
        external_id=asked.external_id,
    )
    created = await create_task.create_task(ctx, new, start_agent=asked.start_agent)
    answer: Result = {"task": payloads.task(created.task)}
    if created.session_id is not None:
        answer["session_id"] = created.session_id
    if created.start_error is not None:
        answer["start_error"] = created.start_error
    return answer


@chapter.read("task.get", wire.ById, "One task.", "task")
async def task_get(ctx: Context, asked: wire.ById) -> Result:
    return payloads.task(await tasks.get_task(ctx, id=asked.id))


@chapter.read("task.list", wire.TaskList, "Tasks, by creation.", "{tasks: [task], next_cursor?}")
async def task_list(ctx: Context, asked: wire.TaskList) -> Result:
    wanted = tasks.Wanted(asked.workspace_id, asked.workflow_id, asked.parent_id, asked.include_archived)
    page = await tasks.list_tasks(ctx, wanted, limit=asked.limit, cursor=asked.cursor)
    more = {} if page.next_cursor is None else {"next_cursor": page.next_cursor}
    return {"tasks": [payloads.task(row) for row in page.tasks], **more}


@chapter.read(
    "workspace.snapshot",
    wire.WorkspaceSnapshot,
    "A part of a workspace's board, as a subscription's snapshot has it: tasks with their sessions.",
    "{workspace_id, tasks: [task], sessions: [session], seq, next_cursor?}",
)
async def workspace_snapshot(ctx: Context, asked: wire.WorkspaceSnapshot) -> Result:
    def look(tx: Tx) -> Result:
        seq = tx.notifications.last("workspace", asked.workspace_id)
        return {**board(tx, asked.workspace_id, ctx.deadlines.queue_max, asked.cursor), "seq": seq}

    return await ctx.store.read(look)


@chapter.action("task.update", wire.TaskUpdate, "Change what a task says.", "task")
async def task_update(ctx: Context, asked: wire.TaskUpdate) -> Result:
    return payloads.task(await tasks.update_task(ctx, id=asked.id, changes=given(asked)))


@chapter.action("task.move", wire.TaskMove, "Move a task to a step and a place in it.", ENDED)
async def task_move(ctx: Context, asked: wire.TaskMove) -> Result:
    row, ended = await move_task.move_task(
        ctx, id=asked.id, workflow_step_id=asked.workflow_step_id, position=asked.position
    )
    return {**payloads.task(row), **with_details(ended)}


@chapter.action("task.state", wire.TaskState, "Set a task's state; COMPLETED ends its sessions.", ENDED)
async def task_set_state(ctx: Context, asked: wire.TaskState) -> Result:
    row, ended = await task_state.set_task_state(ctx, id=asked.id, state=asked.state)
    return {**payloads.task(row), **with_details(ended)}


@chapter.action("task.archive", wire.ById, "Take a task off the board; its sessions end.", "task")
async def task_archive(ctx: Context, asked: wire.ById) -> Result:
    return payloads.task(await archive_task.archive_task(ctx, id=asked.id))


@chapter.action("task.unarchive", wire.ById, "Put a task back on the board.", "task")
async def task_unarchive(ctx: Context, asked: wire.ById) -> Result:
    return payloads.task(await archive_task.unarchive_task(ctx, id=asked.id))


@chapter.action(
    "task.delete",
    wire.ById,
    "Delete a task; its sessions end. A worktree with uncommitted work stays on disk.",
    "{success, worktree_kept?, reason?}",
)
async def task_delete(ctx: Context, asked: wire.ById) -> Result:
    deleted = await delete_task.delete_task(ctx, id=asked.id)
    if deleted.worktree_kept is None:
        return {"success": True}
    return {"success": True, "worktree_kept": deleted.worktree_kept, "reason": deleted.reason}

"""The actions about sessions, messages, permissions, cancels and stops.

Not here: queues (`actions_queue`), subscriptions (`streams`).
"""

from kandev.core import payloads
from kandev.core.errors import Invalid
from kandev.gateway.action import DONE, Chapter, Result, with_details
from kandev.gateway.fitting import fitting
from kandev.ports.worktrees import Change
from kandev.usecases import (
    add_message,
    answer_permission,
    answer_question,
    cancel_turn,
    changes,
    delete_session,
    explain_session,
    launch_session,
    message_status,
    messages,
    recover_session,
    sessions,
    stop_session,
    stop_task,
)
from kandev.usecases.context import Context
from kandev.wire import gateway_sessions as wire

chapter = Chapter()


@chapter.read("task.session.list", wire.OfTask, "A task's sessions, newest first.", "{sessions: [session]}")
async def session_list(ctx: Context, asked: wire.OfTask) -> Result:
    return {"sessions": await sessions.list_sessions(ctx, task_id=asked.task_id)}


@chapter.action(
    "session.launch",
    wire.SessionLaunch,
    "Start a session's agent, or prepare it; answers as soon as it is STARTING.",
    "{success, task_id, session_id, state, agent_execution_id?, worktree_path?}",
)
async def session_launch(ctx: Context, asked: wire.SessionLaunch) -> Result:
    launched = await launch_session.launch_session(
        ctx,
        task_id=asked.task_id,
        intent=asked.intent,
        session_id=asked.session_id,
        agent_profile_id=asked.agent_profile_id,
        prompt=asked.prompt,
    )
    optional = {"agent_execution_id": launched.execution_id, "worktree_path": launched.worktree_path}
    return {
        "success": True,
        "task_id": launched.task_id,
        "session_id": launched.session_id,
        "state": launched.state,
        **{name: value for name, value in optional.items() if value is not None},
    }


@chapter.read("session.get", wire.OfSession, "One session.", "session")
async def session_get(ctx: Context, asked: wire.OfSession) -> Result:
    return await sessions.get_session(ctx, session_id=asked.session_id)


@chapter.action("session.rename", wire.SessionRename, "Rename a session.", "session")
async def session_rename(ctx: Context, asked: wire.SessionRename) -> Result:
    return await sessions.rename_session(ctx, session_id=asked.session_id, name=asked.name)


@chapter.action("session.set_primary", wire.OfSession, "Make a session its task's primary.", "session")
async def session_set_primary(ctx: Context, asked: wire.OfSession) -> Result:
    return await sessions.set_primary_session(ctx, session_id=asked.session_id)


@chapter.action("session.stop", wire.SessionStop, "Stop a session.", "{success}")
async def session_stop(ctx: Context, asked: wire.SessionStop) -> Result:
    await stop_session.stop_session(ctx, session_id=asked.session_id, reason=asked.reason, force=asked.force)
    return DONE


@chapter.action("session.delete", wire.OfSession, "Delete a session and its transcript.", "{success}")
async def session_delete(ctx: Context, asked: wire.OfSession) -> Result:
    await delete_session.delete_session(ctx, session_id=asked.session_id)
    return DONE


@chapter.action(
    "session.recover", wire.OfSession, "The explicit resume of a session.", "{success, state, queued}"
)
async def session_recover(ctx: Context, asked: wire.OfSession) -> Result:
    recovered = await recover_session.recover_session(ctx, session_id=asked.session_id)
    return {"success": True, "state": recovered.state, "queued": recovered.queued}


@chapter.read(
    "session.explain",
    wire.OfSession,
    "What a session does, what it waits for, and since when.",
    "one sentence and data",
)
async def session_explain(ctx: Context, asked: wire.OfSession) -> Result:
    return await explain_session.explain_session(ctx, session_id=asked.session_id)


@chapter.read(
    "session.changes",
    wire.OfSession,
    "Files that differ from the base commit.",
    "{files: [{path, status, additions, deletions, old_path?}], more?: number of files left out}",
)
async def session_changes(ctx: Context, asked: wire.OfSession) -> Result:
    found = await changes.session_changes(ctx, session_id=asked.session_id)
    files = fitting(map(_change, found))
    return {"files": files, **({"more": len(found) - len(files)} if len(files) < len(found) else {})}


def _change(change: Change) -> Result:
    moved = {} if change.old_path is None else {"old_path": change.old_path}
    return {
        "path": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        **moved,
    }


@chapter.read("session.diff", wire.SessionDiff, "The diff against the base commit.", "{diff}")
async def session_diff(ctx: Context, asked: wire.SessionDiff) -> Result:
    return {"diff": await changes.session_diff(ctx, session_id=asked.session_id, path=asked.path)}


# -- messages ---------------------------------------------------------------------------------


@chapter.action(
    "message.add",
    wire.MessageAdd,
    "A message to a session's agent.",
    "{message_id, entry_id, status: sent | queued | started}",
)
async def message_add(ctx: Context, asked: wire.MessageAdd) -> Result:
    added = await add_message.add_message(
        ctx,
        task_id=asked.task_id,
        session_id=asked.session_id,
        content=asked.content,
        idempotency_key=asked.idempotency_key,
    )
    return {"message_id": added.message_id, "entry_id": added.entry_id, "status": added.status}


@chapter.read("message.status", wire.MessageStatus, "An entry's fate.", "{state, turn_id?, by?, at}")
async def message_fate(ctx: Context, asked: wire.MessageStatus) -> Result:
    return await message_status.message_status(ctx, entry_id=asked.entry_id)


@chapter.read(
    "message.list", wire.MessageList, "A session's transcript, oldest first.", "{messages: [message]}"
)
async def message_list(ctx: Context, asked: wire.MessageList) -> Result:
    rows = await messages.list_messages(
        ctx, session_id=asked.session_id, limit=asked.limit, before=asked.before, after=asked.after
    )
    found = [payloads.message(row) for row in rows]
    return {"messages": fitting(reversed(found))[::-1] if asked.before else fitting(found)}


# -- cancel, stop, permissions ----------------------------------------------------------------


@chapter.action(
    "agent.cancel",
    wire.AgentCancel,
    "Cancel the turn of a session; success false is an answer, not an error.",
    "{success, session_id, error?}",
)
async def agent_cancel(ctx: Context, asked: wire.AgentCancel) -> Result:
    cancelled = await cancel_turn.cancel_turn(ctx, session_id=asked.session_id, task_id=asked.task_id)
    error = {} if cancelled.error is None else {"error": cancelled.error}
    return {"success": cancelled.success, "session_id": cancelled.session_id, **error}


@chapter.action(
    "orchestrator.stop",
    wire.TaskStop,
    "Stop every live session of a task.",
    "{success, stopped: [session id], details?: {failures: {session id: sentence}}}",
)
async def orchestrator_stop(ctx: Context, asked: wire.TaskStop) -> Result:
    stopped = await stop_task.stop_task(ctx, task_id=asked.task_id, reason=asked.reason, force=asked.force)
    return {"success": True, "stopped": list(stopped.stopped), **with_details(stopped)}


@chapter.action(
    "permission.respond", wire.PermissionRespond, "Answer a permission request of an agent.", "{success}"
)
async def permission_respond(ctx: Context, asked: wire.PermissionRespond) -> Result:
    if (asked.option_id is not None) + asked.cancelled + asked.rejected != 1:
        raise Invalid("Give exactly one of option_id, cancelled or rejected.")
    await answer_permission.answer_permission(
        ctx,
        session_id=asked.session_id,
        request_id=asked.request_id,
        option_id=asked.option_id,
        cancelled=asked.cancelled,
        rejected=asked.rejected,
    )
    return DONE


@chapter.action(
    "clarification.respond",
    wire.ClarificationRespond,
    "Answer the question of an agent, or say that nobody will.",
    "{success, status: sent | queued | declined, entry_id?}",
)
async def clarification_respond(ctx: Context, asked: wire.ClarificationRespond) -> Result:
    answers = [
        answer_question.Answer(one.question_id, one.selected_options or (), one.custom_text)
        for one in asked.answers
    ]
    done = await answer_question.answer_question(
        ctx, pending_id=asked.pending_id, answers=answers, rejected=asked.rejected
    )
    return {
        "success": True,
        "status": done.status,
        **({} if done.entry_id is None else {"entry_id": done.entry_id}),
    }

"""Actions by which agents speak: to the agents of other tasks. Not here: what only looks."""

from typing import cast

from kandev.core.errors import Forbidden
from kandev.mcp import arguments, results
from kandev.mcp.action import McpChapter
from kandev.mcp.caller import Caller
from kandev.usecases.call_ids import for_call
from kandev.usecases.context import Context
from kandev.usecases.message_task import Letter, message_task

chapter = McpChapter()


@chapter.action("mcp.message_task", arguments.MessageFromTask)
async def send(ctx: Context, caller: Caller, asked: arguments.MessageFromTask) -> results.Delivered:
    if caller.task_id != asked.sender_task_id:
        raise Forbidden("The field `sender_task_id` is not the task of the one who calls: name your own.")
    letter = Letter(
        task_id=asked.task_id,
        prompt=asked.prompt,
        sender_task_id=asked.sender_task_id,
        sender_session_id=asked.sender_session_id,
        delivery_mode=asked.delivery_mode,
        session_id=asked.session_id,
        idempotency_key=asked.idempotency_key,
    )
    done = await message_task(for_call(ctx, caller.call_id), letter)
    return results.Delivered(
        task_id=done.task_id,
        session_id=done.session_id,
        status=cast(results.Status, done.status),
    )

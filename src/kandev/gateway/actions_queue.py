"""The actions about what waits in a session's queue.

Not here: messages that are sent (`actions_sessions`), which wait only as far as they have to.
"""

from kandev.gateway.action import Chapter, Result
from kandev.usecases import add_message, queue_entries
from kandev.usecases.context import Context
from kandev.wire import gateway_sessions as wire

QUEUE = "{entries: [entry], count, max, auto_run, parked_reason?}"

chapter = Chapter()


@chapter.read("message.queue.get", wire.OfSession, "What waits for a turn.", QUEUE)
async def queue_get(ctx: Context, asked: wire.OfSession) -> Result:
    return await queue_entries.get_queue(ctx, session_id=asked.session_id)


@chapter.action(
    "message.queue.add",
    wire.QueueAdd,
    "Put a message behind all that waits; it overtakes and releases nothing.",
    "{entry_id, message_id, status: sent | queued | started}",
)
async def queue_add(ctx: Context, asked: wire.QueueAdd) -> Result:
    added = await add_message.queue_message(
        ctx,
        session_id=asked.session_id,
        content=asked.content,
        idempotency_key=asked.idempotency_key,
        coalescing_key=asked.coalescing_key,
    )
    return {"entry_id": added.entry_id, "message_id": added.message_id, "status": added.status}


@chapter.action(
    "message.queue.update", wire.QueueUpdate, "Let a waiting entry say something else.", "{success, entry_id}"
)
async def queue_update(ctx: Context, asked: wire.QueueUpdate) -> Result:
    return await queue_entries.update_entry(
        ctx, session_id=asked.session_id, entry_id=asked.entry_id, content=asked.content
    )


@chapter.action(
    "message.queue.remove", wire.OfEntry, "Take an entry out of the queue.", "{success, entry_id}"
)
async def queue_remove(ctx: Context, asked: wire.OfEntry) -> Result:
    return await queue_entries.remove_entry(ctx, session_id=asked.session_id, entry_id=asked.entry_id)


@chapter.action(
    "message.queue.clear",
    wire.OfSession,
    "Take everything out of the queue.",
    "{success, removed: number of entries}",
)
async def queue_clear(ctx: Context, asked: wire.OfSession) -> Result:
    return await queue_entries.clear_queue(ctx, session_id=asked.session_id)


@chapter.action("message.queue.reorder", wire.QueueReorder, "Put the queue in another order.", QUEUE)
async def queue_reorder(ctx: Context, asked: wire.QueueReorder) -> Result:
    return await queue_entries.reorder_queue(ctx, session_id=asked.session_id, entry_ids=asked.entry_ids)


@chapter.action(
    "message.queue.send_now",
    wire.OfEntry,
    "Let a waiting entry take the place of the present turn; switches auto-run on.",
    "{success, entry_id, status: sent | queued}",
)
async def queue_send_now(ctx: Context, asked: wire.OfEntry) -> Result:
    return await queue_entries.send_entry_now(ctx, session_id=asked.session_id, entry_id=asked.entry_id)


@chapter.action(
    "message.queue.drain",
    wire.OfSession,
    "Hand out what may run, a refused entry at once; CONFLICT says why nothing may.",
    QUEUE,
)
async def queue_drain(ctx: Context, asked: wire.OfSession) -> Result:
    return await queue_entries.drain_queue(ctx, session_id=asked.session_id)


@chapter.action(
    "message.queue.auto_run.set",
    wire.QueueAutoRun,
    "Whether the queue runs by itself; on releases it.",
    QUEUE,
)
async def queue_auto_run(ctx: Context, asked: wire.QueueAutoRun) -> Result:
    return await queue_entries.set_auto_run(ctx, session_id=asked.session_id, on=asked.auto_run)

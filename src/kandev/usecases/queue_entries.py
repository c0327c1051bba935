"""A session's queue: seen, shortened, put in order, held, let go.

Each change is one input of the session; what it may do is decided there, so nothing that is looked up here
beforehand decides more than which sentence a refusal has. Not here: what comes into the queue
(`add_message`).
"""

from collections.abc import Callable, Sequence
from typing import Any

from kandev.core import payloads
from kandev.core.context_block import strip
from kandev.core.effects import Reply
from kandev.core.errors import Conflict, Invalid, NotFound
from kandev.core.inputs import Ask, AutoRun, Clear, Drain, Edit, Remove, Reorder, SendNow
from kandev.core.records import SessionRecord
from kandev.core.views import held
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.context import Context
from kandev.usecases.wording import delivery_unknown, something


async def get_queue(ctx: Context, *, session_id: str) -> dict[str, Any]:
    """`{entries, count, max, auto_run, parked_reason?}`: what waits, in order. Raises NotFound."""

    def read(tx: Tx) -> dict[str, Any]:
        return queue_payload(tx, finding.session(tx, session_id), ctx.deadlines.queue_max)

    return await ctx.store.read(read)


def queue_payload(tx: Tx, record: SessionRecord, queue_max: int) -> dict[str, Any]:
    """What waits, in the order of the session's value."""
    rows = {row.id: row for row in tx.entries.queue(record.id)}
    waiting = [(rows[e.id], e.coalesce) for e in record.value.queue if e.id in rows]
    parked = held(record.value)
    return {
        "entries": [payloads.entry(row, place, key) for place, (row, key) in enumerate(waiting)],
        **payloads.queue(record.value, queue_max),
        **({"parked_reason": parked} if parked else {}),
    }


async def update_entry(ctx: Context, *, session_id: str, entry_id: str, content: str) -> dict[str, Any]:
    """`{success, entry_id}`. Raises Invalid (nothing to say), NotFound; Conflict when it waits no more."""
    content = strip(content)
    something(content)
    return await _changed(ctx, session_id, entry_id, lambda ask: Edit(ask, entry_id, content))


async def remove_entry(ctx: Context, *, session_id: str, entry_id: str) -> dict[str, Any]:
    """`{success, entry_id}`. Raises NotFound; Conflict when it waits no more."""
    return await _changed(ctx, session_id, entry_id, lambda ask: Remove(ask, entry_id))


async def clear_queue(ctx: Context, *, session_id: str) -> dict[str, Any]:
    """`{success, removed}`: how many waited. Raises NotFound."""
    reply = refuse(await ctx.sessions.ask(session_id, Clear))
    return {"success": True, "removed": (reply.details or {}).get("removed", 0)}


async def reorder_queue(ctx: Context, *, session_id: str, entry_ids: Sequence[str]) -> dict[str, Any]:
    """The queue afterwards. Raises NotFound; Invalid unless every entry that waits is named once."""
    reply = await ctx.sessions.ask(session_id, lambda ask: Reorder(ask, tuple(entry_ids)))
    if reply.status == "mismatch":
        raise Invalid("entry_ids must name every entry that waits, each once: message.queue.get lists them.")
    refuse(reply)
    return await get_queue(ctx, session_id=session_id)


async def send_entry_now(ctx: Context, *, session_id: str, entry_id: str) -> dict[str, Any]:
    """`{success, entry_id, status}`: `sent` when the agent has it, else `queued`. Raises NotFound; Conflict
    when it waits no more, is taken out meanwhile, or the session takes none; Internal
    (`delivery_unknown`)."""
    reply = await _about(ctx, session_id, entry_id, lambda ask: SendNow(ask, entry_id))
    if reply.status == "unknown":
        raise delivery_unknown(entry_id, reply.error)
    status = "sent" if refuse(reply).status == "sent" else "queued"
    return {"success": True, "entry_id": entry_id, "status": status}


async def drain_queue(ctx: Context, *, session_id: str) -> dict[str, Any]:
    """The queue afterwards. Raises NotFound; Conflict with the reason why nothing may run."""
    refuse(await ctx.sessions.ask(session_id, Drain))
    return await get_queue(ctx, session_id=session_id)


async def set_auto_run(ctx: Context, *, session_id: str, on: bool) -> dict[str, Any]:
    """The queue afterwards. Raises NotFound."""
    refuse(await ctx.sessions.ask(session_id, lambda ask: AutoRun(ask, on)))
    return await get_queue(ctx, session_id=session_id)


async def _changed(
    ctx: Context, session_id: str, entry_id: str, make: Callable[[str], Ask]
) -> dict[str, Any]:
    refuse(await _about(ctx, session_id, entry_id, make))
    return {"success": True, "entry_id": entry_id}


async def _about(ctx: Context, session_id: str, entry_id: str, make: Callable[[str], Ask]) -> Reply:
    """The session's answer about an entry that waits. Raises NotFound, Conflict."""

    def look(tx: Tx) -> None:
        finding.session(tx, session_id)
        row = tx.entries.get(entry_id)
        if row is None or row.session_id != session_id:
            raise NotFound("entry not found")

    await ctx.store.read(look)
    reply = await ctx.sessions.ask(session_id, make)
    if reply.status == "claimed":
        raise Conflict("The entry is in the present turn already: cancel that turn instead.")
    if reply.status in ("not_found", "removed", "replaced"):
        raise Conflict("The entry does not wait any more: message.status says where it is.")
    return reply

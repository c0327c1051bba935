"""A session's queue, seen and shortened."""

from typing import Any

from kandev.core import payloads
from kandev.core.errors import Conflict, NotFound
from kandev.core.inputs import Remove
from kandev.core.records import SessionRecord
from kandev.core.views import held
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.context import Context


async def get_queue(ctx: Context, *, session_id: str) -> dict[str, Any]:
    """`{entries, count, max, auto_run, parked_reason?}`: what waits, in order. Raises NotFound."""

    def read(tx: Tx) -> dict[str, Any]:
        return queue_payload(tx, finding.session(tx, session_id), ctx.deadlines.queue_max)

    return await ctx.store.read(read)


def queue_payload(tx: Tx, record: SessionRecord, queue_max: int) -> dict[str, Any]:
    """What waits, in the order of the session's value."""
    rows = {row.id: row for row in tx.entries.queue(record.id)}
    waiting = [rows[e.id] for e in record.value.queue if e.id in rows]
    parked = held(record.value)
    return {
        "entries": [payloads.entry(row, position) for position, row in enumerate(waiting)],
        **payloads.queue(record.value, queue_max),
        **({"parked_reason": parked} if parked else {}),
    }


async def remove_entry(ctx: Context, *, session_id: str, entry_id: str) -> dict[str, Any]:
    """`{success, entry_id}`. Raises NotFound; Conflict when a turn has claimed it."""

    def look(tx: Tx) -> None:
        finding.session(tx, session_id)
        row = tx.entries.get(entry_id)
        if row is None or row.session_id != session_id:
            raise NotFound("entry not found")

    await ctx.store.read(look)
    reply = await ctx.sessions.ask(session_id, lambda ask: Remove(ask, entry_id))
    if reply.status == "claimed":
        raise Conflict("The entry is being handed to the agent: cancel the turn instead.")
    if reply.status == "not_found":
        raise Conflict("The entry does not wait any more: message.status says where it is.")
    return {"success": True, "entry_id": entry_id}

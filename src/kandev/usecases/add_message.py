"""A person's message to a session: at once, or into its queue.

What happens to it follows from the session alone (`core.asks.send`); this finds the session, makes repeats
with the same idempotency key one message, and says what is true: `sent` (the agent has it), `queued`,
`started`.
"""

from dataclasses import dataclass

from kandev.core.errors import Conflict, Internal, Invalid, StaleVersion
from kandev.core.inputs import Draft, Send
from kandev.core.records import EntryRecord
from kandev.core.session import Entry
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.context import Context

_TRUE_NOW = {"queued": "queued", "claimed": "queued", "delivered": "sent"}


@dataclass(frozen=True)
class Added:
    """`message.add`'s result."""

    message_id: str
    entry_id: str
    status: str


async def add_message(
    ctx: Context, *, task_id: str, session_id: str, content: str, idempotency_key: str | None = None
) -> Added:
    """Raises NotFound, Invalid (nothing to say), Conflict (FAILED, CANCELLED; an archived task; another
    message under this key), QueueFull, Internal (`delivery_unknown`)."""
    if not content.strip():
        raise Invalid("content is empty: say something.")
    if idempotency_key == "":
        raise Invalid("idempotency_key is empty: leave it out, or give one.")

    def look(tx: Tx) -> EntryRecord | None:
        finding.task(tx, task_id)
        finding.session(tx, session_id, task_id)
        known = tx.entries.by_key(task_id, None, idempotency_key) if idempotency_key else None
        if known is None:
            finding.task_on_board(tx, task_id)
        return known

    known = await ctx.store.read(look)
    if known is None:
        try:
            return await _send(ctx, session_id, content, idempotency_key)
        except StaleVersion:
            # Somebody stored this key between our look and the session's commit.
            known = await ctx.store.read(look)
            if known is None:
                raise
    return await _again(ctx, known, content)


async def _send(ctx: Context, session_id: str, content: str, key: str | None) -> Added:
    draft = Draft(content, ctx.ids.new("message"), key=key)
    return await _ask(ctx, session_id, Entry(ctx.ids.new("entry")), draft)


async def _ask(ctx: Context, session_id: str, entry: Entry, draft: Draft) -> Added:
    limit = ctx.deadlines.queue_max
    reply = await ctx.sessions.ask(session_id, lambda ask: Send(ask, entry, draft, limit))
    if reply.status == "unknown":
        details = {"error": "delivery_unknown", "entry_id": entry.id}
        raise Internal(reply.error or "Nobody can tell whether the agent got the message.", details)
    status = refuse(reply).status
    return Added(draft.message_id, entry.id, status if status in ("sent", "started") else "queued")


async def _again(ctx: Context, known: EntryRecord, content: str) -> Added:
    """The first answer again; an ask still pending is joined."""
    if known.content != content:
        raise Conflict("idempotency_key was used for another message: take a new one.")
    if known.state in ("queued", "claimed"):
        draft = Draft(known.content, known.message_id, key=known.key)
        try:
            return await _ask(ctx, known.session_id, Entry(known.id), draft)
        except (StaleVersion, Conflict):
            # Was it settled between our look and the session's decision, which took it for a new one?
            settled = await ctx.store.read(lambda tx: tx.entries.get(known.id))
            if settled is None or settled.state in ("queued", "claimed"):
                raise
            known = settled
    if known.state == "unknown":
        details = {"error": "delivery_unknown", "entry_id": known.id}
        raise Internal("Nobody can tell whether the agent got the message.", details)
    return Added(known.message_id, known.id, _TRUE_NOW.get(known.state, "queued"))

"""A message to a session: at once, or into its queue.

What happens to it follows from the session alone (`core.sending`); this finds the session, makes repeats
with the same idempotency key one message, and says what is true: `sent` (the agent has it), `queued`,
`started`. Not here: what is done with messages that wait (`queue_entries`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from kandev.core.context_block import strip
from kandev.core.errors import Conflict, Invalid, StaleVersion
from kandev.core.inputs import Draft, Send
from kandev.core.records import EntryRecord
from kandev.core.session import Entry
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.context import Context
from kandev.usecases.repeats import joined
from kandev.usecases.wording import delivery_unknown, something


@dataclass(frozen=True)
class Added:
    """What became of it; `status`: `sent`, `queued` or `started`."""

    message_id: str
    entry_id: str
    status: str


@dataclass(frozen=True)
class _Wanted:
    """What is to be sent, and how. An automation's has the key under which a later one replaces it."""

    session_id: str
    content: str
    key: str | None
    patient: bool = False
    coalesce: str | None = None

    def entry(self, id: str) -> Entry:
        return Entry(id, by="automation" if self.coalesce else "person", coalesce=self.coalesce)


async def add_message(
    ctx: Context, *, task_id: str, session_id: str, content: str, idempotency_key: str | None = None
) -> Added:
    """A person speaks: at once if the session is idle, and what was parked goes on behind it.

    Raises NotFound, Invalid (nothing to say), Conflict (FAILED, CANCELLED; an archived task; another message
    under this key), QueueFull, Internal (`delivery_unknown`)."""

    def task(tx: Tx) -> str:
        finding.task(tx, task_id)
        return finding.session(tx, session_id, task_id).task_id

    return await _add(ctx, _Wanted(session_id, content, idempotency_key), task)


async def queue_message(
    ctx: Context,
    *,
    session_id: str,
    content: str,
    idempotency_key: str | None = None,
    coalescing_key: str | None = None,
) -> Added:
    """Strictly behind what waits: it overtakes and releases nothing. One with a coalescing key is an
    automation's, and takes the place of the earlier one that waits under it. Raises as `add_message`."""
    wanted = _Wanted(session_id, content, idempotency_key, patient=True, coalesce=coalescing_key)
    return await _add(ctx, wanted, lambda tx: finding.session(tx, session_id).task_id)


async def _add(ctx: Context, wanted: _Wanted, find_task: Callable[[Tx], str]) -> Added:
    wanted = replace(wanted, content=strip(wanted.content))
    something(wanted.content)
    if wanted.key == "":
        raise Invalid("idempotency_key is empty: leave it out, or give one.")

    def look(tx: Tx) -> EntryRecord | None:
        task_id = find_task(tx)
        known = tx.entries.by_key(task_id, None, wanted.key) if wanted.key else None
        if known is None:
            finding.task_on_board(tx, task_id)
        return known

    known = await ctx.store.read(look)
    if known is None:
        try:
            draft = Draft(wanted.content, ctx.ids.new("message"), key=wanted.key)
            return await _ask(ctx, wanted, ctx.ids.new("entry"), draft)
        except StaleVersion:
            # Somebody stored this key between our look and the session's commit.
            known = await ctx.store.read(look)
            if known is None:
                raise
    return await _again(ctx, known, wanted)


async def _ask(ctx: Context, wanted: _Wanted, id: str, draft: Draft) -> Added:
    limit = ctx.deadlines.queue_max
    entry = wanted.entry(id)
    reply = await ctx.sessions.ask(
        wanted.session_id, lambda ask: Send(ask, entry, draft, limit, patient=wanted.patient)
    )
    if reply.status == "unknown":
        raise delivery_unknown(id, reply.error)
    status = refuse(reply).status
    return Added(draft.message_id, id, status if status in ("sent", "started") else "queued")


async def _again(ctx: Context, known: EntryRecord, wanted: _Wanted) -> Added:
    """What is true of it now; an ask still pending is joined."""
    if known.as_sent != wanted.content:
        raise Conflict("idempotency_key was used for another message: take a new one.")
    there = replace(wanted, session_id=known.session_id)
    added = await joined(ctx, known, lambda draft: _ask(ctx, there, known.id, draft))
    return added or Added(known.message_id, known.id, "sent")

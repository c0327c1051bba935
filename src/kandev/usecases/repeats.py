"""The same message once more, under its key or from a call that is handled again. Not here: finding it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from kandev.core.errors import Conflict, Internal, StaleVersion
from kandev.core.inputs import Draft
from kandev.core.queueing import TAKEN_OUT
from kandev.core.records import EntryRecord
from kandev.core.sending import REPLACED
from kandev.usecases.context import Context
from kandev.usecases.wording import delivery_unknown

Answer = TypeVar("Answer")


async def joined(
    ctx: Context, known: EntryRecord, join: Callable[[Draft], Awaitable[Answer]]
) -> Answer | None:
    """An ask that is still pending is joined by `join`. None: the agent has the message. Raises Conflict when
    it was taken out of the queue, Internal (`delivery_unknown`), and what joining raises."""
    if known.state in ("queued", "claimed"):
        draft = Draft(
            known.content, known.message_id, known.sender_task_id, known.sender_session_id, known.key
        )
        try:
            return await join(draft)
        except (StaleVersion, Conflict, Internal):
            # Was it settled between our look and the session's decision, which took it for a new one?
            settled = await ctx.store.read(lambda tx: tx.entries.get(known.id))
            if settled is None or settled.state in ("queued", "claimed"):
                raise
            known = settled
    if known.state in ("removed", "replaced"):
        raise Conflict(TAKEN_OUT if known.state == "removed" else REPLACED)
    if known.state == "unknown":
        raise delivery_unknown(known.id)
    return None

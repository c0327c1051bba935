"""A session's transcript, page by page.

Not here: adding a message (`add_message`), an entry's fate (`message_status`).
"""

from kandev.core.errors import Invalid
from kandev.core.transcript import Message
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.context import Context


async def list_messages(
    ctx: Context, *, session_id: str, limit: int, before: str | None = None, after: str | None = None
) -> tuple[Message, ...]:
    """Oldest first; without `before` and `after` the first ones. Raises NotFound for an unknown session or
    message, Invalid for both `before` and `after`."""
    if before is not None and after is not None:
        raise Invalid("Give before or after, not both.")

    def look(tx: Tx) -> tuple[Message, ...]:
        finding.session(tx, session_id)
        return tuple(tx.messages.page(session_id, limit=limit, before=before, after=after))

    return await ctx.store.read(look)

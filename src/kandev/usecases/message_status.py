"""Where a message is: exactly one place at every moment."""

from typing import Any

from kandev.core import payloads
from kandev.core.errors import NotFound
from kandev.usecases.context import Context


async def message_status(ctx: Context, *, entry_id: str) -> dict[str, Any]:
    """`{state, turn_id?, by?, at}`. Raises NotFound."""
    row = await ctx.store.read(lambda tx: tx.entries.get(entry_id))
    if row is None:
        raise NotFound("entry not found")
    return payloads.fate(row)

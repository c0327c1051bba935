"""End the current turn of a session; session and process stay.

Looked up in this order: session, execution, turn. A caller that goes away does not take an accepted cancel
back.
"""

from dataclasses import dataclass

from kandev.core.errors import Conflict
from kandev.core.inputs import Cancel
from kandev.usecases import finding
from kandev.usecases.context import Context


@dataclass(frozen=True)
class Cancelled:
    """`agent.cancel`'s result: `success` False is a response, no error; `error` says what is under way."""

    success: bool
    session_id: str
    error: str | None = None


async def cancel_turn(
    ctx: Context, *, session_id: str, task_id: str | None = None, by: str = "user"
) -> Cancelled:
    """Raises NotFound "session not found", Conflict "agent not running"."""
    await ctx.store.read(lambda tx: finding.session(tx, session_id, task_id))
    reply = await ctx.sessions.ask(session_id, lambda ask: Cancel(ask, by))
    if reply.status == "not_running":
        raise Conflict(reply.error or "agent not running")
    if reply.status in ("timeout", "failed"):
        return Cancelled(False, session_id, reply.error)
    return Cancelled(True, session_id)

"""A person's decision about what an agent asked permission for."""

from kandev.core.errors import Conflict, Invalid, NotFound
from kandev.core.inputs import Allow
from kandev.core.session import Answer
from kandev.core.transcript import Message
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.context import Context


async def answer_permission(
    ctx: Context,
    *,
    session_id: str,
    request_id: str,
    option_id: str | None = None,
    cancelled: bool = False,
    rejected: bool = False,
) -> None:
    """Exactly one of the three. Raises Invalid (not one of them, or no such option), NotFound, Conflict (it
    was settled already)."""
    if (option_id is not None) + cancelled + rejected != 1:
        raise Invalid("Give exactly one of option_id, cancelled and rejected.")

    def look(tx: Tx) -> Message:
        finding.session(tx, session_id)
        found = tx.messages.find(session_id, "permission_request", request_id)
        if found is None:
            raise NotFound("permission request not found")
        return found

    message = await ctx.store.read(look)
    options = [o.get("option_id") for o in message.metadata.get("options", [])]
    if option_id is not None and option_id not in options:
        offered = ", ".join(str(o) for o in options)
        raise Invalid(f"option_id {option_id} was not offered: choose one of {offered}.")
    answer = Answer(option_id, rejected)
    reply = await ctx.sessions.ask(session_id, lambda ask: Allow(ask, request_id, answer))
    if reply.status == "not_found":
        raise Conflict("The permission request is settled already: nothing was changed.")

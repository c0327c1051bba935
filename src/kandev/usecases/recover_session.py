"""Take a session up again: the explicit resume. Releases nothing that is parked."""

from dataclasses import dataclass

from kandev.core.errors import Conflict
from kandev.core.inputs import Resume
from kandev.core.records import SessionRecord
from kandev.core.views import wire_state
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.context import Context


@dataclass(frozen=True)
class Recovered:
    """`state` after the answer, and how many messages wait."""

    state: str
    queued: int


async def recover_session(ctx: Context, *, session_id: str) -> Recovered:
    """Raises NotFound; Conflict when there is nothing to resume, or the task is archived."""

    def look(tx: Tx) -> SessionRecord:
        record = finding.session(tx, session_id)
        finding.task_on_board(tx, record.task_id)
        return record

    record = await ctx.store.read(look)
    if wire_state(record.value) == "CREATED":
        raise Conflict("The session was never started: launch it with the intent start_created.")
    reply = refuse(await ctx.sessions.ask(session_id, Resume))
    queued = int((reply.details or {}).get("queued", 0))
    fresh = await ctx.store.read(lambda tx: finding.session(tx, session_id))
    return Recovered(wire_state(fresh.value), queued)

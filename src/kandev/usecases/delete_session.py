"""Delete a session: its process is proven gone first, then its rows go. The task's worktree stays."""

from dataclasses import replace

from kandev.core.errors import Conflict
from kandev.core.records import SessionRecord
from kandev.core.session import Launch
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.stop_session import stop_one


async def delete_session(ctx: Context, *, session_id: str) -> None:
    """Raises NotFound; Conflict when the process could not be proven gone in time, or the session was taken
    up again meanwhile (nothing is deleted then)."""
    await ctx.store.read(lambda tx: finding.session(tx, session_id))
    await stop_one(ctx, session_id, "session deleted", force=True)
    if not await ctx.sessions.gone(session_id, ctx.deadlines.teardown_s):
        raise Conflict("The session's process is still being ended: try again in a moment.")
    await ctx.store.write(lambda tx: _delete(tx, finding.session(tx, session_id)))
    ctx.sessions.discard(session_id)


def _delete(tx: Tx, record: SessionRecord) -> None:
    """Its actor may live: with the row gone it can commit nothing, and so begin nothing, any more."""
    if record.value.launch is not Launch.ABSENT:
        raise Conflict("The session was taken up again meanwhile: delete it again.")
    payload = {"session_id": record.id, "task_id": record.task_id}
    # Before the row goes: the session's stream goes with it.
    tx.notifications.add("session", record.id, "session.deleted", payload)
    tx.sessions.delete(record.id)
    left = tx.sessions.of_task(record.task_id)
    if record.is_primary and left:
        tx.sessions.update(replace(left[0], is_primary=True))
    tx.notifications.add("workspace", record.workspace_id, "session.deleted", payload)

"""Delete a session: its process is proven gone first, then its rows go. The task's worktree stays."""

from dataclasses import replace

from kandev.core.errors import Conflict
from kandev.core.records import SessionRecord
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.stop_session import stop_one


async def delete_session(ctx: Context, *, session_id: str) -> None:
    """Raises NotFound; Conflict when the process could not be proven gone in time (nothing is deleted
    then)."""
    record = await ctx.store.read(lambda tx: finding.session(tx, session_id))
    await stop_one(ctx, session_id, "session deleted", force=True)
    if not await ctx.sessions.gone(session_id, ctx.deadlines.teardown_s):
        raise Conflict("The session's process is still being ended: try again in a moment.")
    ctx.sessions.discard(session_id)
    await ctx.store.write(lambda tx: _delete(tx, record))


def _delete(tx: Tx, record: SessionRecord) -> None:
    tx.sessions.delete(record.id)
    left = tx.sessions.of_task(record.task_id)
    if record.is_primary and left:
        tx.sessions.update(replace(left[0], is_primary=True))
    payload = {"session_id": record.id, "task_id": record.task_id}
    tx.notifications.add("workspace", record.workspace_id, "session.deleted", payload)

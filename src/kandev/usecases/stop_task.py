"""The operator's stop of a task: every live session of it, then REVIEW.

Not here: the coordinator's stop of a child task, which has a contract of its own.
"""

from dataclasses import replace

from kandev.core import task as task_rules
from kandev.core.errors import NotFound
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.live_sessions import Ended, end_live_sessions
from kandev.usecases.stop_session import DEFAULT_REASON


async def stop_task(ctx: Context, *, task_id: str, reason: str | None = None, force: bool = False) -> Ended:
    """Success when any was stopped. Raises NotFound: "task not found", or "execution not found" when nothing
    lives; the first failure when there were only failures."""
    ended = await end_live_sessions(ctx, task_id=task_id, reason=reason or DEFAULT_REASON, force=force)
    if not ended.stopped and ended.failures:
        raise next(iter(ended.failures.values()))
    if not ended.stopped:
        raise NotFound("execution not found")
    await ctx.store.write(lambda tx: _review(ctx, tx, task_id))
    return ended


def _review(ctx: Context, tx: Tx, task_id: str) -> None:
    before = finding.task(tx, task_id)
    states = [s.state for s in tx.sessions.of_task(task_id)]
    after = task_rules.stopped_by_operator(before, states)
    if after == before:
        return
    tx.tasks.update(replace(after, updated_at=ctx.clock.now()))
    stored = finding.task(tx, task_id)
    announcements.task_updated(tx, stored)
    if before.state != stored.state:
        announcements.task_state_changed(tx, before, stored)

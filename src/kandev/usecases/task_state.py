"""Set a task's state by hand.

Not here: the states that follow from its sessions (`core.task`).
"""

from dataclasses import replace

from kandev.core.board import OwedEnter, Task
from kandev.core.errors import Conflict, Invalid
from kandev.core.task import ARCHIVED, STATES
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.complete_task import complete_sessions
from kandev.usecases.context import Context
from kandev.usecases.live_sessions import Ended
from kandev.usecases.owed_steps import settled


async def set_task_state(ctx: Context, *, id: str, state: str) -> tuple[Task, Ended]:
    """COMPLETED finishes the task's sessions: the second says what became of them. The same state again
    changes and tells nothing. Raises Invalid for an unknown word, NotFound, Conflict for an archived task."""
    if state not in STATES:
        raise Invalid(f"The field `state` cannot be {state!r}; it is one of {', '.join(STATES)}.")
    now = ctx.clock.now()

    def change(tx: Tx) -> Task:
        before = finding.task(tx, id)
        if before.archived_at is not None:
            raise Conflict(ARCHIVED)
        if before.state == state:
            return before
        after = replace(before, state=state, state_before=None, error=None, updated_at=now)
        if state == "COMPLETED":  # owed until it is done: a crash behind this commit loses nothing
            due = OwedEnter(before.entered, before.workflow_step_id, completes=True)
            after = replace(after, owed_enter=due)
        tx.tasks.update(after)
        after = finding.task(tx, id)
        announcements.task_updated(tx, after)
        announcements.task_state_changed(tx, before, after)
        return after

    task = await ctx.store.write(change)
    if state != "COMPLETED":
        return task, Ended()
    ended = await complete_sessions(ctx, task_id=id)
    if not ended.failures:
        await settled(ctx, id, task.entered)
    return task, ended

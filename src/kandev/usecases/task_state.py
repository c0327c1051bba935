"""Set a task's state by hand.

Not here: the states that follow from its sessions (`core.task`).
"""

from dataclasses import replace

from kandev.core.board import Task
from kandev.core.errors import Conflict, Invalid
from kandev.core.task import STATES
from kandev.ports.store import Tx
from kandev.runtime import announcements
from kandev.usecases import finding
from kandev.usecases.complete_task import complete_sessions
from kandev.usecases.context import Context
from kandev.usecases.live_sessions import Ended


async def set_task_state(ctx: Context, *, id: str, state: str) -> tuple[Task, Ended]:
    """COMPLETED finishes the task's sessions: the second says what became of them. The same state again
    changes and tells nothing. Raises Invalid for an unknown word, NotFound, Conflict for an archived task."""
    if state not in STATES:
        raise Invalid(f"The field `state` cannot be {state!r}; it is one of {', '.join(STATES)}.")
    now = ctx.clock.now()

    def change(tx: Tx) -> Task:
        before = finding.task(tx, id)
        if before.archived_at is not None:
            raise Conflict("The task is archived; take it out of the archive first (task.unarchive).")
        if before.state == state:
            return before
        tx.tasks.update(replace(before, state=state, state_before=None, error=None, updated_at=now))
        after = finding.task(tx, id)
        announcements.task_updated(tx, after)
        announcements.task_state_changed(tx, before, after)
        return after

    task = await ctx.store.write(change)
    return task, await complete_sessions(ctx, task_id=id) if state == "COMPLETED" else Ended()

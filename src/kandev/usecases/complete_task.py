"""What the end of a task by a person, or by a final step, means for its sessions: they complete.

Not here: writing the task's state (`task_state`, `move_task`).
"""

from kandev.core.session import Outcome
from kandev.usecases.context import Context
from kandev.usecases.live_sessions import Ended, end_live_sessions


async def complete_sessions(ctx: Context, *, task_id: str) -> Ended:
    """A success also when nothing lives, or one cannot be ended: then `details` of the answer says which."""
    return await end_live_sessions(
        ctx, task_id=task_id, reason="task completed by user", finally_as=Outcome.COMPLETED
    )

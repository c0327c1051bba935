"""End every live session of a task, one at a time; a failed one does not end the traversal.

Who may ask, what it means when nothing lives or one fails, and what becomes of the task is the caller's:
`stop_task`, `complete_task`, `archive_task`, `delete_task`.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from kandev.core.errors import KandevError
from kandev.core.records import SessionRecord
from kandev.core.session import Launch, Outcome
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.stop_session import stop_one

CANDIDATES: Final = frozenset({"CREATED", "STARTING", "RUNNING", "WAITING_FOR_INPUT"})


@dataclass(frozen=True)
class Ended:
    """Ids of the sessions that were ended, and what failed by session id."""

    stopped: tuple[str, ...] = ()
    failures: dict[str, KandevError] = field(default_factory=dict)

    @property
    def details(self) -> dict[str, Any]:
        """`{failures: {session id: sentence}}`, empty without one: for answers and errors."""
        said = {session_id: fault.message for session_id, fault in self.failures.items()}
        return {"failures": said} if said else {}


def _ends(session: SessionRecord, force: bool) -> bool:
    return force and session.value.launch is not Launch.ABSENT


async def end_live_sessions(
    ctx: Context, *, task_id: str, reason: str, force: bool = False, finally_as: Outcome | None = None
) -> Ended:
    """`finally_as`: the task is over, so its idle sessions end too, with this outcome. `force` also hurries
    the end of processes whose sessions are over. Raises NotFound for the task, StoreFault when its sessions
    cannot be listed; nothing for a session."""

    def candidates(tx: Tx) -> list[str]:
        finding.task(tx, task_id)
        return sorted(s.id for s in tx.sessions.of_task(task_id) if s.state in CANDIDATES or _ends(s, force))

    stopped: list[str] = []
    failures: dict[str, KandevError] = {}
    for session_id in await ctx.store.read(candidates):
        try:
            if await stop_one(ctx, session_id, reason, force=force, finally_as=finally_as):
                stopped.append(session_id)
        except KandevError as fault:
            failures[session_id] = fault
    return Ended(tuple(stopped), failures)

"""The operator's stop of a task: every live session of it, one at a time; a failed one does not end the
traversal.

Not here: the coordinator's stop of a child task, which has a contract of its own.
"""

from dataclasses import dataclass, field

from kandev.core.errors import KandevError, NotFound
from kandev.core.session import Outcome
from kandev.ports.store import Tx
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.stop_session import DEFAULT_REASON, stop_one

CANDIDATES = frozenset({"CREATED", "STARTING", "RUNNING", "WAITING_FOR_INPUT"})


@dataclass(frozen=True)
class Stopped:
    """Ids of the sessions that were stopped, and what failed by session id."""

    stopped: tuple[str, ...] = ()
    failures: dict[str, str] = field(default_factory=dict)


async def stop_task(
    ctx: Context,
    *,
    task_id: str,
    reason: str | None = None,
    force: bool = False,
    outcome: Outcome = Outcome.CANCELLED,
    required: bool = True,
) -> Stopped:
    """`required`: raises NotFound "execution not found" when nothing lives. Success when any was stopped;
    raises the first failure when none was."""

    def candidates(tx: Tx) -> list[str]:
        finding.task(tx, task_id)
        return sorted(s.id for s in tx.sessions.of_task(task_id) if s.state in CANDIDATES)

    stopped: list[str] = []
    failures: dict[str, KandevError] = {}
    for session_id in await ctx.store.read(candidates):
        try:
            if await stop_one(ctx, session_id, reason or DEFAULT_REASON, force=force, outcome=outcome):
                stopped.append(session_id)
        except KandevError as fault:
            failures[session_id] = fault
    if failures and not stopped:
        raise next(iter(failures.values()))
    if required and not stopped:
        raise NotFound("execution not found")
    return Stopped(tuple(stopped), {s: fault.message for s, fault in failures.items()})

"""Who calls a tool. Looked up in the database by the execution, never taken from what the agent says."""

from dataclasses import dataclass

from kandev.core.errors import NotFound
from kandev.core.toolbox import Mode, mode_of
from kandev.ports.store import Tx


@dataclass(frozen=True)
class Caller:
    """An agent: its task, its session, its process. `call_id` is unique for ever, and the same when a call is
    handled a second time."""

    task_id: str
    session_id: str
    execution: str
    call_id: str


def find_caller(tx: Tx, execution: str, call_id: str) -> Caller:
    """Raises NotFound."""
    row = tx.executions.get(execution)
    session = tx.sessions.get(row.session_id) if row else None
    if session is None:
        raise NotFound("The session of this agent was deleted.")
    return Caller(session.task_id, session.id, execution, call_id)


def mode_of_caller(tx: Tx, caller: Caller) -> Mode:
    """Which tools it has. Raises NotFound."""
    task = tx.tasks.get(caller.task_id)
    if task is None:
        raise NotFound("The task of this agent was deleted.")
    return mode_of(task)

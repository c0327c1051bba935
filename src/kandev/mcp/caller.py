"""Who calls a tool. Looked up in the database by the execution, never taken from what the agent says."""

from dataclasses import dataclass
from typing import Final

from kandev.core.errors import Conflict, NotFound
from kandev.core.session import Launch, Outcome
from kandev.core.toolbox import Mode, mode_of
from kandev.ports.store import Tx

UP: Final = (Launch.STARTING, Launch.READY, Launch.DOZING)


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


def acting(tx: Tx, caller: Caller) -> Caller:
    """The caller, if its process is the one that its session has. What a stopped or replaced agent still asks
    for while it is being ended is too late, as its output is. Raises Conflict."""
    session = tx.sessions.get(caller.session_id)
    value = session.value if session else None
    going = value is not None and value.outcome in (Outcome.OPEN, Outcome.COMPLETED)
    if value is None or not going or value.execution != caller.execution or value.launch not in UP:
        raise Conflict("Your session was stopped, or goes on in another process: nothing was done.")
    return caller


def mode_of_caller(tx: Tx, caller: Caller) -> Mode:
    """Which tools it has. Raises NotFound."""
    task = tx.tasks.get(caller.task_id)
    if task is None:
        raise NotFound("The task of this agent was deleted.")
    return mode_of(task)

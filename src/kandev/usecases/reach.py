"""What an agent may touch: the tasks of its own workspace, and what belongs to them.

What lies in another workspace is refused (FORBIDDEN) rather than hidden: its ids cannot be guessed, so
whoever has one learns nothing, and an agent that was handed one is told why it does not work. Not here:
people, who reach everything.
"""

from kandev.core.board import Task, Workflow
from kandev.core.errors import Forbidden, NotFound
from kandev.ports.store import Tx
from kandev.usecases import finding

_ELSEWHERE = "belongs to another workspace; an agent reaches its own workspace only."


def own_task(tx: Tx, caller_task_id: str) -> Task:
    """The caller's. Raises NotFound, without the id."""
    if row := tx.tasks.get(caller_task_id):
        return row
    raise NotFound("Your own task is not there any more.")


def task(tx: Tx, caller_task_id: str, task_id: str) -> Task:
    """Raises NotFound; Forbidden for one of another workspace."""
    own = own_task(tx, caller_task_id)
    found = finding.task(tx, task_id)
    if found.workspace_id != own.workspace_id:
        raise Forbidden(f"The task {_ELSEWHERE}")
    return found


def workflow(tx: Tx, caller_task_id: str, workflow_id: str | None) -> Workflow:
    """The caller's task's without `workflow_id`. Raises NotFound; Forbidden for one of another workspace."""
    own = own_task(tx, caller_task_id)
    found = finding.workflow(tx, workflow_id or own.workflow_id)
    if found.workspace_id != own.workspace_id:
        raise Forbidden(f"The workflow {_ELSEWHERE}")
    return found


def own_or_child(tx: Tx, caller_task_id: str, task_id: str, what: str) -> Task:
    """Raises NotFound; Forbidden for another workspace's, and for one that is neither the caller's own nor a
    direct child of it: `what` says what was refused."""
    found = task(tx, caller_task_id, task_id)
    if caller_task_id not in (found.id, found.parent_id):
        raise Forbidden(f"{what} is for your own task and for those whose direct parent it is.")
    return found


def direct_child(tx: Tx, caller_task_id: str, task_id: str, what: str) -> Task:
    """The same for a direct child only."""
    found = task(tx, caller_task_id, task_id)
    if found.parent_id != caller_task_id:
        raise Forbidden(f"{what}: only a task's direct parent may do that.")
    return found

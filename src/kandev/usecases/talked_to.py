"""Which session of a task is meant when a message names only the task."""

from collections.abc import Sequence
from typing import Final

from kandev.core.board import Task
from kandev.core.errors import NotFound
from kandev.core.records import SessionRecord
from kandev.core.toolbox import SPAWN
from kandev.core.views import wire_state
from kandev.ports.store import Tx
from kandev.usecases import finding

OVER: Final = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


def talked_to(tx: Tx, task: Task, session_id: str | None) -> SessionRecord:
    """The one that is named, which must be the task's and is never redirected; else the primary one unless
    it is over, else the newest that is not, else the primary one. Raises NotFound."""
    if session_id is not None:
        return finding.session(tx, session_id, task.id)
    newest_first = tx.sessions.of_task(task.id)
    if not newest_first:
        raise NotFound(f"The task has no session yet; start one with {SPAWN}.")
    return _chosen(newest_first)


def _chosen(newest_first: Sequence[SessionRecord]) -> SessionRecord:
    primary = next((s for s in newest_first if s.is_primary), newest_first[0])
    return next((s for s in (primary, *newest_first) if wire_state(s.value) not in OVER), primary)

"""Sessions in the database: the value as JSON, and beside it what queries need."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam, select

from kandev.core.records import SessionRecord
from kandev.core.views import needs_actor
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import sessions

MAPPED = Mapped(
    "session", SessionRecord, sessions, derived={"needs_actor": lambda row: needs_actor(row.value)}
)
OF_TASK = MAPPED.select.where(sessions.c.task_id == bindparam("of")).order_by(
    sessions.c.created_at.desc(), sessions.c.id.desc()
)
OF_TASKS = MAPPED.select.where(sessions.c.task_id.in_(bindparam("of", expanding=True))).order_by(
    sessions.c.created_at.desc(), sessions.c.id.desc()
)
OF_WORKSPACE = MAPPED.select.where(sessions.c.workspace_id == bindparam("of")).order_by(
    sessions.c.created_at, sessions.c.id
)
ALIVE = select(sessions.c.id).where(sessions.c.needs_actor).order_by(sessions.c.created_at, sessions.c.id)


class SqlSessions(Rows[SessionRecord]):
    """See `ports.store.Sessions`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, MAPPED)

    def of_task(self, task_id: str) -> Sequence[SessionRecord]:
        """Newest first."""
        return self.all(OF_TASK, {"of": task_id})

    def of_tasks(self, task_ids: Sequence[str]) -> Sequence[SessionRecord]:
        """Newest first."""
        return self.all(OF_TASKS, {"of": list(task_ids)})

    def of_workspace(self, workspace_id: str) -> Sequence[SessionRecord]:
        """By creation."""
        return self.all(OF_WORKSPACE, {"of": workspace_id})

    def alive(self) -> Sequence[str]:
        """Ids of those that need an actor at start, by creation."""
        return list(self.connection.execute(ALIVE).scalars())

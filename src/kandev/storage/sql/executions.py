"""Executions in the database."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam

from kandev.core.records import ExecutionRecord
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import executions

MAPPED = Mapped("execution", ExecutionRecord, executions)
OF_SESSION = MAPPED.select.where(executions.c.session_id == bindparam("of")).order_by(
    executions.c.number, executions.c.id
)
WITH_SURVIVORS = MAPPED.select.where(executions.c.survivors != ()).order_by(executions.c.id)


class SqlExecutions(Rows[ExecutionRecord]):
    """See `ports.store.Executions`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, MAPPED)

    def of_session(self, session_id: str) -> Sequence[ExecutionRecord]:
        """By number."""
        return self.all(OF_SESSION, {"of": session_id})

    def with_survivors(self) -> Sequence[ExecutionRecord]:
        """By id."""
        return self.all(WITH_SURVIVORS, {})

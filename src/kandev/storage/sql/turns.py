"""Turns in the database."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam

from kandev.core.records import TurnRecord
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import turns

MAPPED = Mapped("turn", TurnRecord, turns)
OF_SESSION = MAPPED.select.where(turns.c.session_id == bindparam("of")).order_by(
    turns.c.started_at, turns.c.id
)


class SqlTurns(Rows[TurnRecord]):
    """See `ports.store.Turns`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, MAPPED)

    def of_session(self, session_id: str) -> Sequence[TurnRecord]:
        """By their start."""
        return self.all(OF_SESSION, {"of": session_id})

"""Entries (messages on their way) in the database."""

from collections.abc import Sequence

from sqlalchemy import Connection, bindparam

from kandev.core.records import EntryRecord
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import entries

MAPPED = Mapped("entry", EntryRecord, entries)
QUEUE = MAPPED.select.where(
    entries.c.session_id == bindparam("of"), entries.c.state.in_(["queued", "claimed"])
).order_by(entries.c.place, entries.c.id)
BY_KEY = MAPPED.select.where(
    entries.c.task_id == bindparam("of"),
    entries.c.sender_task_id.is_not_distinct_from(bindparam("sender")),
    entries.c.key == bindparam("at_key"),
)


class SqlEntries(Rows[EntryRecord]):
    """See `ports.store.Entries`."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection, MAPPED)

    def queue(self, session_id: str) -> Sequence[EntryRecord]:
        """Those that wait or are claimed, by place."""
        return self.all(QUEUE, {"of": session_id})

    def by_key(self, task_id: str, sender_task_id: str | None, key: str) -> EntryRecord | None:
        """The entry that a sender (None: a person) gave this idempotency key."""
        return self.one(BY_KEY, {"of": task_id, "sender": sender_task_id, "at_key": key})

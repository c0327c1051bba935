"""Small durable facts, and the owner's epoch."""

from sqlalchemy import Connection, bindparam, func, insert, select, update

from kandev.storage.sql.tables import notes, owner

EPOCH = select(owner.c.epoch)
NEXT_EPOCH = (
    update(owner).values(epoch=func.max(owner.c.epoch, bindparam("above")) + 1).returning(owner.c.epoch)
)
FIRST_EPOCH = insert(owner)
NOTE = select(notes.c.value).where(notes.c.key == bindparam("at_key"))
CHANGE = update(notes).where(notes.c.key == bindparam("at_key"))
WRITE = insert(notes)


class SqlNotes:
    """The part of `ports.store.Tx` that belongs to no noun."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def epoch(self) -> int:
        """0 before the first owner."""
        return self._connection.execute(EPOCH).scalar() or 0

    def next_epoch(self, above: int = 0) -> int:
        """Higher than ever before, and than `above`."""
        epoch: int | None = self._connection.execute(NEXT_EPOCH, {"above": above}).scalar()
        if epoch is None:
            epoch = above + 1
            self._connection.execute(FIRST_EPOCH, {"id": 1, "epoch": epoch})
        return epoch

    def note(self, key: str) -> str | None:
        """The fact of this name."""
        found: str | None = self._connection.execute(NOTE, {"at_key": key}).scalar()
        return found

    def set_note(self, key: str, value: str) -> None:
        """Instead of an earlier one."""
        if not self._connection.execute(CHANGE, {"at_key": key, "value": value}).rowcount:
            self._connection.execute(WRITE, {"key": key, "value": value})

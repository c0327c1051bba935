"""Transcripts in the database."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, func, select, update

from kandev.core.errors import NotFound, StaleVersion
from kandev.core.transcript import Message
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import messages


def _key(message: Message) -> str | None:
    found = message.metadata.get("key")
    return found if isinstance(found, str) else None


MAPPED = Mapped(
    "message", Message, messages, derived={"key": _key, "length": lambda message: len(message.content)}
)
LAST = select(func.max(messages.c.seq)).where(messages.c.session_id == bindparam("of"))
PLACE = select(messages.c.seq).where(
    messages.c.id == bindparam("at_id"), messages.c.session_id == bindparam("of")
)
AFTER = (
    MAPPED.select.where(messages.c.session_id == bindparam("of"), messages.c.seq > bindparam("after"))
    .order_by(messages.c.seq)
    .limit(bindparam("at_most"))
)
BEFORE = (
    MAPPED.select.where(messages.c.session_id == bindparam("of"), messages.c.seq < bindparam("before"))
    .order_by(messages.c.seq.desc())
    .limit(bindparam("at_most"))
)
LATEST = (
    MAPPED.select.where(messages.c.session_id == bindparam("of"))
    .order_by(messages.c.seq.desc())
    .limit(bindparam("at_most"))
)
NEWEST = (
    MAPPED.select.where(
        messages.c.session_id == bindparam("of"),
        messages.c.type == bindparam("at_type"),
        messages.c.key == bindparam("at_key"),
    )
    .order_by(messages.c.seq.desc())
    .limit(1)
)
# The length is kept beside the text because counting the characters of a long one takes as long as reading
# it.
APPEND = (
    update(messages)
    .where(messages.c.id == bindparam("at_id"))
    .values(
        content=messages.c.content.op("||")(bindparam("text")),
        length=messages.c.length + bindparam("more"),
    )
    .returning(messages.c.length)
)
CHANGED = ("content", "metadata", "turn_id", "key", "length")


class SqlMessages:
    """See `ports.store.Messages`."""

    def __init__(self, connection: Connection) -> None:
        self._rows = Rows(connection, MAPPED)
        self._connection = connection

    def get(self, id: str) -> Message | None:
        """The message with this id."""
        return self._rows.get(id)

    def add(self, message: Message) -> Message:
        """Takes the session's next `seq`. StaleVersion when the session is gone or the id taken."""
        last: int | None = self._connection.execute(LAST, {"of": message.session_id}).scalar()
        placed = replace(message, seq=(last or 0) + 1)
        self._rows.insert(placed)
        return placed

    def replace(self, message: Message) -> None:
        """Content, metadata and turn; StaleVersion when the message is gone."""
        values = MAPPED.values(message)
        changed: dict[str, Any] = {name: values[name] for name in CHANGED}
        if self._rows.write(MAPPED.update, {**changed, "at_id": message.id}) != 1:
            raise StaleVersion(f"The message {message.id!r} was deleted by another writer.")

    def append(self, id: str, text: str) -> int:
        """The offset in characters at which `text` begins; StaleVersion when the message is gone."""
        values = {"at_id": id, "text": text, "more": len(text)}
        length: int | None = self._connection.execute(APPEND, values).scalar()
        if length is None:
            raise StaleVersion(f"The message {id!r} was deleted by another writer.")
        return length - len(text)

    def page(
        self, session_id: str, *, limit: int, before: str | None = None, after: str | None = None
    ) -> Sequence[Message]:
        """Oldest first; NotFound when `before` or `after` is no message of the session."""
        values: dict[str, Any] = {"of": session_id, "at_most": limit}
        if before is not None:
            values["before"] = self._place(session_id, before)
            return self._rows.all(BEFORE, values)[::-1]
        values["after"] = 0 if after is None else self._place(session_id, after)
        return self._rows.all(AFTER, values)

    def latest(self, session_id: str, limit: int) -> Sequence[Message]:
        """The last ones, oldest first."""
        return self._rows.all(LATEST, {"of": session_id, "at_most": limit})[::-1]

    def find(self, session_id: str, type: str, key: str) -> Message | None:
        """The newest of this type whose `metadata["key"]` is `key`."""
        return self._rows.one(NEWEST, {"of": session_id, "at_type": type, "at_key": key})

    def _place(self, session_id: str, id: str) -> int:
        seq: int | None = self._connection.execute(PLACE, {"at_id": id, "of": session_id}).scalar()
        if seq is None:
            raise NotFound(f"There is no message {id!r} in this session.")
        return seq

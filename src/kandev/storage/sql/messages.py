"""Transcripts in the database. Not here: how long texts are kept (`texts`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Select, bindparam, func, literal, select, type_coerce
from sqlalchemy import Text as AsText

from kandev.core.errors import NotFound, StaleVersion
from kandev.core.transcript import Message
from kandev.storage.sql.rows import Mapped, Rows
from kandev.storage.sql.tables import messages
from kandev.storage.sql.texts import WHOLE_LENGTH, SqlTexts, beginning

PAGE_CHARACTERS: Final = 32 << 20
"""Of texts and metadata in one page: what a reader costs in memory is a few times of it, however much a
transcript holds. One message alone may be longer."""


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
OUTLINE = select(
    *(literal("") if name == "content" else messages.c[name] for name in MAPPED.names),
    func.coalesce(WHOLE_LENGTH, messages.c.length),
).where(messages.c.id == bindparam("at_id"))
# A row, and behind its columns the length of its whole text where the row does not hold all of it.
ROW = MAPPED.select.add_columns(WHOLE_LENGTH)
BY_ID = ROW.where(messages.c.id == bindparam("at_id"))
NEWEST = (
    ROW.where(
        messages.c.session_id == bindparam("of"),
        messages.c.type == bindparam("at_type"),
        messages.c.key == bindparam("at_key"),
    )
    .order_by(messages.c.seq.desc())
    .limit(1)
)
# And what counts for a page where the row does hold all of it, and in either case.
SIZED = (
    ROW.add_columns(messages.c.length, func.length(type_coerce(messages.c.metadata, AsText)))
    .where(messages.c.session_id == bindparam("of"))
    .limit(bindparam("at_most"))
)
AFTER = SIZED.where(messages.c.seq > bindparam("after")).order_by(messages.c.seq)
BEFORE = SIZED.where(messages.c.seq < bindparam("before")).order_by(messages.c.seq.desc())
LATEST = SIZED.order_by(messages.c.seq.desc())
CHANGED = ("content", "metadata", "turn_id", "key", "length")


class SqlMessages:
    """See `ports.store.Messages`."""

    def __init__(self, connection: Connection) -> None:
        self._rows = Rows(connection, MAPPED)
        self._texts = SqlTexts(connection)
        self._connection = connection

    def get(self, id: str) -> Message | None:
        """The message with this id."""
        return self._one(BY_ID, {"at_id": id})

    def outline(self, id: str) -> tuple[Message, int] | None:
        """With an empty content, and how long that is in characters."""
        found = self._connection.execute(OUTLINE, {"at_id": id}).first()
        return None if found is None else (Message(*found[:-1]), found[-1])

    def add(self, message: Message) -> Message:
        """Takes the session's next `seq`. StaleVersion when the session is gone or the id taken."""
        last: int | None = self._connection.execute(LAST, {"of": message.session_id}).scalar()
        placed = replace(message, seq=(last or 0) + 1)
        self._rows.insert(_row(placed))
        self._texts.add_rest(placed.id, placed.content)
        return placed

    def replace(self, message: Message) -> None:
        """Content, metadata and turn; StaleVersion when the message is gone."""
        values = MAPPED.values(_row(message))
        changed: dict[str, Any] = {name: values[name] for name in CHANGED}
        if self._rows.write(MAPPED.update, {**changed, "at_id": message.id}) != 1:
            raise _gone(message.id)
        self._texts.drop_rest(message.id)
        self._texts.add_rest(message.id, message.content)

    def append(self, id: str, text: str) -> int:
        """The offset in characters at which `text` begins; StaleVersion when the message is gone."""
        offset = self._texts.append(id, text)
        if offset is None:
            raise _gone(id)
        return offset

    def page(
        self, session_id: str, *, limit: int, before: str | None = None, after: str | None = None
    ) -> Sequence[Message]:
        """Oldest first; NotFound when `before` or `after` is no message of the session."""
        values: dict[str, Any] = {"of": session_id, "at_most": limit}
        if before is not None:
            values["before"] = self._place(session_id, before)
            return list(self._within(BEFORE, values))[::-1]
        values["after"] = 0 if after is None else self._place(session_id, after)
        return list(self._within(AFTER, values))

    def latest(self, session_id: str, limit: int) -> Sequence[Message]:
        """The last ones, oldest first."""
        return list(self._within(LATEST, {"of": session_id, "at_most": limit}))[::-1]

    def find(self, session_id: str, type: str, key: str) -> Message | None:
        """The newest of this type whose `metadata["key"]` is `key`."""
        return self._one(NEWEST, {"of": session_id, "at_type": type, "at_key": key})

    def _one(self, query: Select[Any], values: Mapping[str, Any]) -> Message | None:
        found = self._connection.execute(query, values).first()
        return None if found is None else self._whole(found[:-1], found[-1])

    def _within(self, query: Select[Any], values: Mapping[str, Any]) -> Iterator[Message]:
        """At least one, then until the page is full."""
        left = PAGE_CHARACTERS
        with self._connection.execute(query, values) as found:
            for place, (*row, whole_length, length, metadata) in enumerate(found):
                left -= metadata + (length if whole_length is None else whole_length)
                if left < 0 and place > 0:
                    return
                yield self._whole(row, whole_length)

    def _whole(self, row: Sequence[Any], whole_length: int | None) -> Message:
        message = Message(*row)
        if whole_length is None:
            return message
        return replace(message, content=self._texts.whole(message.id, message.content))

    def _place(self, session_id: str, id: str) -> int:
        seq: int | None = self._connection.execute(PLACE, {"at_id": id, "of": session_id}).scalar()
        if seq is None:
            raise NotFound(f"There is no message {id!r} in this session.")
        return seq


def _row(message: Message) -> Message:
    """As it stands in its row."""
    return replace(message, content=beginning(message.content))


def _gone(id: str) -> StaleVersion:
    return StaleVersion(f"The message {id!r} was deleted by another writer.")

"""The texts of messages: the beginning in the message's own row, the rest in parts beside it.

Only the last stretch of a text is ever written again, and only while it is short. So a piece costs what it
costs alone, however long the text is that it is appended to, and nothing has to be put together later. Not
here: what else a message has (`messages`).
"""

from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from kandev.storage.sql.tables import message_parts as parts
from kandev.storage.sql.tables import messages

STRETCH: Final = 2000
"""Characters up to which the last stretch takes more: about what fits into a page of the database, so that
writing it again costs no more than beginning another, and so that many small pieces are not many rows."""

LAST = (
    select(parts.c.offset, parts.c.length)
    .where(parts.c.message_id == bindparam("of"))
    .order_by(parts.c.offset.desc())
    .limit(1)
)
BEGINNING = select(messages.c.length).where(messages.c.id == bindparam("of"))
GROWN = (parts.c.message_id == bindparam("of"), parts.c.offset == bindparam("at"))
GROW = (
    update(parts)
    .where(*GROWN)
    .values(text=parts.c.text.op("||")(bindparam("more")), length=parts.c.length + bindparam("by"))
)
GROW_BEGINNING = (
    update(messages)
    .where(messages.c.id == bindparam("of"))
    .values(
        content=messages.c.content.op("||")(bindparam("more")), length=messages.c.length + bindparam("by")
    )
)
ADD = insert(parts)
DROP = delete(parts).where(parts.c.message_id == bindparam("of"))
BEHIND = select(parts.c.text).where(parts.c.message_id == bindparam("of")).order_by(parts.c.offset)
WHOLE_LENGTH = (
    select(parts.c.offset + parts.c.length)
    .where(parts.c.message_id == messages.c.id)
    .order_by(parts.c.offset.desc())
    .limit(1)
    .scalar_subquery()
)
"""Of a message in a query over `messages`: characters of its whole text; NULL when its row holds all."""


def beginning(text: str) -> str:
    """What of a new text stands in the message's row."""
    return text[:STRETCH]


class SqlTexts:
    """In one transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add_rest(self, id: str, text: str) -> None:
        """What of a new text does not stand in the message's row."""
        if len(text) > STRETCH:
            self._add(id, STRETCH, text[STRETCH:])

    def drop_rest(self, id: str) -> None:
        """All that does not stand in the message's row."""
        self._connection.execute(DROP, {"of": id})

    def append(self, id: str, text: str) -> int | None:
        """The offset at which `text` begins, None when there is no such message."""
        last = self._connection.execute(LAST, {"of": id}).first()
        if last is not None:
            begin, length = last
            return self._grow(id, begin, length, text)
        length = self._connection.execute(BEGINNING, {"of": id}).scalar()
        return None if length is None else self._grow(id, None, length, text)

    def whole(self, id: str, begin: str) -> str:
        """The whole text, whose beginning stands in the message's row."""
        rest: Iterable[str] = self._connection.execute(BEHIND, {"of": id}).scalars()
        return "".join([begin, *rest])

    def _grow(self, id: str, begin: int | None, length: int, text: str) -> int:
        """`begin` and `length` of the last stretch; None: it is the message's row."""
        end = (begin or 0) + length
        if length + len(text) > STRETCH:
            self._add(id, end, text)
        elif text:
            statement: Any = GROW_BEGINNING if begin is None else GROW
            self._connection.execute(statement, {"of": id, "at": begin, "more": text, "by": len(text)})
        return end

    def _add(self, id: str, offset: int, text: str) -> None:
        if text:
            values = {"message_id": id, "offset": offset, "length": len(text), "text": text}
            self._connection.execute(ADD, values)

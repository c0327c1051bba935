"""The durable streams of notifications: a counter for each, and the newest of what it counted.

Not here: handing them out. What was added is collected in `added` and published after the commit.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Text,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    type_coerce,
    update,
)
from sqlalchemy.exc import IntegrityError

from kandev.core.records import Notification, StreamKind
from kandev.ports.clock import Clock
from kandev.storage.faults import conflict
from kandev.storage.sql.tables import notifications, sessions, streams, workspaces

REPLAYED_CHARACTERS: Final = 16 << 20
"""Of payloads that are read for one replay: as much as may wait for one client, who would be told to reload
beyond it anyway."""

AT = (streams.c.stream == bindparam("kind"), streams.c.stream_id == bindparam("of"))
ADVANCE = update(streams).where(*AT).values(last=streams.c.last + 1).returning(streams.c.last)
BEGIN = insert(streams)
KEEP = insert(notifications)
RANGE = select(streams.c.last, streams.c.pruned).where(*AT)
SINCE = (
    select(
        notifications.c.seq,
        notifications.c.action,
        notifications.c.payload,
        notifications.c.timestamp,
        func.length(type_coerce(notifications.c.payload, Text)),
    )
    .where(
        notifications.c.stream == bindparam("kind"),
        notifications.c.stream_id == bindparam("of"),
        notifications.c.seq > bindparam("after"),
    )
    .order_by(notifications.c.seq)
)
LONG = select(streams.c.stream, streams.c.stream_id, streams.c.last).where(
    streams.c.last - streams.c.pruned > bindparam("keep")
)
DROP = delete(notifications).where(
    notifications.c.stream == bindparam("kind"),
    notifications.c.stream_id == bindparam("of"),
    notifications.c.seq <= bindparam("up_to"),
)
DROPPED = update(streams).where(*AT).values(pruned=bindparam("up_to"))
BEHIND = func.max(streams.c.last, bindparam("to"))
LEAP = update(streams).values(last=BEHIND, pruned=BEHIND)
BEGIN_ALL = tuple(
    insert(streams).from_select(
        ["stream", "stream_id", f"{kind}_id", "last", "pruned"],
        select(literal(kind), table.c.id, table.c.id, bindparam("to"), bindparam("to")).where(
            ~exists().where(streams.c.stream == kind, streams.c.stream_id == table.c.id)
        ),
    )
    for kind, table in (("session", sessions), ("workspace", workspaces))
)


class SqlNotifications:
    """See `ports.store.Notifications`."""

    def __init__(self, connection: Connection, clock: Clock) -> None:
        self._connection = connection
        self._clock = clock
        self.added: list[Notification] = []

    def add(self, stream: StreamKind, stream_id: str, action: str, payload: dict[str, Any]) -> None:
        """Takes the stream's next `seq`. StaleVersion when the session or workspace is gone: so, say it,
        then delete.
        """
        seq: int | None = self._connection.execute(ADVANCE, {"kind": stream, "of": stream_id}).scalar()
        if seq is None:
            seq = 1
            self._begin(stream, stream_id)
        added = Notification(stream, stream_id, seq, action, payload, self._clock.now())
        self._connection.execute(KEEP, vars(added))
        self.added.append(added)

    def since(self, stream: StreamKind, stream_id: str, seq: int) -> Sequence[Notification] | None:
        """All after `seq`; None when some are no longer kept, when they are too large for a replay, or when
        `seq` is ahead.
        """
        last, pruned = self._range(stream, stream_id)
        if not pruned <= seq <= last:
            return None
        missed, left = [], REPLAYED_CHARACTERS
        with self._connection.execute(SINCE, {"kind": stream, "of": stream_id, "after": seq}) as found:
            for *row, size in found:
                left -= size
                if left < 0:
                    return None
                missed.append(Notification(stream, stream_id, *row))
        return missed

    def last(self, stream: StreamKind, stream_id: str) -> int:
        """The stream's present `seq`."""
        return self._range(stream, stream_id)[0]

    def prune(self, keep: int) -> None:
        """Keeps the newest `keep` of each stream."""
        for kind, of, last in self._connection.execute(LONG, {"keep": keep}).all():
            values = {"kind": kind, "of": of, "up_to": last - keep}
            self._connection.execute(DROP, values)
            self._connection.execute(DROPPED, values)

    def leap(self, seq: int) -> None:
        """Every stream, also one that has not begun, goes on behind `seq` at least and keeps nothing."""
        values = {"to": seq}
        for begin in BEGIN_ALL:
            self._connection.execute(begin, values)
        self._connection.execute(LEAP, values)
        self._connection.execute(delete(notifications))

    def _range(self, stream: str, stream_id: str) -> tuple[int, int]:
        found = self._connection.execute(RANGE, {"kind": stream, "of": stream_id}).first()
        return (0, 0) if found is None else (found[0], found[1])

    def _begin(self, stream: str, stream_id: str) -> None:
        values = {"stream": stream, "stream_id": stream_id, "last": 1, "pruned": 0}
        owner = {"session_id": None, "workspace_id": None, f"{stream}_id": stream_id}
        try:
            self._connection.execute(BEGIN, {**values, **owner})
        except IntegrityError as error:
            raise conflict(error, f"The stream of {stream} {stream_id!r}") from error

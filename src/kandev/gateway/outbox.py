"""What waits to be sent to one client: bounded, so that a client that does not read costs nobody else
anything.

Answers are always kept (the connection bounds how many can be under way, and how many of them may be large).
Of what is new, growing text of one message is put together, an update that a newer one replaces is dropped,
and beyond the bound everything new is dropped and the client is told to load its streams again. Not here: the
connection, who hears what (`hub`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from kandev.core.records import Notification, StreamKind

PIECE_BYTES: Final = 100
"""What a piece of text costs in memory beside what it says."""

Stream = tuple[StreamKind, str]
Key = tuple[str, ...]

# By action, where its payload holds the id of the thing that the newest one tells all about.
REPLACEABLE: Final[dict[str, tuple[str, ...]]] = {
    "session.updated": ("session_id",),
    "session.cancellation_changed": ("session_id",),
    "message.queue.status_changed": ("session_id",),
    "session.message.updated": ("message_id",),
    "task.updated": ("task", "id"),
    "workflow.changed": ("workflow", "id"),
    "repository.changed": ("repository", "id"),
    "agent.profile.changed": ("profile", "id"),
    "session.reload": ("session_id",),
    "workspace.reload": ("workspace_id",),
}


class News:
    """A notification, encoded once for all who hear it."""

    def __init__(self, notification: Notification) -> None:
        self.notification = notification
        self.stream: Stream = (notification.stream, notification.stream_id)
        self.seq = notification.seq
        payload = notification.payload
        self.append: str | None = payload.get("append")
        self.key = _key(notification.action, payload)
        self.data = _encoded(notification, payload)

    def with_more(self, pieces: list[str], seq: int) -> bytes:
        """Encoded, with further text of the same message."""
        payload = {**self.notification.payload, "append": "".join([self.append or "", *pieces])}
        return _encoded(self.notification, payload, seq)


def reload_order(stream: Stream, seq: int, timestamp: str) -> News:
    """Tells a client to subscribe to the stream again: it missed something up to `seq`."""
    kind, id = stream
    payload = {"reload": True, f"{kind}_id": id}
    return News(Notification(kind, id, seq, f"{kind}.reload", payload, timestamp))


def _key(action: str, payload: dict[str, Any]) -> Key | None:
    found: Any = payload
    for member in REPLACEABLE.get(action, ("",)):
        found = found.get(member) if isinstance(found, dict) else None
    return (action, found) if isinstance(found, str) else None


def _encoded(notification: Notification, payload: dict[str, Any], seq: int | None = None) -> bytes:
    named = {f"{notification.stream}_id": notification.stream_id}
    frame = {
        "id": "",
        "type": "notification",
        "action": notification.action,
        "payload": {**payload, **named, "seq": notification.seq if seq is None else seq},
        "timestamp": notification.timestamp,
    }
    return msgspec.json.encode(frame)


@dataclass
class Waiting:
    """One frame that waits. `news` None: an answer."""

    data: bytes
    news: News | None = None
    more: list[str] = field(default_factory=list)
    seq: int = 0
    end: int = 0
    """For growing text: the offset behind it, in characters."""
    size: int = 0
    sent: Callable[[], None] | None = None

    def encoded(self) -> bytes:
        """The frame."""
        return self.news.with_more(self.more, self.seq) if self.news and self.more else self.data


class Outbox:
    """`most` frames and `most_bytes` of what is new may wait."""

    def __init__(self, most: int, most_bytes: int, reloaded: Callable[[], None] = lambda: None) -> None:
        self._most, self._most_bytes, self._reloaded = most, most_bytes, reloaded
        self._waiting: dict[int, Waiting] = {}
        self._serial = 0
        self._new, self._bytes = 0, 0
        self._answers = 0
        self._by_key: dict[tuple[Stream, Key], list[int]] = {}
        self._last: dict[Stream, int] = {}
        self._wake = asyncio.Event()

    def answer(self, data: bytes, sent: Callable[[], None]) -> None:
        """An answer; `sent` is called when it was handed to the connection, or never will be."""
        self._put(Waiting(data, sent=sent, size=len(data)))
        self._answers += len(data)

    def tell(self, news: News) -> None:
        """Something new."""
        if not self._grows(news):
            if news.key is not None and news.append is None:
                self._drop_older(news.stream, news.key)
            self._add(news)
        if self._new > self._most or self._bytes > self._most_bytes:
            self._give_up()

    @property
    def waits(self) -> int:
        """Bytes that wait for the client, answers included."""
        return self._bytes + self._answers

    async def next(self) -> Waiting:
        """The oldest frame, as soon as there is one."""
        while not self._waiting:
            self._wake.clear()
            await self._wake.wait()
        serial = next(iter(self._waiting))
        return self._take(serial)

    def close(self) -> None:
        """Nothing will be sent any more."""
        for serial in list(self._waiting):
            waiting = self._take(serial)
            if waiting.sent:
                waiting.sent()

    def _put(self, waiting: Waiting) -> int:
        self._serial += 1
        self._waiting[self._serial] = waiting
        self._wake.set()
        return self._serial

    def _take(self, serial: int) -> Waiting:
        waiting = self._waiting.pop(serial)
        if waiting.news is None:
            self._answers -= waiting.size
        else:
            self._new -= 1
            self._bytes -= waiting.size
            if self._last.get(waiting.news.stream) == serial:
                del self._last[waiting.news.stream]
            if waiting.news.key is not None:
                place = (waiting.news.stream, waiting.news.key)
                left = [s for s in self._by_key.get(place, ()) if s != serial]
                if left:
                    self._by_key[place] = left
                else:
                    self._by_key.pop(place, None)
        return waiting

    def _add(self, news: News) -> None:
        offset = news.notification.payload.get("offset", 0) if news.append is not None else 0
        waiting = Waiting(news.data, news, seq=news.seq, end=offset + len(news.append or ""))
        waiting.size = len(news.data)
        serial = self._put(waiting)
        self._new += 1
        self._bytes += waiting.size
        self._last[news.stream] = serial
        if news.key is not None:
            self._by_key.setdefault((news.stream, news.key), []).append(serial)

    def _grows(self, news: News) -> bool:
        """Put text behind the text of the same message, when nothing of its stream stands between."""
        serial = self._last.get(news.stream)
        last = self._waiting.get(serial) if serial is not None else None
        if news.append is None or last is None or last.news is None or last.news.append is None:
            return False
        if last.news.key != news.key or last.end != news.notification.payload.get("offset"):
            return False
        last.more.append(news.append)
        last.seq, last.end = news.seq, last.end + len(news.append)
        more = len(news.append.encode(errors="replace")) + PIECE_BYTES
        last.size += more
        self._bytes += more
        return True

    def _drop_older(self, stream: Stream, key: Key) -> None:
        for serial in self._by_key.get((stream, key), [])[:]:
            self._take(serial)

    def _give_up(self) -> None:
        """Too far behind: per stream, one order to reload stands for all that was dropped."""
        dropped = [self._take(s) for s in [s for s, w in self._waiting.items() if w.news is not None]]
        newest: dict[Stream, tuple[int, str]] = {}
        for waiting in dropped:
            if waiting.news is not None:
                newest[waiting.news.stream] = (waiting.seq, waiting.news.notification.timestamp)
        for stream, (seq, timestamp) in newest.items():
            self._add(reload_order(stream, seq, timestamp))
        self._reloaded()

"""Who hears what: the streams that each connected client follows. Implements `ports.store.Publisher`.

A subscription is registered before its snapshot is read; what is published meanwhile waits and is told
behind the answer, without what the snapshot holds already. So there is neither a gap nor a double. Not
here: snapshots (`streams`), the connection (`websocket`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kandev.core.records import Notification
from kandev.gateway.metrics import Metrics
from kandev.gateway.outbox import News, Outbox, Stream, reload_order

MOST_FRAMES: Final = 2000
MOST_BYTES: Final = 16 << 20
"""Of what is new, that may wait for one client, and once more for each of its snapshots that are read."""


@dataclass
class Subscription:
    """One client's following of one stream. Until it is open, what is new waits in `held`, within the bounds
    of what may wait for the client."""

    stream: Stream
    most: int
    most_bytes: int
    seq: int = 0
    """The newest that the client was told, or has in its snapshot."""
    open: bool = False
    held: list[News] = field(default_factory=list)
    held_bytes: int = 0

    def hold(self, news: News) -> None:
        """Until it is open. Beyond the bound one order to reload stands for what was held."""
        self.held.append(news)
        self.held_bytes += len(news.data)
        if len(self.held) > self.most or self.held_bytes > self.most_bytes:
            self.held = [reload_order(self.stream, news.seq, news.notification.timestamp)]
            self.held_bytes = len(self.held[0].data)


class Client:
    """One connection's end of the hub."""

    def __init__(self, outbox: Outbox) -> None:
        self.outbox = outbox
        self.following: dict[Stream, Subscription] = {}
        self.gone = False

    def hear(self, news: News) -> None:
        """Called for each publication of a stream that it follows. Never blocks."""
        subscription = self.following.get(news.stream)
        if subscription is None:
            return
        if not subscription.open:
            subscription.hold(news)
        elif news.seq > subscription.seq:
            subscription.seq = news.seq
            self.outbox.tell(news)


class Hub:
    """All clients. Lives on one event loop."""

    def __init__(self, *, most_frames: int = MOST_FRAMES, most_bytes: int = MOST_BYTES) -> None:
        self._most_frames, self._most_bytes = most_frames, most_bytes
        self._clients: dict[Client, None] = {}
        self._followers: dict[Stream, dict[Client, None]] = {}
        self._metrics: Metrics | None = None

    def count_with(self, metrics: Metrics) -> None:
        """Where clients and reloads are counted."""
        self._metrics = metrics
        metrics.waiting_bytes.set_function(lambda: float(self.waits))

    def publish(self, notifications: Sequence[Notification]) -> None:
        """In commit order, on the event loop; never blocks."""
        for notification in notifications:
            followers = self._followers.get((notification.stream, notification.stream_id))
            if followers:
                news = News(notification)
                for client in list(followers):
                    client.hear(news)

    @property
    def waits(self) -> int:
        """Bytes that wait for clients that have not taken them yet."""
        return sum(client.outbox.waits for client in self._clients)

    def connect(self) -> Client:
        """A client that follows nothing yet."""
        client = Client(Outbox(self._most_frames, self._most_bytes, self._reloaded))
        self._clients[client] = None
        self._count()
        return client

    def disconnect(self, client: Client) -> None:
        """It hears nothing any more."""
        client.gone = True
        for stream in list(client.following):
            self.unfollow(client, stream)
        self._clients.pop(client, None)
        client.outbox.close()
        self._count()

    def follow(self, client: Client, stream: Stream) -> Subscription:
        """Register; nothing is told before `start`. An earlier following of the same stream is replaced."""
        subscription = Subscription(stream, self._most_frames, self._most_bytes)
        if not client.gone:
            client.following[stream] = subscription
            self._followers.setdefault(stream, {})[client] = None
        return subscription

    def start(
        self, client: Client, subscription: Subscription, since: int, missed: Sequence[Notification]
    ) -> None:
        """Tell what was missed, then what came meanwhile, then live. `since`: the seq of what the client
        has."""
        if client.following.get(subscription.stream) is not subscription:
            return
        subscription.open, subscription.seq = True, since
        held, subscription.held, subscription.held_bytes = subscription.held, [], 0
        for news in (*map(News, missed), *held):
            client.hear(news)

    def unfollow(self, client: Client, stream: Stream, subscription: Subscription | None = None) -> None:
        """Unknown is fine; with `subscription` only if it is still that one."""
        if subscription is not None and client.following.get(stream) is not subscription:
            return
        client.following.pop(stream, None)
        followers = self._followers.get(stream, {})
        followers.pop(client, None)
        if not followers:
            self._followers.pop(stream, None)

    def _count(self) -> None:
        if self._metrics:
            self._metrics.clients.set(len(self._clients))

    def _reloaded(self) -> None:
        if self._metrics:
            self._metrics.reloads.inc()

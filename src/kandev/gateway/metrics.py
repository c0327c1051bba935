"""What `/metrics` tells, in the Prometheus text format.

`Metrics.registry` takes further collectors of others. Counts are kept where things happen; sessions by
state are read from the store when somebody asks. Not here: logs.
"""

from collections import Counter as Tally
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from kandev.core.machines import WIRE_MOVES
from kandev.ports.store import Tx
from kandev.usecases.context import Context

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
STATES: Final = tuple(WIRE_MOVES)


@dataclass
class Outcome:
    """How a request ended: `ok`, or the code of its error."""

    code: str = "ok"


class Metrics:
    """One set of metrics per application, so that two in one process do not meet."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "kandev_requests",
            "Requests answered, by action, door and code.",
            ("action", "door", "code"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "kandev_request_seconds",
            "Time until the answer.",
            ("action",),
            registry=self.registry,
            buckets=(0.005, 0.02, 0.1, 0.5, 2, 10, 30),
        )
        self._sessions = Gauge("kandev_sessions", "Sessions by state.", ("state",), registry=self.registry)
        self._swept = Gauge(
            "kandev_swept_sessions",
            "Sessions that the sweep found with work that nobody did; 0 unless Kandev has a fault.",
            registry=self.registry,
        )
        self.clients = Gauge("kandev_clients", "Connected WebSocket clients.", registry=self.registry)
        self.waiting_bytes = Gauge(
            "kandev_client_waiting_bytes",
            "What waits for WebSocket clients that have not taken it yet.",
            registry=self.registry,
        )
        self.reloads = Counter(
            "kandev_client_reloads", "Times that a slow client was told to reload.", registry=self.registry
        )

    @contextmanager
    def request(self, action: str, door: str) -> Iterator[Outcome]:
        """Count and time one request; its caller notes the code of an error."""
        outcome, begun = Outcome(), perf_counter()
        try:
            yield outcome
        finally:
            self._requests.labels(action, door, outcome.code).inc()
            self._seconds.labels(action).observe(perf_counter() - begun)

    async def text(self, ctx: Context) -> bytes:
        """The whole page."""
        counted = await ctx.store.read(sessions_by_state)
        for state in STATES:
            self._sessions.labels(state).set(counted[state])
        self._swept.set(ctx.sessions.swept)
        return generate_latest(self.registry)


def sessions_by_state(tx: Tx) -> Tally[str]:
    """How many sessions there are in each state."""
    return Tally(s.state for w in tx.workspaces.list() for s in tx.sessions.of_workspace(w.id))

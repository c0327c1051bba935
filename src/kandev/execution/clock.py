"""The real clock and real ids. Not here: durations, which are the event loop's business."""

import secrets
import threading
import time
from datetime import UTC, datetime

ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
"""Without i, l, o and u: nobody mistakes one for another."""
RANDOM_BITS = 80
LETTERS = 26
"""48 bits of milliseconds and 80 random ones, five bits to a letter."""


class SystemClock:
    """Wall-clock time of this machine."""

    def now(self) -> str:
        """RFC 3339 UTC with milliseconds."""
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class TimeIds:
    """Ids like `task_06ekq3d4…`: lower case, safe in URLs, file names and branches, sorted by time of birth.

    Ids of one process grow strictly, also within a millisecond and when the clock goes back.
    """

    def __init__(self) -> None:
        self._last = 0
        self._lock = threading.Lock()

    def new(self, noun: str) -> str:
        """A new id that begins with `noun`."""
        fresh = (time.time_ns() // 1_000_000 << RANDOM_BITS) | secrets.randbits(RANDOM_BITS)
        with self._lock:
            # A step within the same millisecond stays unguessable enough and keeps the order.
            self._last = fresh if fresh > self._last else self._last + 1 + secrets.randbits(32)
            number = self._last
        letters = (ALPHABET[number >> shift & 31] for shift in range(5 * (LETTERS - 1), -1, -5))
        return f"{noun}_{''.join(letters)}"

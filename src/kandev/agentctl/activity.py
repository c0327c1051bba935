"""Whether a backend still cares: requests under way, open streams, and how long ago the last one was.

Not here: what follows from silence (`orphaned`).
"""

import contextlib
import time
from collections.abc import Callable, Iterator


class Activity:
    """`clock` in seconds, monotonic."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._under_way = 0
        self._last = clock()

    @contextlib.contextmanager
    def of_a_client(self) -> Iterator[None]:
        """Around an authorised request or stream."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._last = self._clock()

    def silent_for(self) -> float:
        """Seconds without any; 0 while one is under way."""
        return 0.0 if self._under_way else self._clock() - self._last

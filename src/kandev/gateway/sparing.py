"""Remarks of the server about its clients, a few of each kind: any number of clients can cause them.

Not here: Kandev's own log, which says nothing about refused clients.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

EVERY_S: Final = 60.0
"""One line of a kind in so many seconds; the next one says how many were left out."""
MOST_KINDS: Final = 100


class Sparing(logging.Filter):
    """Of warnings and less, by their text without what is filled in. Errors are all let through."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._kinds: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is written."""
        if record.levelno >= logging.ERROR:
            return True
        kind, now = str(record.msg), self._clock()
        since, left_out = self._kinds.pop(kind, (now - EVERY_S, 0))
        told = now - since >= EVERY_S
        if told and left_out:
            record.msg = f"{record.msg} ({left_out} more of these in the last {now - since:.0f} s)"
        self._kinds[kind] = (now, 0) if told else (since, left_out + 1)
        if len(self._kinds) > MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        return told

"""The backend's log: structured lines on stderr, in colours on a terminal, as JSON elsewhere.

Not here: agentctl's (`agentctl.logs`).
"""

import contextlib
import logging
import sys
from typing import TextIO, cast

import structlog


class _Told:
    """stderr for the log: what cannot be written (a full disk, a reader that went away) is lost, and nothing
    else is."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError, ValueError):
            return self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.flush()


def log_to_stderr(level: str) -> None:
    """From now on, at this level and above."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr, format="%(message)s")
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(cast(TextIO, _Told(sys.stderr))),
        cache_logger_on_first_use=True,
    )

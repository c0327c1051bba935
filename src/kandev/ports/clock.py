"""Time and new names."""

from typing import Protocol


class Clock(Protocol):
    """Wall-clock time for people; durations are the event loop's business."""

    def now(self) -> str:
        """RFC 3339 UTC with milliseconds, e.g. `2026-01-31T09:15:00.123Z`."""


class Ids(Protocol):
    """Opaque, unique, URL-safe ids."""

    def new(self, noun: str) -> str:
        """A new id; `noun` (`task`, `session`, …) may show in it for people who read logs."""

"""Reads what `stamping_agent` sent: which of its chunks came, in which order, and how far behind.

A chunk is `NUMBER:NANOSECONDS `; Kandev may put several into one update. Not here: who sends or receives
them.
"""

from __future__ import annotations

from typing import Any


class Stamps:
    """An ear (`client.Ear`) for one session: counts its chunks."""

    def __init__(self) -> None:
        self.lags: list[float] = []
        """Seconds, per chunk."""
        self.last = 0
        """The number of the newest chunk."""
        self.last_at = 0.0
        self.skipped = 0
        """Chunks that should have come before one that came, or came twice."""
        self.reloads = 0
        self.seq = 0
        """Of the newest notification."""
        self.over = False
        """The turn has ended."""
        self.fault = ""
        """Why it did not end by itself."""

    def __call__(self, at: float, action: str, payload: dict[str, Any]) -> None:
        self.seq = max(self.seq, payload.get("seq", 0))
        match action:
            case "session.message.added" if payload["message"]["author_type"] == "agent":
                self.take(at, payload["message"]["content"])
            case "session.message.updated" if "append" in payload:
                self.take(at, payload["append"])
            case "session.reload":
                self.reloads += 1
            case "session.turn.completed" if payload["cause"] != "refused":  # else it is tried again
                self.over = True
                self.fault = "" if payload["cause"] == "agent" else str(payload["cause"])

    def take(self, at: float, text: str) -> None:
        """Some chunks that came at `at`."""
        for word in text.split():
            number, _, stamp = word.partition(":")
            self.lags.append(at - int(stamp) / 1e9)
            if int(number) != self.last + 1:
                self.skipped += abs(int(number) - self.last - 1)
            self.last = int(number)
        self.last_at = at


def lost_of(text: str, count: int) -> int:
    """How many of the chunks 1 to `count` a whole transcript lacks or holds in another place."""
    numbers = [int(word.partition(":")[0]) for word in text.split()]
    wanted = range(1, count + 1)
    wrong = sum(1 for number, should in zip(numbers, wanted, strict=False) if number != should)
    return wrong + abs(len(numbers) - count)


def update_text(update: dict[str, Any]) -> str:
    """The text of an ACP update of the agent."""
    return str(update.get("content", {}).get("text", ""))


def stamp_of(text: str) -> float:
    """When the first chunk of a text was sent, by `time.monotonic`."""
    return int(text.split(maxsplit=1)[0].partition(":")[2]) / 1e9

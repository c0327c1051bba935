"""What people asked in a round and what they heard: the side of the books that Kandev does not write."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


def now() -> str:
    """As the product's own times."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass
class Sent:
    """One message, however often it was sent: `answers` of `message.add`, `refusals` as `(code, error)`, and
    how many attempts heard nothing. A launch's prompt has no answer of its own."""

    token: str
    task_id: str
    session_id: str
    content: str
    key: str | None = None
    answers: list[dict[str, Any]] = field(default_factory=list)
    refusals: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    unanswered: int = 0
    launched: bool = False
    """It was a launch's prompt, and the launch was accepted."""


@dataclass
class Asked:
    """One other request. Times are RFC 3339, as the database has them. `answer` None: refused, or unheard."""

    action: str
    payload: dict[str, Any]
    at: str = field(default_factory=now)
    answered_at: str = ""
    answer: dict[str, Any] | None = None
    refusal: tuple[str, dict[str, Any]] | None = None

    @property
    def session_id(self) -> str:
        """Whom it was about, where it was about one."""
        return str(self.payload.get("session_id", ""))


@dataclass
class Ledger:
    """Everything of one round."""

    sent: dict[str, Sent] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    hung: list[str] = field(default_factory=list)
    """Requests that were given up after the longest wait."""
    happened: list[str] = field(default_factory=list)
    """Faults in their order, with times: for people who look at a failure."""
    faults: dict[str, int] = field(default_factory=dict)

    def fault(self, kind: str) -> None:
        """It was done."""
        self.faults[kind] = self.faults.get(kind, 0) + 1
        self.happened.append(f"{time.monotonic_ns()} {kind}")

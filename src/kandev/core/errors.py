"""Errors by whose fault they are, and the code that each has at every door (`CODES`).

Not here: outcomes that are no errors (`queued`, `not_running`): those are results.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

Code = Literal["VALIDATION_ERROR", "NOT_FOUND", "FORBIDDEN", "CONFLICT", "INTERNAL_ERROR"]


class KandevError(Exception):
    """One sentence that names what is wrong and what to do."""

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details) if details else None


class Refusal(KandevError):
    """The asker's: nothing was changed."""


class Invalid(Refusal):
    """A value of the right shape that cannot be (VALIDATION_ERROR)."""


class NotFound(Refusal):
    """What was named does not exist (NOT_FOUND)."""


class Forbidden(Refusal):
    """The caller may not do this (FORBIDDEN)."""


class Conflict(Refusal):
    """Not possible in the present state (CONFLICT)."""


class QueueFull(Conflict):
    """The session's queue is at its limit; details `{error: "queue_full", queue_size, max}`."""


class AgentFault(KandevError):
    """The agent's or the sidecar's."""


class StoreFault(KandevError):
    """The database's: busy for too long, full, gone."""


class Unavailable(StoreFault):
    """The database cannot be used, for a reason of the machine's: a disk that is full, slow or read-only. Its
    sentence names that and the way out, nothing of what was to be stored: it may be told to whoever asks."""


class StaleVersion(StoreFault):
    """A compare-and-set met another version: a second writer was faster."""


class Internal(KandevError):
    """Answered as INTERNAL_ERROR with exactly this sentence: only the two cases that the contract names."""


# An agent's fault that a use case hands on is the present state of the world, in its own sentence. What is
# not here (a fault of the store) is told by an id that is in the log.
CODES: Final[tuple[tuple[type[KandevError], Code], ...]] = (
    (Invalid, "VALIDATION_ERROR"),
    (NotFound, "NOT_FOUND"),
    (Forbidden, "FORBIDDEN"),
    (Conflict, "CONFLICT"),
    (AgentFault, "CONFLICT"),
    (Internal, "INTERNAL_ERROR"),
)

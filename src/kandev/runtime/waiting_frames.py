"""The reports of a journal that wait for their actor: in order, and bounded in number and size.

Not here: what an actor does with them.
"""

from collections import deque
from typing import Final

from kandev.core.inputs import Frame, Input

FRAMES_WAITING: Final = 64
"""Then the journal's reader waits, and agentctl with it."""
BYTES_WAITING: Final = 4 << 20
"""The same for what they hold; one alone may be as large as an agent's longest line."""


class WaitingFrames:
    """First in, first out."""

    def __init__(self) -> None:
        self._waiting: deque[Input] = deque()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether the next one has to wait."""
        return len(self._waiting) >= FRAMES_WAITING or self._bytes >= BYTES_WAITING

    def put(self, given: Input) -> None:
        """Behind the others."""
        self._waiting.append(given)
        self._bytes += weight(given)

    def put_back(self, given: Input) -> None:
        """Before the others."""
        self._waiting.appendleft(given)
        self._bytes += weight(given)

    def take(self) -> Input:
        """The oldest."""
        given = self._waiting.popleft()
        self._bytes -= weight(given)
        return given

    def clear(self) -> None:
        """None waits any more."""
        self._waiting.clear()
        self._bytes = 0


def weight(given: Input) -> int:
    """Bytes that it took in its journal; 0 for what came by no journal."""
    return given.size if isinstance(given, Frame) else 0

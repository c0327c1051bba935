"""From what an instance has to tell to frames in its journal.

Adds number, identity and time; waits for room. When an agent has to wait because the disk takes no frames it
says so, in the log and as a notice. Not here: which turn a frame belongs to.
"""

import logging
import time
from datetime import UTC, datetime
from typing import Any

from kandev.agentctl.attribution import NO_TURN, Identity
from kandev.agentctl.journal import Journal
from kandev.wire import agentctl as wire

ENDS = (wire.TurnEnded, wire.ProcessExited, wire.PromptTaken)
HELD_BYTES = 8 * 1024 * 1024
"""So much may wait in memory for a disk that takes nothing, where an agent cannot be made to wait: it is
ending, or causes remarks by the thousand. What comes then is not kept, but for what an end needs."""
TOLD_AGAIN_S = 60.0
"""A disk that takes a little now and then is not told of each time."""

log = logging.getLogger(__name__)


class Record:
    """One instance's way to its journal."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._trouble = False
        self._told_at = float("-inf")
        self._left_out = 0
        self._closed = False

    async def write(self, frame_type: type[wire.Frame], identity: Identity = NO_TURN, **members: Any) -> None:
        """Wait for room, append."""
        await self.journal.room()
        self.put(frame_type, identity, **members)

    def put(self, frame_type: type[wire.Frame], identity: Identity = NO_TURN, **members: Any) -> None:
        """Append at once, whatever the room."""
        if self._closed:
            return
        if not issubclass(frame_type, ENDS) and self.journal.waiting_bytes > HELD_BYTES:
            self._left_out += 1
            return
        self._closed = frame_type is wire.ProcessExited
        if self._closed and self._left_out:
            left = f"{self._left_out} reports of the agent could not be kept: the disk took nothing."
            self._append(wire.Notice, NO_TURN, {"text": left})
        self._append(frame_type, identity, members)
        self._look_at_the_disk()

    def _append(self, frame_type: type[wire.Frame], identity: Identity, members: dict[str, Any]) -> None:
        def make(seq: int) -> wire.Frame:
            return frame_type(
                seq=seq,
                journal_id=self.journal.meta.journal_id,
                execution_id=self.journal.meta.execution_id,
                at=_now(),
                prompt_generation=identity.generation,
                own_turn_id=identity.own_turn_id,
                **members,
            )

        self.journal.write(make)

    def _look_at_the_disk(self) -> None:
        trouble, name = self.journal.trouble, self.journal.meta.execution_id
        if self._trouble and trouble is None:
            log.info("the journal of %s is written again", name)
        self._trouble = trouble is not None
        if trouble is None or self._closed or time.monotonic() - self._told_at < TOLD_AGAIN_S:
            return
        if self.journal.crowded:
            self._told_at = time.monotonic()
            why = trouble.strerror or str(trouble)
            log.error("the journal of %s cannot be written, and its agent has to wait: %s", name, why)
            text = (
                f"The agent has to wait: agentctl cannot write its journal ({why}). It goes on by itself "
                "when the disk of Kandev's home takes it."
            )
            self._append(wire.Notice, NO_TURN, {"text": text})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

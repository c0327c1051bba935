"""From what an instance has to tell to frames in its journal.

Adds number, identity and time; waits for room. While the disk takes no frames it says so, in the log and as a
notice. Not here: which turn a frame belongs to.
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
        if (self.journal.trouble is not None) is not self._trouble:
            self._tell_trouble()

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

    def _tell_trouble(self) -> None:
        trouble, name = self.journal.trouble, self.journal.meta.execution_id
        self._trouble = trouble is not None
        if trouble is None:
            log.info("the journal of %s is written again", name)
            return
        if time.monotonic() - self._told_at < TOLD_AGAIN_S:
            return
        self._told_at = time.monotonic()
        why = trouble.strerror or str(trouble)
        log.error("the journal of %s cannot be written, its agent may have to wait: %s", name, why)
        if not self._closed:
            text = (
                f"agentctl cannot write this agent's journal ({why}): the agent may have to wait, and "
                "goes on by itself when the disk of Kandev's home takes it."
            )
            self._append(wire.Notice, NO_TURN, {"text": text})


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

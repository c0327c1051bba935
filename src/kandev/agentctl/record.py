"""From what an instance has to tell to frames in its journal.

Adds number, identity and time; waits for room; flushes where it is asked. When the disk fails it tells the
instance once and from then on keeps only what an end needs. Not here: which turn a frame belongs to.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from kandev.agentctl.attribution import NO_TURN, Identity
from kandev.agentctl.journal import Journal
from kandev.wire import agentctl as wire

ENDS = (wire.TurnEnded, wire.ProcessExited, wire.PromptTaken)
REMARKS = (wire.PermissionResolved, wire.Notice)
REMARKS_KEPT = 100
"""Of those that come when the disk takes nothing any more: they stay in memory, and an agent can cause any
number."""


class Record:
    """`on_failure` is called once, with a sentence, when the journal can no longer be written."""

    def __init__(self, journal: Journal, on_failure: Callable[[str], None]) -> None:
        self.journal = journal
        self.failure: str | None = None
        self._on_failure = on_failure
        self._closed = False
        self._remarks = 0

    async def write(
        self,
        frame_type: type[wire.Frame],
        identity: Identity = NO_TURN,
        *,
        flush: bool = False,
        **members: Any,
    ) -> None:
        """Wait for room, append, flush when asked. Returns also when the disk fails: see `failure`."""
        await self.journal.room()
        self.put(frame_type, identity, **members)
        if flush:
            await self.flush()

    def put(self, frame_type: type[wire.Frame], identity: Identity = NO_TURN, **members: Any) -> None:
        """Append at once, whatever the room."""
        if self._closed or (self.failure is not None and not self._still_kept(frame_type)):
            return
        if self.failure is not None:
            members.pop("data", None)

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
        self._closed = frame_type is wire.ProcessExited
        self._look()

    def _still_kept(self, frame_type: type[wire.Frame]) -> bool:
        if issubclass(frame_type, REMARKS):
            self._remarks += 1
            return self._remarks <= REMARKS_KEPT
        return issubclass(frame_type, ENDS)

    def tell_failure(self) -> None:
        """The last thing before the process's end: why the journal has a gap."""
        self._remarks = 0
        if self.failure is not None:
            self.put(wire.Notice, text=self.failure)

    async def flush(self) -> None:
        await self.journal.sync()
        self._look()

    def _look(self) -> None:
        if self.journal.failed is not None and self.failure is None:
            why = self.journal.failed.strerror or str(self.journal.failed)
            self.failure = (
                f"agentctl cannot write the journal of this execution: {why}. Free the disk, then resume."
            )
            self._on_failure(self.failure)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

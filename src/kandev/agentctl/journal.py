"""The journal of one instance: numbered frames on disk, read from any position, trimmed by
acknowledgement.

One folder holds `meta.json` and segments `<first seq>.jsonl`, one JSON document a line. Frames survive
the death of agentctl. They are not flushed: what only a death of the machine could lose is dropped after its
next boot in any case (`instances.adopt_journals`), and a flush on a slow disk holds up the agent. While the
disk takes no frames they wait in memory, and what makes more of them waits too; they are stored when it takes
them again. Not here: what a frame says, and who may acknowledge.
"""

import asyncio
import contextlib
import itertools
import shutil
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from kandev.agentctl.segments import Segment, SegmentWriter, find_segments, read_lines, repair, write_new
from kandev.wire import agentctl as wire

TAIL_BYTES = 256 * 1024
"""Newest frames kept in memory, so that a reader who keeps up never touches the disk; and so much may wait
for a disk that takes nothing before the agent has to."""
STRETCH_BYTES = 4 * 1024 * 1024
"""At most so much more, for an end that is expected to come soon."""
AGAIN_S = 1.0
"""Between tries on a disk that takes nothing."""
SEGMENT_BYTES = 1024 * 1024
"""A segment is read whole by a reader that is behind, and is the unit of trimming."""


class Meta(msgspec.Struct, kw_only=True):
    """`meta.json`. `boot_id` names the boot of the machine: after another one the newest frames may be
    missing."""

    journal_id: str
    execution_id: str
    session_id: str
    task_id: str
    boot_id: str


class Journal:
    """Frames 1 to `last_seq`, of which those up to `acknowledged_seq` may be gone. `max_bytes` may be on the
    disk without an acknowledgement."""

    def __init__(self, folder: Path, meta: Meta, max_bytes: int) -> None:
        self.meta = meta
        self.last_seq = 0
        self.acknowledged_seq = 0
        self.trouble: OSError | None = None
        """Why the disk takes no frames at present."""
        self.dropped = False
        self._folder = folder
        self._max_bytes = max_bytes
        self._segment_bytes = max(1, min(SEGMENT_BYTES, max_bytes // 8))
        self._segments: list[Segment] = []
        self._writer: SegmentWriter | None = None
        # The newest frames, and all that are neither stored nor acknowledged.
        self._tail: deque[tuple[int, bytes]] = deque()
        self._tail_bytes = 0
        self._stored_seq = 0
        self._again: asyncio.TimerHandle | None = None
        self._lifted = False
        self._more = 0
        self._changed = asyncio.Event()

    @classmethod
    def create(cls, folder: Path, meta: Meta, max_bytes: int) -> "Journal":
        """Raises OSError when the disk does not take it, or the folder exists; nothing is left of it then."""
        folder.mkdir(parents=True)
        try:
            write_new(folder / "meta.json", msgspec.json.encode(meta))
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(folder, meta, max_bytes)

    @classmethod
    def reopen(cls, folder: Path, max_bytes: int) -> "Journal":
        """The journal that an earlier agentctl left. Raises OSError or msgspec.DecodeError when it cannot
        be read."""
        meta = msgspec.json.decode((folder / "meta.json").read_bytes(), type=Meta)
        journal = cls(folder, meta, max_bytes)
        journal._segments = find_segments(folder)
        if journal._segments:
            with contextlib.suppress(OSError):  # a torn line counts for nothing wherever it stands
                repair(journal._segments[-1])
            journal.acknowledged_seq = journal._segments[0].first - 1
            journal.last_seq = journal._stored_seq = journal._segments[-1].last
        return journal

    # -- writing --------------------------------------------------------------------------------

    @property
    def unacknowledged_bytes(self) -> int:
        """On disk and not yet acknowledged, counted by whole segments."""
        if self.acknowledged_seq >= self.last_seq:
            return 0
        return sum(segment.size for segment in self._segments)

    @property
    def waiting_bytes(self) -> int:
        """In memory only, because the disk does not take them."""
        kept = max(self._stored_seq, self.acknowledged_seq)
        if kept >= self.last_seq:
            return 0
        return sum(len(line) for _, line in self._behind(kept))

    @property
    def crowded(self) -> bool:
        """So much waits for a disk that takes nothing that the agent has to wait."""
        free = self._lifted or self.dropped
        return not free and self.waiting_bytes > TAIL_BYTES + min(self._more, STRETCH_BYTES)

    async def room(self) -> None:
        """Returns when there is room. Waits for an acknowledgement, for a disk that takes frames again, for
        `lift` or `drop`: this wait is the back-pressure."""
        while self.crowded or self._is_full():
            await self.changed()

    def _is_full(self) -> bool:
        free = self._lifted or self.dropped
        return not free and self.unacknowledged_bytes >= self._max_bytes + self._more

    def stretch(self, more: int) -> None:
        """So many bytes beyond the bound from now on (0: none): for an end that is expected to come soon."""
        self._more = more
        self._notify()

    def lift(self) -> None:
        """No bound from now on: the agent is ending, and what its pipe still holds is little."""
        self._lifted = True
        self._notify()

    def write(self, make: Callable[[int], wire.Frame]) -> int:
        """Append the frame that `make` builds for its number. Never waits and never raises for the disk's
        sake: see `trouble`."""
        seq = self.last_seq + 1
        line = msgspec.json.encode(make(seq)) + b"\n"
        self.last_seq = seq
        self._tail.append((seq, line))
        self._tail_bytes += len(line)
        self._store([(seq, line)] if self.trouble is None else None)
        self._trim_tail()
        self._notify()
        return seq

    def _store(self, fresh: list[tuple[int, bytes]] | None = None) -> None:
        """Give the disk what it has not taken yet (`fresh`, where that is known to be all). After a failure
        it is left alone for `AGAIN_S`."""
        if self.dropped or self._again is not None:
            return
        kept = max(self._stored_seq, self.acknowledged_seq)
        try:
            for seq, line in fresh or self._behind(kept):
                self._append(seq, line)
                self._stored_seq = seq
        except OSError as error:
            self.trouble = error
            self._again = asyncio.get_running_loop().call_later(AGAIN_S, self._try_again)
        else:
            self.trouble = None

    def _try_again(self) -> None:
        self._stop_trying()
        self._store()
        self._trim_tail()
        self._notify()

    def _stop_trying(self) -> None:
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def _append(self, seq: int, line: bytes) -> None:
        writer = self._writer
        # Frames that were acknowledged before the disk took them leave a gap: a segment has none.
        if writer is None or not writer.takes(seq) or writer.segment.size >= self._segment_bytes:
            self._close_writer()
            writer = self._writer = SegmentWriter(self._folder, seq)
            self._segments.append(writer.segment)
        writer.append(seq, line)

    def _behind(self, seq: int) -> list[tuple[int, bytes]]:
        """What the tail holds behind `seq`."""
        first = self._tail[0][0] if self._tail else 1
        return list(itertools.islice(self._tail, max(0, seq + 1 - first), None))

    def _trim_tail(self) -> None:
        kept = max(self._stored_seq, self.acknowledged_seq)
        while self._tail_bytes > TAIL_BYTES and len(self._tail) > 1 and self._tail[0][0] <= kept:
            self._tail_bytes -= len(self._tail.popleft()[1])

    # -- reading --------------------------------------------------------------------------------

    def read_from(self, seq: int) -> list[tuple[int, bytes]]:
        """Some frames from `seq` on, or from the oldest that is kept, in order, as `(seq, line)`; empty
        when there is none yet."""
        if seq > self.last_seq:
            return []
        if self._tail and seq >= self._tail[0][0]:
            return self._behind(seq - 1)
        for segment in self._segments:
            if seq <= segment.last:
                return read_lines(segment, seq)
        return list(self._tail)

    async def changed(self) -> None:
        """Returns at the next frame, acknowledgement, try on the disk, `lift`, `drop` or `wake`."""
        await self._changed.wait()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Let every waiter look again."""
        self._notify()

    # -- trimming -------------------------------------------------------------------------------

    def acknowledge(self, seq: int) -> None:
        """Everything up to `seq` is committed elsewhere; segments that hold nothing newer go."""
        seq = min(seq, self.last_seq)
        if seq <= self.acknowledged_seq:
            return
        self.acknowledged_seq = seq
        while len(self._segments) > 1 and self._segments[0].last <= seq:
            gone = self._segments.pop(0)
            with contextlib.suppress(OSError):  # nobody reads it any more
                gone.path.unlink()
        self._trim_tail()
        self._notify()

    def close(self) -> None:
        """Nothing is written any more; a last try for what the disk did not take."""
        if self.trouble is not None:
            self._stop_trying()
            self._store()
            self._stop_trying()
        self._close_writer()

    def _close_writer(self) -> None:
        if self._writer is not None:
            writer, self._writer = self._writer, None
            writer.close()

    def drop(self) -> None:
        """The journal is no longer wanted: its folder goes, its readers are woken."""
        self.dropped = True
        self._stop_trying()
        self._close_writer()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._segments.clear()
        self._notify()

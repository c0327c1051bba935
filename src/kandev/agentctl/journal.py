"""The journal of one instance: numbered frames on disk, read from any position, trimmed by
acknowledgement.

One folder holds `meta.json` and segments `<first seq>.jsonl`, one JSON document a line. Frames survive
the death of agentctl; a flush (`sync`) is for acceptances and ends. When the disk no longer takes frames
the journal goes on in memory, so that the end can still be told. Not here: what a frame says, and who may
acknowledge.
"""

import asyncio
import itertools
import os
import shutil
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from kandev.agentctl.segments import Segment, SegmentWriter, find_segments, read_lines, repair, write_whole
from kandev.wire import agentctl as wire

TAIL_BYTES = 256 * 1024
"""Newest frames kept in memory, so that a reader who keeps up never touches the disk."""
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


@dataclass(frozen=True)
class Limits:
    """Unacknowledged bytes on disk, and seconds for one flush."""

    max_bytes: int
    sync_s: float


class Journal:
    """Frames 1 to `last_seq`, of which those up to `acknowledged_seq` may be gone."""

    def __init__(self, folder: Path, meta: Meta, limits: Limits) -> None:
        self.meta = meta
        self.last_seq = 0
        self.acknowledged_seq = 0
        self.failed: OSError | None = None
        self.dropped = False
        self._folder = folder
        self._limits = limits
        self._segment_bytes = max(1, min(SEGMENT_BYTES, limits.max_bytes // 8))
        self._segments: list[Segment] = []
        self._writer: SegmentWriter | None = None
        self._tail: deque[tuple[int, bytes]] = deque()
        self._tail_bytes = 0
        self._lifted = False
        self._more = 0
        self._changed = asyncio.Event()

    @classmethod
    def create(cls, folder: Path, meta: Meta, limits: Limits) -> "Journal":
        """Raises OSError when the disk does not take it, or the folder exists."""
        folder.mkdir(parents=True)
        write_whole(folder / "meta.json", msgspec.json.encode(meta))
        return cls(folder, meta, limits)

    @classmethod
    def reopen(cls, folder: Path, limits: Limits) -> "Journal":
        """The journal that an earlier agentctl left. Raises OSError or msgspec.DecodeError when it cannot
        be read."""
        meta = msgspec.json.decode((folder / "meta.json").read_bytes(), type=Meta)
        journal = cls(folder, meta, limits)
        journal._segments = find_segments(folder)
        if journal._segments:
            repair(journal._segments[-1])
            journal.acknowledged_seq = journal._segments[0].first - 1
            journal.last_seq = journal._segments[-1].last
        return journal

    # -- writing --------------------------------------------------------------------------------

    @property
    def unacknowledged_bytes(self) -> int:
        """On disk and not yet acknowledged, counted by whole segments."""
        if self.acknowledged_seq >= self.last_seq:
            return 0
        return sum(segment.size for segment in self._segments)

    async def room(self) -> None:
        """Returns when there is room. Waits for an acknowledgement, `lift` or `drop`: this wait is the
        back-pressure."""
        while self.unacknowledged_bytes >= self._limits.max_bytes + self._more and not self._free():
            await self.changed()

    def _free(self) -> bool:
        return self._lifted or self.dropped or self.failed is not None

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
        sake: see `failed`."""
        seq = self.last_seq + 1
        line = msgspec.json.encode(make(seq)) + b"\n"
        if self.failed is None and not self.dropped:
            try:
                self._store(seq, line)
            except OSError as error:
                self.failed = error
        self.last_seq = seq
        self._remember(seq, line)
        self._notify()
        return seq

    def _store(self, seq: int, line: bytes) -> None:
        writer = self._writer
        if writer is None or writer.segment.size >= self._segment_bytes:
            if writer is not None:
                writer.close()
            writer = self._writer = SegmentWriter(self._folder, seq)
            self._segments.append(writer.segment)
        writer.append(seq, line)

    def _remember(self, seq: int, line: bytes) -> None:
        self._tail.append((seq, line))
        self._tail_bytes += len(line)
        while self._tail_bytes > TAIL_BYTES and len(self._tail) > 1 and self.failed is None:
            self._tail_bytes -= len(self._tail.popleft()[1])

    async def sync(self) -> None:
        """What was written is on the disk, or `failed` says why not. Bounded by `Limits.sync_s`."""
        if self.failed is not None or self._writer is None:
            return
        try:
            descriptor = os.dup(self._writer.descriptor)
            async with asyncio.timeout(self._limits.sync_s):
                await asyncio.to_thread(_sync_and_close, descriptor)
        except TimeoutError:
            self.failed = OSError(f"the disk did not answer within {self._limits.sync_s:g} s")
        except OSError as error:
            self.failed = error

    # -- reading --------------------------------------------------------------------------------

    def read_from(self, seq: int) -> list[tuple[int, bytes]]:
        """Some frames from `seq` on, or from the oldest that is kept, in order, as `(seq, line)`; empty
        when there is none yet."""
        oldest = self._segments[0].first if self._segments else self._tail[0][0] if self._tail else 1
        seq = max(seq, oldest)
        if seq > self.last_seq:
            return []
        if self._tail and seq >= self._tail[0][0]:
            return list(itertools.islice(self._tail, seq - self._tail[0][0], None))
        for segment in self._segments:
            if segment.first <= seq <= segment.last:
                return read_lines(segment, seq)
        return []

    async def changed(self) -> None:
        """Returns at the next frame, acknowledgement, `lift`, `drop` or `wake`."""
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
            self._segments.pop(0).path.unlink(missing_ok=True)
        self._notify()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def drop(self) -> None:
        """The journal is no longer wanted: its folder goes, its readers are woken."""
        self.dropped = True
        self.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._segments.clear()
        self._notify()


def _sync_and_close(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

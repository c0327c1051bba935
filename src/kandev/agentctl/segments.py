"""Files of a journal: segments of lines, and small files that are written whole or not at all.

Not here: numbering, limits and acknowledgement (`journal`).
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Segment:
    """A file with the frames `first` to `last`; `size` is what of it counts, in bytes."""

    path: Path
    first: int
    last: int
    size: int


class SegmentWriter:
    """Appends whole lines: a write that fails leaves the file as it was."""

    def __init__(self, folder: Path, first: int) -> None:
        path = folder / f"{first:016d}.jsonl"
        self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.segment = Segment(path, first, first - 1, 0)

    def append(self, seq: int, line: bytes) -> None:
        """Raises OSError (disk full, input/output error)."""
        try:
            write_all(self.descriptor, line)
        except OSError:
            with contextlib.suppress(OSError):
                os.ftruncate(self.descriptor, self.segment.size)
            raise
        self.segment.last = seq
        self.segment.size += len(line)

    def close(self) -> None:
        os.close(self.descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def find_segments(folder: Path) -> list[Segment]:
    """In order; `last` comes from counting lines, so a torn last line does not count."""
    segments = []
    for path in sorted(folder.glob("[0-9]*.jsonl")):
        content = path.read_bytes()
        first = int(path.stem)
        segments.append(Segment(path, first, first + content.count(b"\n") - 1, content.rfind(b"\n") + 1))
    return [segment for segment in segments if segment.size]


def repair(segment: Segment) -> None:
    """Cut a line that was torn by the death of its writer."""
    if segment.path.stat().st_size > segment.size:
        os.truncate(segment.path, segment.size)


def read_lines(segment: Segment, seq: int) -> list[tuple[int, bytes]]:
    """The frames of `segment` from `seq` on."""
    lines = segment.path.read_bytes()[: segment.size].splitlines(keepends=True)
    return [(number, line) for number, line in enumerate(lines, segment.first) if number >= seq]


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file in one step, mode 0600, flushed: a reader sees the old content or the new.

    One writer at a time. What a killed one leaves beside the file is written over by the next."""
    beside = path.with_name(f".{path.name}.new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    beside.replace(path)

"""Files of a journal: segments of lines, and small files that are written whole or not at all.

Not here: numbering, limits and acknowledgement (`journal`).
"""

import os
from dataclasses import dataclass
from pathlib import Path

APPENDING = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC


@dataclass
class Segment:
    """A file with the frames `first` to `last`; `size` is what of it counts, in bytes."""

    path: Path
    first: int
    last: int
    size: int


class SegmentWriter:
    """Appends whole lines: one that fails leaves the file as it was, or nothing more is appended to it."""

    def __init__(self, folder: Path, first: int) -> None:
        path = folder / f"{first:016d}.jsonl"
        self._descriptor = os.open(path, APPENDING, 0o600)
        self._torn = False
        self.segment = Segment(path, first, first - 1, 0)

    def takes(self, seq: int) -> bool:
        """Whether the frame `seq` can be the next one here."""
        return self.segment.last == seq - 1 and not self._torn

    def append(self, seq: int, line: bytes) -> None:
        """Raises OSError (disk full, input/output error)."""
        try:
            write_all(self._descriptor, line)
        except OSError:
            self._torn = True
            os.ftruncate(self._descriptor, self.segment.size)
            self._torn = False
            raise
        self.segment.last = seq
        self.segment.size += len(line)

    def close(self) -> None:
        os.close(self._descriptor)


def append_line(path: Path, line: bytes) -> None:
    """One line more in a small file, mode 0600. Raises OSError, and leaves the file as it was."""
    descriptor = os.open(path, APPENDING, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        try:
            write_all(descriptor, line)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
    finally:
        os.close(descriptor)


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


def write_new(path: Path, content: bytes) -> None:
    """A file that is not there yet, mode 0600. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, content)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: bytes) -> None:
    """Replace the file in one step, mode 0600, flushed: a reader sees the old content or the new, also after
    the death of the machine. Raises OSError and leaves the old one.

    One writer at a time. What a killed one leaves beside the file is written over by the next."""
    beside = path.with_name(f".{path.name}.new")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(descriptor, content)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise

"""Lines in from stdin and out to stdout, for any kind of file behind them. Knows nothing of JSON-RPC.

Input is read on a thread, because a regular file cannot be watched by the event loop; lines may have any
length. Output is in the pipe when `write` returns, so nothing is lost when the process ends, and a reader
that does not read holds the writer up.
"""

from __future__ import annotations

import asyncio
import json
import os
import select
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path

_CHUNK = 1 << 16
_LOGGED = 4000
_EXECUTION = "KANDEV_EXECUTION"  # agentctl marks each agent with its execution


class WireLog:
    """Appends what goes over the wire to a file, for tests that look at exact frames.

    In a folder each process has a file of its own, `<execution>.<pid>.jsonl`, with whole lines, numbered and
    with the time of the machine's monotonic clock, in nanoseconds.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._count: int | None = None
        if path is not None and path.is_dir():
            self._path = path / f"{os.environ.get(_EXECUTION, '')}.{os.getpid()}.jsonl"
            self._count = 0

    def add(self, direction: str, line: bytes) -> None:
        """Append `{"dir", "line"}`. In a file that is shared a line is cut at a few thousand characters; in
        one's own `n` and `at` come before it."""
        if self._path is None:
            return
        if self._count is None:
            record: dict[str, object] = {"dir": direction, "line": _text(line[:_LOGGED])}
        else:
            self._count += 1
            record = {"n": self._count, "at": time.monotonic_ns(), "dir": direction, "line": _text(line)}
        with self._path.open("ab", buffering=0) as file:
            file.write(json.dumps(record).encode() + b"\n")


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\n")


class Input:
    """The lines of a file descriptor, in order, as `await next_line()`; None is the end, again and again."""

    def __init__(self, fd: int, log: WireLog) -> None:
        self._fd = fd
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    async def next_line(self) -> bytes | None:
        """The next line without its end, or None when the other side has closed."""
        line = await self._lines.get()
        if line is None:
            self._lines.put_nowait(None)
        else:
            self._log.add("<", line)
        return line

    def _read(self) -> None:
        parts: list[bytes] = []
        while chunk := self._read_chunk():
            head, *rest = chunk.split(b"\n")
            parts.append(head)
            for piece in rest:
                self._hand_over(b"".join(parts))
                parts = [piece]
        if last := b"".join(parts):
            self._hand_over(last)
        self._hand_over(None)

    def _read_chunk(self) -> bytes:
        while True:
            try:
                return os.read(self._fd, _CHUNK)
            except BlockingIOError:
                select.select([self._fd], [], [])
            except OSError:
                return b""

    def _hand_over(self, line: bytes | None) -> None:
        try:
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)
        except RuntimeError:
            return  # the loop has ended: nobody is left to read it


class Output:
    """Whole lines to a file descriptor, one after the other.

    `on_closed` is called once, when nobody reads any more.
    """

    def __init__(self, fd: int, log: WireLog, on_closed: Callable[[], None]) -> None:
        self._fd = fd
        self._log = log
        self._on_closed = on_closed
        self._closed = False
        self._lock = asyncio.Lock()
        mode = os.fstat(fd).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            os.set_blocking(fd, False)

    async def write(self, line: bytes) -> None:
        """Write one line and its end. Returns when the bytes have left the process, or nobody reads them."""
        async with self._lock:
            if self._closed:
                return
            self._log.add(">", line)
            try:
                await self._write_all(line + b"\n")
            except OSError:
                self._closed = True
                self._on_closed()

    async def settle(self, seconds: float) -> None:
        """Let a line that is on its way reach its end, for so many seconds at most."""
        try:
            async with asyncio.timeout(seconds), self._lock:
                pass
        except TimeoutError:
            return

    async def _write_all(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await self._writable()

    async def _writable(self) -> None:
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        loop.add_writer(self._fd, ready.set)
        try:
            await ready.wait()
        finally:
            loop.remove_writer(self._fd)

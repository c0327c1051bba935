"""The three pipes of an agent, without blocking and without losing anything.

Reading is by chunks (a line limit would lose long lines) and only when asked for, so that a reader who waits
makes the agent wait. A write is put into the pipe whole even when its caller goes away. Not here: lines,
protocols.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress

from kandev.agentctl import awake
from kandev.agentctl.failures import WriteFailed

CHUNK = 256 * 1024
"""Bytes taken from a pipe at once."""
FULL_PIPE = 8
"""So many chunks empty any pipe, whose size the system bounds; a process that goes on writing is not
followed."""
TAIL_LINE = 2000
"""Bytes that are kept of a line of stderr."""


class ReadEnd:
    """The reading end of a pipe; one reader at a time. `end` finishes reading once the pipe is empty, though
    a grandchild still holds it open."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd: int | None = fd
        self._loop = asyncio.get_running_loop()
        self._ended = False
        self._rest: deque[bytes] = deque()
        self._waiting: asyncio.Future[None] | None = None

    async def read(self) -> bytes:
        """The next chunk, `b""` at the end."""
        while self._fd is not None:
            chunk = self._take(self._fd)
            if chunk:
                return chunk
            if chunk is not None or self._ended:
                self.close()
                break
            await self._readable(self._fd)
        return self._rest.popleft() if self._rest else b""

    def end(self) -> None:
        """The process that mattered has ended: no waiting for more."""
        self._ended = True
        self._wake()

    def finish(self) -> None:
        """Give the descriptor back; what is in the pipe now can still be read."""
        for _ in range(FULL_PIPE):
            if self._fd is None or not (chunk := self._take(self._fd)):
                break
            self._rest.append(chunk)
        self.close()

    def close(self) -> None:
        """May be called at any time and more than once."""
        if self._fd is not None:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None
        self._wake()

    @staticmethod
    def _take(fd: int) -> bytes | None:
        """What is there now; None: nothing yet, `b""`: the end."""
        try:
            return os.read(fd, CHUNK)
        except BlockingIOError:
            return None

    async def _readable(self, fd: int) -> None:
        self._waiting = self._loop.create_future()
        self._loop.add_reader(fd, self._wake)
        try:
            await self._waiting
        finally:
            self._waiting = None
            if self._fd is not None:
                self._loop.remove_reader(self._fd)

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


class WriteEnd:
    """The writing end of a pipe. Writes go out whole and in order."""

    def __init__(self, fd: int, deadline_s: float) -> None:
        os.set_blocking(fd, False)
        self._fd: int | None = fd
        self._deadline_s = deadline_s
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[memoryview, asyncio.Future[None]]] = deque()
        self._reason = "The agent's input is closed."

    async def write(self, data: bytes) -> None:
        """Returns when all of it is in the pipe. Raises WriteFailed when the pipe is closed, or not emptied
        in time: then it is given up, since half a message may be in it. Cancelling the caller does not tear
        the message."""
        if self._fd is None:
            raise WriteFailed(self._reason)
        written: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append((memoryview(data), written))
        self._pump()
        await awake.wait({written}, self._deadline_s)
        if not written.done():
            self._fail(f"The agent did not read its input for {self._deadline_s:g} seconds.")
        if (error := written.exception()) is not None:
            raise WriteFailed(str(error)) from None

    def close(self) -> None:
        """May be called more than once; what waits to be written fails."""
        self._fail("The agent's input is closed.")

    def _pump(self) -> None:
        while self._fd is not None and self._waiting:
            data, written = self._waiting[0]
            try:
                count = os.write(self._fd, data)
            except BlockingIOError:
                self._loop.add_writer(self._fd, self._pump)
                return
            except OSError:
                self._fail("The agent has closed its input.")
                return
            if count < len(data):
                self._waiting[0] = (data[count:], written)
                continue
            self._waiting.popleft()
            if not written.done():
                written.set_result(None)
        if self._fd is not None:
            self._loop.remove_writer(self._fd)

    def _fail(self, reason: str) -> None:
        if self._fd is not None:
            self._loop.remove_writer(self._fd)
            os.close(self._fd)
            self._fd = None
            self._reason = reason
        while self._waiting:
            _, written = self._waiting.popleft()
            if not written.done():
                written.set_exception(WriteFailed(reason))
                written.exception()  # looked at: its caller may be gone


class Drain:
    """Takes everything out of a pipe as it comes (a full one would block who writes) and hands it to
    `take`."""

    def __init__(self, fd: int, take: Callable[[bytes], None]) -> None:
        os.set_blocking(fd, False)
        self._fd: int | None = fd
        self._take = take
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(fd, self._some)

    def drain(self) -> None:
        """Take what is in the pipe now."""
        for _ in range(FULL_PIPE):
            if not self._some():
                return

    def close(self) -> None:
        """May be called more than once."""
        if self._fd is not None:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = None

    def _some(self) -> bool:
        if self._fd is None:
            return False
        try:
            chunk = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return False
        if not chunk:
            self.close()
            return False
        self._take(chunk)
        return True


class Tail:
    """The last `count` lines of what it is given, each shortened."""

    def __init__(self, count: int) -> None:
        self._lines: deque[bytes] = deque(maxlen=max(count, 1))
        self._partial = b""

    def add(self, chunk: bytes) -> None:
        """Cut anywhere."""
        *whole, rest = (self._partial + chunk).split(b"\n")
        self._lines.extend(line[:TAIL_LINE].rstrip(b"\r") for line in whole)
        self._partial = rest[:TAIL_LINE]

    def lines(self) -> list[str]:
        """Oldest first; an unfinished line counts."""
        kept = [*self._lines, *([self._partial] if self._partial else [])]
        return [line.decode(errors="replace") for line in kept[-(self._lines.maxlen or 1) :]]


def open_pipe() -> tuple[int, int]:
    """Reading and writing end, neither inherited unless given to a child."""
    return os.pipe()


def close_all(*fds: int) -> None:
    """Close descriptors that a launch no longer needs."""
    for fd in fds:
        with suppress(OSError):
            os.close(fd)

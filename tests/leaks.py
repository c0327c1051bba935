"""Finds what a test leaves behind: processes, threads, listening sockets.

`Census` is what exists before a test; `leftovers` says what is there afterwards and was not before. A moment
is granted for what is just ending. Not here: tasks of the loop, which `tests/conftest.py` sees from inside.
Cheap: reads only what is new (a process's environment is read once, when its pid appears).
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

# Seconds for what is just ending; nothing waits when nothing is found.
GRACE = float(os.environ.get("TEST_GRACE_S", "2"))
POLL = 0.01  # seconds between two looks at what is just ending
# Threads that belong to the loop's executor: the loop's owner ends them when it closes the loop, after us.
KNOWN_THREADS = ("asyncio_", "pydevd", "ThreadPoolExecutor-hypothesis")


@dataclass(frozen=True)
class Census:
    """What exists at one moment: pids of the machine, our threads, our open sockets."""

    pids: frozenset[int]
    children: frozenset[int]
    threads: frozenset[threading.Thread]
    sockets: frozenset[str]

    @staticmethod
    def take() -> Census:
        return Census(_pids(), _children(), frozenset(threading.enumerate()), frozenset(_sockets()))


def leftovers(before: Census, mark: str) -> list[str]:
    """Sentences about what is new since `before`, after a moment of grace.

    `mark` is the folder of this run: a process whose KANDEV_HOME lies below it is ours, whoever its parent.
    Processes found are ended (SIGKILL), so that the next test begins clean.
    """
    deadline = time.monotonic() + GRACE
    while True:
        processes = dict(_new_processes(before, mark))
        found = [*processes.values(), *_new_threads(before), *_new_listeners(before)]
        if not found or time.monotonic() > deadline:
            break
        time.sleep(POLL)
    for pid in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pid, 0)
    return found


def _pids() -> frozenset[int]:
    return frozenset(int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - names only, fast


def _children() -> frozenset[int]:
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):  # noqa: PTH208 - names only, fast
        with suppress(OSError):
            found.update(map(int, Path(f"/proc/self/task/{task}/children").read_text().split()))
    return frozenset(found)


def _new_processes(before: Census, mark: str) -> Iterator[tuple[int, str]]:
    children = _children() - before.children
    for pid in sorted((_pids() - before.pids) | children):
        if pid in children or _is_marked(pid, mark):
            yield pid, f"process {pid} ({_command(pid)}) is left behind"


def _is_marked(pid: int, mark: str) -> bool:
    try:
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    prefix = b"KANDEV_HOME=" + os.fsencode(mark)
    return any(entry.startswith(prefix) for entry in environment.split(b"\0"))


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "ended meanwhile"
    return b" ".join(words).decode(errors="replace").strip()[:200] or "ended, but nobody waited for it"


def _new_threads(before: Census) -> Iterator[str]:
    for thread in threading.enumerate():
        if thread not in before.threads and not thread.name.startswith(KNOWN_THREADS):
            yield f"thread {thread.name} is left behind"


def _sockets() -> dict[str, int]:
    """Our open sockets: inode as the kernel names it, and a descriptor of it."""
    found = {}
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - names only, fast
        with suppress(OSError):
            target = os.readlink(f"/proc/self/fd/{name}")  # noqa: PTH115 - called for every descriptor
            if target.startswith("socket:["):
                found[target] = int(name)
    return found


def _new_listeners(before: Census) -> Iterator[str]:
    for inode, descriptor in _sockets().items():
        if inode not in before.sockets:
            with suppress(OSError), socket.socket(fileno=os.dup(descriptor)) as copy:
                if copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    yield f"a socket listening at {copy.getsockname()} is left behind"

"""Which processes an agent has brought into the world, found by a mark in their environment.

A process group does not hold them: agents run their shell commands in sessions of their own. Linux only.
Not for ending an agent in an orderly way: that is the driver's close.
"""

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

POLL_PAUSE_S = 0.01


class Found(NamedTuple):
    """One living process."""

    pid: int
    command: str


def marked(assignment: str) -> list[Found]:
    """The processes whose environment holds the assignment NAME=VALUE. A zombie's environment is empty."""
    wanted = assignment.encode()
    return [
        Found(int(entry.name), _read(entry / "cmdline").replace(b"\0", b" ").decode(errors="replace").strip())
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and wanted in _read(entry / "environ").split(b"\0")
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # The process has just ended.
        return b""


def kill_marked(assignment: str) -> list[Found]:
    """Send SIGKILL to every marked process; returns those that were there."""
    found = marked(assignment)
    for process in found:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    return found


async def wait_until(condition: Callable[[], bool], what: str, deadline_s: float) -> None:
    """Wait for a condition that nothing announces; raises TimeoutError naming `what`."""
    end = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"After {deadline_s} s there was still no sign of: {what}.")
        await asyncio.sleep(POLL_PAUSE_S)

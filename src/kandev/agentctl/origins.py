"""What a process was started with, as far as that says whose it is: marks in its environment, and its brand.

Both stay what they are until it runs another program (execve(2)), which a process that was just forked is
about to do. Of an older one they are read once: a look at all processes of the machine comes with every turn.
Not here: who belongs to whom (`kandev.agentctl.looking`). Format: proc(5), "/proc/pid/environ".
"""

import os
import time
from collections.abc import Collection
from dataclasses import dataclass

from kandev.agentctl.branding import read_brand

PREFIX = b"KANDEV_"
EXECUTION_MARK = "KANDEV_EXECUTION"
HOME_MARK = "KANDEV_HOME"
INCARNATION_MARK = "KANDEV_INCARNATION"
SETTLED_S = 5.0
"""After so long a process has run the program that it was forked for."""
TICKS = os.sysconf("SC_CLK_TCK")

Environment = dict[bytes, bytes]
Key = tuple[int, int]
"""A process: its pid, and its start time in clock ticks since boot."""


@dataclass(frozen=True, slots=True)
class Origin:
    """`marks`: what of its environment is named like ours. `brand` is for a process whose marks say nothing:
    it was given another environment, or that cannot be read."""

    marks: Environment
    brand: int | None


class Origins:
    """Those of the processes of this machine. Safe to use from several threads."""

    def __init__(self) -> None:
        self._known: dict[Key, Origin] = {}

    def of(self, key: Key) -> Origin:
        """Read, or known already."""
        if (known := self._known.get(key)) is not None:
            return known
        origin = read_origin(key[0])
        if time.clock_gettime(time.CLOCK_BOOTTIME) - key[1] / TICKS > SETTLED_S:
            self._known[key] = origin
        return origin

    def forget(self, alive: Collection[Key]) -> None:
        """All but these, when most of what is known is not among them."""
        if len(self._known) > 2 * len(alive):
            known = self._known
            self._known = {key: known[key] for key in alive if key in known}


def read_origin(pid: int) -> Origin:
    """As it is now; says nothing when the process is gone."""
    marks = read_marks(pid)
    return Origin(marks, None if EXECUTION_MARK.encode() in marks else read_brand(pid))


def read_marks(pid: int) -> Environment:
    """Empty when the environment cannot be read (another user's, or gone)."""
    try:
        data = read_file(f"/proc/{pid}/environ")
    except OSError:
        return {}
    pairs = (entry.partition(b"=") for entry in data.split(b"\0") if entry.startswith(PREFIX))
    return {name: value for name, _, value in pairs}


def read_file(path: str) -> bytes:
    """A whole file of /proc. Raises OSError. (`pathlib` takes twice as long, for thousands of them.)"""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        parts = []
        while part := os.read(descriptor, 1 << 16):
            parts.append(part)
        return b"".join(parts)
    finally:
        os.close(descriptor)

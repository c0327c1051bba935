"""What a running program holds: descriptors, threads, children, memory, to be compared before and after.

Not here: what a test itself leaves behind (`leaks`).
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Burden:
    """`descriptors` by kind: `pipe`, `socket`, `anon_inode`, `file`. `children` counts zombies too. `memory`
    is what is resident, in bytes."""

    descriptors: Counter[str]
    threads: int
    children: int
    memory: int

    @staticmethod
    def of(pid: int) -> Burden:
        """As it is now."""
        folder = Path(f"/proc/{pid}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        memory = int(status["VmRSS"].split()[0]) * 1024
        return Burden(_descriptors(folder / "fd"), int(status["Threads"]), _children(folder), memory)


def _descriptors(folder: Path) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for name in os.listdir(folder):  # noqa: PTH208 - names only
        with suppress(OSError):
            target = os.readlink(folder / name)  # noqa: PTH115 - a pipe's name is no path
            kinds["file" if target.startswith("/") else target.partition(":")[0]] += 1
    return kinds


def _children(folder: Path) -> int:
    return sum(len((task / "children").read_text().split()) for task in (folder / "task").iterdir())

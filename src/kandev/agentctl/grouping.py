"""One control group (cgroup v2) for each execution, where the system lets us: then nothing can leave it
unseen.

A help, never a need: without a writable cgroup v2 the marks and the descent of `kandev.agentctl.looking`
decide alone. Format: cgroups(7), and "Control Group v2" of the kernel's documentation (cgroup.procs,
cgroup.kill).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path

PREFIX = "kandev-"


@cache
def own_group() -> Path | None:
    """The folder of our own cgroup v2, wherever it is mounted; None when there is none that we may divide."""
    with suppress(OSError, ValueError, StopIteration):
        entries = Path("/proc/self/mountinfo").read_text().splitlines()
        mount = next(entry for entry in entries if entry.partition(" - ")[2].startswith("cgroup2 "))
        root, point = mount.split()[3:5]
        line = next(
            line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")
        )
        folder = Path(_unescape(point)) / Path(line[3:]).relative_to(_unescape(root))
        if os.access(folder, os.W_OK) and os.access(folder / "cgroup.procs", os.W_OK):
            return folder
    return None


def _unescape(path: str) -> str:
    return path.encode().decode("unicode_escape")


def remove_empty(parent: Path | None) -> None:
    """Groups that an agentctl which was killed left behind. The system keeps those that hold processes."""
    for folder in [] if parent is None else parent.glob(f"{PREFIX}*"):
        with suppress(OSError):
            folder.rmdir()


def folder_of(execution_id: str, home: str, parent: Path) -> Path:
    """Where an execution of a home has its group: a later agentctl finds it by the same name."""
    name = sha256(f"{home}\0{execution_id}".encode()).hexdigest()[:24]
    return parent / f"{PREFIX}{name}"


def pids_in(folder: Path) -> list[int]:
    """Of the group and of groups that were made within it; none when it is not there."""
    found: list[int] = []
    for procs in [folder / "cgroup.procs", *folder.glob("*/**/cgroup.procs")]:
        with suppress(OSError):
            found += [int(word) for word in procs.read_text().split()]
    return found


class Group:
    """The control group of one execution. Every method does nothing when there is none."""

    def __init__(self, execution_id: str, home: str, parent: Path | None) -> None:
        self._parent = parent
        self._folder: Path | None = None
        if parent is None:
            return
        folder = folder_of(execution_id, home, parent)
        with suppress(OSError):
            folder.mkdir(exist_ok=True)
            self._folder = folder

    @contextmanager
    def entered(self) -> Iterator[None]:
        """What is started meanwhile is in the group from its first moment: we go in, start it, and come
        back. (Put into the group afterwards, a quick program would have children outside.) Must not be
        awaited in."""
        inside = _write(self._folder, "cgroup.procs", "0")
        try:
            yield
        finally:
            if inside and not _write(self._parent, "cgroup.procs", "0"):
                self._folder = None  # we are in it ourselves: never to be killed

    def pids(self) -> list[int]:
        """Of the group and of groups that were made within it."""
        return [] if self._folder is None else pids_in(self._folder)

    def kill(self) -> None:
        """SIGKILL to all at one stroke (Linux 5.14 and later)."""
        _write(self._folder, "cgroup.kill", "1")

    def remove(self) -> None:
        """Only an empty one goes."""
        if self._folder is not None:
            with suppress(OSError):
                for folder in sorted(self._folder.glob("*/**"), reverse=True):
                    folder.rmdir()
                self._folder.rmdir()


def _write(folder: Path | None, name: str, text: str) -> bool:
    if folder is None:
        return False
    try:
        (folder / name).write_text(text)
    except OSError:
        return False
    return True

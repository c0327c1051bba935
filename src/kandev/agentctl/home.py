"""agentctl's files: the lock that makes it the only one, where it can be found, and what it must not
forget.

`<home>/agentctl.lock`, `<home>/agentctl.json`, `<home>/agentctl/{epoch,tombstones,journals/…}`. Not here:
what a journal holds (`journal`), and the rules that use epoch and tombstones (`fences`).
"""

import contextlib
import fcntl
import os
import time
import uuid
from pathlib import Path

import msgspec

from kandev.agentctl.segments import append_line, write_whole

KEPT_TOMBSTONES = 10_000
"""Ids are never used again, and a late create comes seconds after its DELETE, not thousands of executions
later."""


LOOKS_S = (0.01, 0.05)
"""Pauses before the lock counts as another agentctl's."""


class HomeFailed(Exception):
    """One sentence: what is wrong with the home and what to do."""


class Info(msgspec.Struct, kw_only=True):
    """`agentctl.json`: the file is 0600, because it holds the token."""

    url: str
    home: str
    pid: int
    start_time: int
    token: str
    version: str
    incarnation: str


class Home:
    """Owns the lock from `__init__` until the process ends. Raises HomeFailed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journals = path / "agentctl" / "journals"
        try:
            self.journals.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.journals.mkdir(mode=0o700, exist_ok=True)
            self._lock = os.open(path / "agentctl.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise self._cannot_be_written(error) from error
        if not self._take():
            os.close(self._lock)
            raise HomeFailed(f"An agentctl runs already in {path}; stop it first, or use another home.")

    def _take(self) -> bool:
        """A backend that looks whether the lock is held has it for a moment."""
        for pause_s in (*LOOKS_S, None):
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                if pause_s is not None:
                    time.sleep(pause_s)
                continue
            return True
        return False

    def close(self) -> None:
        os.close(self._lock)

    # -- where it is found ------------------------------------------------------------------------

    @property
    def info_path(self) -> Path:
        return self.path / "agentctl.json"

    def publish(self, info: Info) -> None:
        """Raises HomeFailed."""
        try:
            write_whole(self.info_path, msgspec.json.encode(info))
        except OSError as error:
            raise self._cannot_be_written(error) from error

    def is_published(self, info: Info) -> bool:
        """Whether the file still says so: somebody may have deleted it, or put an older one there."""
        try:
            return self.info_path.read_bytes() == msgspec.json.encode(info)
        except OSError:
            return False

    def withdraw(self) -> None:
        """Also where it cannot be taken away: a process that is gone is not found by it."""
        with contextlib.suppress(OSError):
            self.info_path.unlink()

    def _cannot_be_written(self, error: OSError) -> HomeFailed:
        return HomeFailed(
            f"The home {self.path} cannot be written ({error.strerror}); "
            "make room or make it writable, or choose another with --home."
        )

    # -- what it must not forget ------------------------------------------------------------------

    def load_epoch(self) -> int:
        path = self.path / "agentctl" / "epoch"
        text = path.read_text() if path.exists() else "0"
        if not text.strip().isdigit():
            raise HomeFailed(f"{path} does not hold a number; delete it when no backend runs.")
        return int(text)

    def save_epoch(self, epoch: int) -> None:
        """Raises OSError."""
        write_whole(self.path / "agentctl" / "epoch", f"{epoch}\n".encode())

    def load_tombstones(self) -> list[str]:
        path = self.path / "agentctl" / "tombstones"
        found = path.read_text().split() if path.exists() else []
        if len(found) > KEPT_TOMBSTONES:
            with contextlib.suppress(OSError):  # too many are no harm
                return self.keep_tombstones(found)
        return found

    def keep_tombstones(self, ids: list[str]) -> list[str]:
        """The newest of them, and no other from now on. Raises OSError."""
        kept = ids[-KEPT_TOMBSTONES:]
        write_whole(self.path / "agentctl" / "tombstones", "".join(f"{id}\n" for id in kept).encode())
        return kept

    def add_tombstone(self, execution_id: str) -> None:
        """It outlives agentctl. Raises OSError."""
        append_line(self.path / "agentctl" / "tombstones", f"{execution_id}\n".encode())


def boot_id() -> str:
    """Names this boot of the machine; a new one each time where the system has no name for it."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else uuid.uuid4().hex


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot: with the pid it is an identity. None: there is
    no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])

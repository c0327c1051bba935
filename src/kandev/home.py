"""The home's lock: one backend at a time, and none while a command changes what a backend relies on; and the
file by which the backend is found.

Not here: making the home and what is set in it (`config`).
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ADDRESS = "backend.json"
"""Where the backend is, which process, and its token: readable by its owner only."""
STOPPED = ("T", "t")
"""In /proc/<pid>/stat: by a signal, by a debugger."""
BACKEND = "backend.lock"
AGENTCTL = "agentctl.lock"
"""Held by agentctl as long as it lives."""


class InUse(Exception):
    """Somebody holds the lock."""


@contextlib.contextmanager
def locked(home: Path, name: str) -> Iterator[None]:
    """Held until the end; a killed process leaves it free. Raises InUse, OSError: also when a link lies
    there, which would give somebody else's file away."""
    descriptor = os.open(home / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        if os.geteuid() == 0 and os.fstat(descriptor).st_nlink == 1:
            # What the administrator's commands make must be of use to the service. What has another name
            # may be somebody else's.
            owner = home.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse from None
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def announced(home: Path, document: dict[str, Any]) -> Iterator[None]:
    """The backend is found by `document` (`url`, `pid`, `token`, `version`) until the end. Raises OSError, at
    the beginning only: at the end the file may be another's, who has taken over, or cannot be taken away."""
    path, text = home / ADDRESS, json.dumps(document)
    fresh = home / f".{ADDRESS}.new"
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if path.read_text() == text:
                path.unlink()


def stopped_backend(home: Path) -> int | None:
    """The process of the backend that was announced, when it is stopped: it holds its lock, and is silent."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        pid = int(json.loads((home / ADDRESS).read_bytes())["pid"])
        if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in STOPPED:
            return pid
    return None

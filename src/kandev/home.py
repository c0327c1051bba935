"""The home's lock: one backend at a time, and none while a command changes what a backend relies on.

Not here: making the home and what is set in it (`config`).
"""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

BACKEND = "backend.lock"
AGENTCTL = "agentctl.lock"
"""Held by agentctl as long as it lives."""


class InUse(Exception):
    """Somebody holds the lock."""


@contextlib.contextmanager
def locked(home: Path, name: str) -> Iterator[None]:
    """Held until the end; a killed process leaves it free. Raises InUse, OSError."""
    descriptor = os.open(home / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.geteuid() == 0:
            # What the administrator's commands make must be of use to the service.
            owner = home.stat()
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUse from None
        yield
    finally:
        os.close(descriptor)

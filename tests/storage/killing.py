"""`kill -9` at every step of something that works on files: the steps are what Python's audit events tell.

Each round runs it in a forked process that kills itself at its n-th step. Not here: what has to hold then.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable

STEPS = ("os.", "open", "sqlite3.", "tempfile.")
"""Audit events that begin so: names made and taken away, files opened, databases connected."""
MANY = 2_000


def killed_at_every_step(work: Callable[[], None], lay: Callable[[], None], look: Callable[[], None]) -> int:
    """Before each round `lay`, behind it `look`; ends with the round that nothing killed. Returns how many
    rounds were killed."""
    for step in range(1, MANY):
        lay()
        status = _forked(work, step)
        look()
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, "the work fails by itself"
            return step - 1
        assert os.WTERMSIG(status) == signal.SIGKILL
    raise AssertionError(f"more than {MANY} steps")


def _forked(work: Callable[[], None], step: int) -> int:
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    left = step

    def count(event: str, _arguments: object) -> None:
        nonlocal left
        if event.startswith(STEPS):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    code = 1
    try:
        sys.addaudithook(count)
        work()
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)

"""A process that SIGKILL does not end, for as long as a test wants: its tracer keeps it from going.

The kernel stops a traced process on its way out (ptrace(2), PTRACE_O_TRACEEXIT) until its tracer lets it go.
That is what a process in an uninterruptible wait looks like from outside, without a broken disk.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

PTRACE_DETACH = 17
PTRACE_SEIZE = 0x4206
PTRACE_O_TRACEEXIT = 0x40
SLEEPER = """
import ctypes, pathlib, sys, time
PR_SET_PTRACER, ANY = 0x59616D61, ctypes.c_ulong(-1)
ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANY, 0, 0, 0)
pathlib.Path(sys.argv[1]).write_text("here")
time.sleep(600)
"""


def with_sleeper(note: str, agent: list[str]) -> list[str]:
    """An agent's command that first starts a child that anybody may trace; `note` is written when it may."""
    script = f'"$0" -S -c "$1" {note} held-by-the-test & shift; exec "$@"'
    return ["/bin/sh", "-c", script, sys.executable, SLEEPER, *agent]


def _ptrace(request: int, pid: int, data: int) -> bool:
    call = ctypes.CDLL(None, use_errno=True).ptrace
    call.restype = ctypes.c_long
    call.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return int(call(request, pid, None, data)) == 0


@contextmanager
def kept_alive(pid: int) -> Iterator[None]:
    """Nothing ends this process inside the block; behind it, what was sent to it does. Skips the test where
    nobody may trace. Enter and leave it on the same thread."""
    if not _ptrace(PTRACE_SEIZE, pid, PTRACE_O_TRACEEXIT):
        pytest.skip("this machine lets no test trace a process")
    try:
        yield
    finally:
        _ptrace(PTRACE_DETACH, pid, 0)

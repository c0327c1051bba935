"""Starts child processes and learns how they ended, without threads and without a child watcher.

Every process that agentctl starts begins here, in a session of its own (no terminal to ask at, no signals
meant for agentctl), and is watched by a pidfd. asyncio's own subprocesses are not used: their `wait` can
hang while a grandchild holds a pipe. Not here: pipes, ownership of whole trees.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from kandev.agentctl.branding import brand_of, branding
from kandev.agentctl.failures import StartFailed
from kandev.agentctl.looking import children_of, read_stat
from kandev.agentctl.origins import EXECUTION_MARK, HOME_MARK

PR_SET_CHILD_SUBREAPER = 36
"""linux/prctl.h"""

_watched: dict[int, "Child"] = {}
_adopting: set[int] = set()
"""This program's pid once it adopts the orphans of its descendants (the pid, so that a fork does not inherit
it)."""


class Child:
    """A process that we started. Its exit code is kept until somebody asks."""

    def __init__(self, popen: "subprocess.Popen[bytes]") -> None:
        self.pid = popen.pid
        stat = read_stat(popen.pid)
        self.start_time = stat.start_time if stat is not None else 0
        self.code: int | None = None
        """As `exited` returns it; None while it runs."""
        self._popen = popen
        self._loop = asyncio.get_running_loop()
        self._exit: asyncio.Future[int | None] = self._loop.create_future()
        self._pidfd = os.pidfd_open(popen.pid)
        _watched[popen.pid] = self
        self._loop.add_reader(self._pidfd, self._ended)

    @property
    def running(self) -> bool:
        """False once the exit has been seen."""
        return not self._exit.done()

    async def exited(self) -> int | None:
        """Exit code, negative for a signal; None when it could not be learned. May be awaited many times."""
        return await asyncio.shield(self._exit)

    def send(self, signum: signal.Signals) -> None:
        """To this very process; nothing when it has ended."""
        if self.running:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signum)

    def _ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        _watched.pop(self.pid, None)
        with contextlib.suppress(ChildProcessError):  # reaped by somebody else: the code is lost
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._popen.returncode = self.code or 0
        if not self._exit.done():
            self._exit.set_result(self.code)


def launch(
    command: Sequence[str],
    cwd: str,
    environment: Mapping[str, str],
    *,
    stdin: int | IO[bytes],
    stdout: int | IO[bytes],
    stderr: int | IO[bytes],
) -> Child:
    """Start a command, branded for the execution that its environment is marked with. Raises StartFailed
    with one sentence. Call on the event loop's thread: nothing may reap the child before it is watched."""
    if not command or not command[0]:
        raise StartFailed("The command is empty.")
    if not Path(cwd).is_dir():
        raise StartFailed(f"The working directory {cwd} does not exist.")
    try:
        with branding(_brand(environment)):
            popen = subprocess.Popen(
                list(command),
                cwd=cwd,
                env=dict(environment),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        raise StartFailed(_why(command[0], error)) from None
    adopt_orphans()
    return Child(popen)


def _brand(environment: Mapping[str, str]) -> int | None:
    execution_id = environment.get(EXECUTION_MARK)
    return None if execution_id is None else brand_of(environment.get(HOME_MARK, ""), execution_id)


def _why(name: str, error: OSError | ValueError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"The command {name} was not found."
    if isinstance(error, PermissionError):
        return f"The command {name} is not executable."
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return f"The command {name} could not be started: {reason}."


def become_subreaper() -> None:
    """From now on orphans among our descendants become our children, so that they can be found and reaped.
    Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    _adopting.add(os.getpid())


def adopts_orphans() -> bool:
    """Whether this program became a subreaper."""
    return os.getpid() in _adopting


def watched_children() -> list[int]:
    """The pids that we started and that have not ended."""
    return list(_watched)


def adopt_orphans() -> None:
    """Reap adopted orphans as they end, while this event loop runs. Nothing unless we are a subreaper."""
    if adopts_orphans():
        with contextlib.suppress(
            ValueError, RuntimeError
        ):  # not the main thread: `reap_orphans` at each look
            asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, reap_orphans)


def reap_orphans() -> None:
    """Take note of the end of children that we did not start; those that we did start keep their exit
    code."""
    if not adopts_orphans():
        return
    for pid in children_of(os.getpid()):
        if pid not in _watched:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)

"""The agentctl of this machine: found again, or started on demand, so that it outlives the backend.

One per home: `agentctl.json` says where and of which home, pid and start time say whether it still lives,
agentctl's own lock proves that it is no file which somebody left, and keeps a second one away. Not here:
requests to it (`client`).
"""

import asyncio
import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from kandev.ports.execution import Unreachable


class Info(msgspec.Struct, kw_only=True):
    """What of `agentctl.json` the backend needs."""

    url: str
    home: str
    pid: int
    start_time: int
    token: str
    incarnation: str


class Sidecar:
    """`environment` is agentctl's whole environment; `command` runs it."""

    def __init__(
        self, home: Path, environment: Mapping[str, str], command: tuple[str, ...] | None = None
    ) -> None:
        self._home = home
        self._environment = dict(environment)
        self._command = command or (sys.executable, "-m", "kandev", "agentctl")
        self._starting = asyncio.Lock()
        self._children: list[subprocess.Popen[bytes]] = []
        self._proven: Info | None = None

    def find(self) -> Info | None:
        """The agentctl of this home that lives; None when there is none, or its file cannot be believed.
        Raises Unreachable when nobody can tell."""
        self._reap()
        try:
            info = msgspec.json.decode((self._home / "agentctl.json").read_bytes(), type=Info)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
        except OSError as error:
            raise _cannot_look(error) from error
        if not self.lives(info):
            return None
        if info != self._proven:
            if not (self._is_of_home(info) and self._is_held()):
                return None
            self._proven = info
        return info

    def _is_of_home(self, info: Info) -> bool:
        """The file may be in a copy of the home; and a home has several spellings."""
        with contextlib.suppress(OSError, ValueError):
            return Path(info.home).samefile(self._home)
        return False

    def _is_held(self) -> bool:
        """Some agentctl holds the home's lock. Asked once for each that is found, not while one starts.
        Raises Unreachable when nobody can tell."""
        try:
            with (self._home / "agentctl.lock").open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        except OSError as error:
            raise _cannot_look(error) from error
        return False

    def lives(self, info: Info) -> bool:
        """Raises Unreachable when nobody can tell."""
        self._reap()
        return _start_time(info.pid) == info.start_time

    def _reap(self) -> None:
        self._children = [child for child in self._children if child.poll() is None]

    async def ensure(self, deadline: float) -> Info:
        """Find it or start it, in `deadline` seconds; callers side by side start one. Raises Unreachable."""
        try:
            async with asyncio.timeout(deadline), self._starting:
                return self.find() or await self._start()
        except TimeoutError as error:
            raise Unreachable(f"agentctl did not start within {deadline:g} s; see {self._log}.") from error

    async def end(self, deadline: float) -> None:
        """SIGTERM, and wait until it is gone, at most `deadline` seconds. Also waits for one that we started
        and that is ending by itself."""
        info = self.find()
        try:
            async with asyncio.timeout(deadline):
                if info is not None:
                    await _exit_of(info.pid, lambda: self.lives(info))
                for child in self._children:
                    await _exit_of(child.pid, lambda: False)
        except TimeoutError:
            return
        finally:
            self._reap()

    @property
    def _log(self) -> Path:
        return self._home / "agentctl.log"

    async def _start(self) -> Info:
        child = self._spawn()
        self._children.append(child)
        try:
            await self._ready_line(child)
        except BaseException:
            child.kill()
            await asyncio.to_thread(child.wait)
            raise
        if (info := self.find()) is None:
            raise Unreachable(f"agentctl ended as soon as it had started; see {self._log}.")
        return info

    def _spawn(self) -> subprocess.Popen[bytes]:
        arguments = [*self._command, "--home", str(self._home), "--host", "127.0.0.1", "--port", "0"]
        try:
            self._home.mkdir(parents=True, exist_ok=True)
            with open(self._log, "ab", opener=_private) as log:
                # Its own session: a Ctrl-C in the backend's terminal is not for it.
                return subprocess.Popen(
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    env=self._environment,
                    start_new_session=True,
                )
        except OSError as error:
            raise Unreachable(f"agentctl could not be started: {error}.") from error

    async def _ready_line(self, child: subprocess.Popen[bytes]) -> None:
        """Returns at its first line. A second agentctl that lost the race ends instead: then the first
        one is ours."""
        assert child.stdout is not None  # noqa: S101 - Popen was asked for a pipe
        reading = asyncio.ensure_future(asyncio.to_thread(child.stdout.readline))
        try:
            line = await asyncio.shield(reading)
        except asyncio.CancelledError:
            child.kill()
            await asyncio.wait({reading})
            raise
        finally:
            child.stdout.close()
        failure = _failure(line)
        if line and failure is None:
            return
        child.kill()
        await asyncio.to_thread(child.wait)
        if self.find() is None:
            raise Unreachable(failure or f"agentctl did not start; see the end of {self._log}.")


def _failure(line: bytes) -> str | None:
    """The sentence with which an agentctl that could not start ended."""
    try:
        said: object = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    return str(said.get("error")) if isinstance(said, dict) and said.get("event") == "failed" else None


async def _exit_of(pid: int, may_be_ended: Callable[[], bool]) -> None:
    """Waits until the process is gone; sends it SIGTERM first when it may be ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    gone = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, gone.set)
    try:
        if may_be_ended():  # The pidfd is of this process, and not of one that took its number.
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        await gone.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _start_time(pid: int) -> int | None:
    """In clock ticks since boot; None for a process that is gone or a zombie. Raises Unreachable when nobody
    can tell: what cannot be looked at is not gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    except OSError as error:
        raise _cannot_look(error) from error
    return None if fields[0] in ("Z", "X") else int(fields[19])


def _cannot_look(error: OSError) -> Unreachable:
    return Unreachable(f"agentctl cannot be looked for: {error.strerror or error}.")


def _private(path: str, flags: int) -> int:
    """The log may name what agents do: readable by its owner only."""
    return os.open(path, flags, 0o600)


def environment_for(home: Path, inherited: Mapping[str, str] = os.environ) -> dict[str, str]:
    """agentctl's environment: ours without the backend's own settings and secrets, with the home."""
    kept = {
        name: value
        for name, value in inherited.items()
        if not name.startswith("KANDEV_") or name.startswith("KANDEV_AGENTCTL_") or name == "KANDEV_LOG_LEVEL"
    }
    return {**kept, "KANDEV_HOME": str(home)}

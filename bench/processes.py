"""Processes seen from outside: whose they are, what they hold in memory, when they end, whether any is
left.

A process belongs to a run when `KANDEV_HOME` in its environment lies below the run's folder, whoever its
parent is. Not here: starting them (`program`, `driver`).
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from asyncio.subprocess import Process
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

MARK = "KANDEV_HOME"
SESSION_MARK = "KANDEV_EXECUTION"
GRACE_S = 5.0
POLL_S = 0.05
SOURCE = Path(__file__).resolve().parent.parent


def clean_environment(home: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without Kandev's settings; `home` is both the mark and the folder of whoever runs."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("KANDEV_", "MOCK_AGENT_", "XDG_"))}
    return {
        **kept,
        MARK: str(home),
        "HOME": str(home),
        "PYTHONPATH": str(SOURCE / "src"),
        **(more or {}),
    }


def pids() -> Iterator[int]:
    """Every process of the machine."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208 - names only, fast


def environment_of(pid: int) -> dict[str, str]:
    """What it was started with; empty when it is gone or not ours to see."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return {}
    return dict(word.split("=", 1) for word in words if "=" in word)


def alive(pid: int) -> bool:
    """It exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def of_run(folder: Path) -> list[int]:
    """Every live process of the run, ourselves left out."""
    below = str(folder)
    found = (pid for pid in pids() if environment_of(pid).get(MARK, "").startswith(below))
    return [pid for pid in found if pid != os.getpid() and alive(pid)]


def of_session(session_id: str) -> list[int]:
    """The processes that carry the mark of one of the session's executions."""
    wanted = f"{session_id}."
    return [pid for pid in pids() if environment_of(pid).get(SESSION_MARK, "").startswith(wanted)]


def command_of(pid: int) -> str:
    """Its command line."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return "(gone)"


def end_all(folder: Path) -> list[str]:
    """What of the run was still there, named, and now is not. Blocks a moment for what is just ending."""
    deadline = time.monotonic() + GRACE_S
    while (left := of_run(folder)) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    named = [f"{pid} {command_of(pid)}" for pid in left]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while of_run(folder) and time.monotonic() < deadline + GRACE_S:
        time.sleep(POLL_S)
    return named


def megabytes(pid: int) -> float:
    """Its memory (RSS): what it shares counts in full, so that nothing else that runs changes it."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"the kernel tells nothing of the memory of process {pid}")


def cpu_seconds(pid: int) -> float:
    """What it has used of the processors so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def ended(process: Process) -> None:
    """Killed, unless it has ended by itself, and awaited."""
    # Not by the process's own method: that looks for the exit code, behind the back of who waits for it.
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    async with asyncio.timeout(GRACE_S):
        await process.wait()


async def end_of(pid: int) -> float:
    """Waits until it is gone; the time (`time.monotonic`) at which this was seen."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return time.monotonic()
    loop = asyncio.get_running_loop()
    gone: asyncio.Future[float] = loop.create_future()

    def seen() -> None:
        loop.remove_reader(descriptor)
        if not gone.done():
            gone.set_result(time.monotonic())

    loop.add_reader(descriptor, seen)
    try:
        return await gone
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)

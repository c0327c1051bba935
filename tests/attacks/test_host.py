"""A host in trouble: no descriptors left, a log that cannot be written, secrets in failures."""

import asyncio
import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy.exc import IntegrityError

from kandev.agentctl import looking
from kandev.agentctl.adapters.base import StartFailed
from kandev.agentctl.fences import Fences
from kandev.agentctl.home import Home
from kandev.agentctl.instances import Instances
from kandev.agentctl.process import spawn
from kandev.agentctl.programs import Programs
from kandev.agentctl.refusals import Refused
from kandev.agentctl.settings import Settings
from kandev.storage.sql.engine import connect, connect_memory
from kandev.wire.agentctl import CreateInstance

LOGGING = """
import structlog
from kandev.logs import log_to_stderr
log_to_stderr("info")
structlog.get_logger().error("nobody can read this")
print("goes on", flush=True)
"""


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count


@pytest.mark.parametrize("left", range(6))
async def test_a_launch_without_descriptors_says_so_and_leaks_none(left: int, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = _descriptors()
    highest = max(int(name) for name in os.listdir("/proc/self/fd"))  # noqa: PTH208 - names only
    fillers = [os.open(os.devnull, os.O_RDONLY) for _ in range(highest + 1 - before)]
    full = _descriptors() - 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (full + left, hard))
    try:
        with pytest.raises(StartFailed, match="Too many open files"):
            await spawn("e.1", ["true"], str(tmp_path), {"KANDEV_HOME": str(tmp_path)}, Settings())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)
    assert _descriptors() == before


def test_a_log_that_cannot_be_written_stops_nothing() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", LOGGING],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            check=False,
            timeout=30,
        )
    assert done.stdout == "goes on\n"


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_failure_of_the_database_does_not_repeat_what_was_to_be_stored(
    on_disk: bool, tmp_path: Path
) -> None:
    connection = connect(tmp_path / "x.db", busy_s=1, writing=True) if on_disk else connect_memory()
    with connection:
        connection.exec_driver_sql("CREATE TABLE t (a TEXT UNIQUE)")
        connection.exec_driver_sql("INSERT INTO t VALUES (?)", ("a secret",))
        with pytest.raises(IntegrityError) as failed:
            connection.exec_driver_sql("INSERT INTO t VALUES (?)", ("a secret",))
    assert "a secret" not in str(failed.value)


@pytest.mark.field("D19")
async def test_a_process_is_not_called_gone_because_nobody_could_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"PATH": os.environ["PATH"], "KANDEV_HOME": str(tmp_path)}
    process = await spawn("e.1", ["sleep", "300"], str(tmp_path), environment, Settings())

    def none_left(path: str) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), path)

    try:
        with monkeypatch.context() as patch, pytest.raises(OSError, match="Too many open files"):
            patch.setattr(looking, "read_file", none_left)
            process.look()
    finally:
        assert await process.end(force=True) == []


async def test_an_execution_ends_although_no_descriptor_is_left_to_flush_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(_: int) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    home = Home(tmp_path)
    marks = {"KANDEV_HOME": str(tmp_path), "KANDEV_INCARNATION": "now"}
    instances = Instances(home, Settings(), Programs(marks), Fences(home))
    asked = CreateInstance(
        execution_id="e.1", session_id="s", task_id="t", protocol="acp", command=["false"], cwd="/"
    )
    with monkeypatch.context() as patch:
        patch.setattr(os, "dup", none_left)
        async with asyncio.timeout(20):
            with pytest.raises(Refused):
                await instances.create(asked)
            assert (await instances.stop("e.1", force=True)).survivors == []
    await instances.close()
    home.close()

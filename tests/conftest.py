"""What holds for every test: a home of its own, loopback only, and nothing left behind.

Not here: fixtures of one area; they stand in the conftest of their folder.
"""

from __future__ import annotations

import asyncio
import inspect
import ipaddress
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.leaks import Census, leftovers

pytest_plugins = ["tests.manifest_plugin"]

REAL_HOME = Path(os.environ.get("HOME") or "/nonexistent")
# What could lead a test out of its folder, or make it depend on the machine it runs on.
FOREIGN_VARIABLES = ("KANDEV_", "XDG_", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG")
LOOP_ROUNDS = 20  # turns of the loop that a cancelled task may take to end


def _is_local(family: int, address: Any) -> bool:
    if family not in (socket.AF_INET, socket.AF_INET6):
        return True
    host = str(address[0])
    if host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _guarded(connect: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def guarded(self: socket.socket, address: Any) -> Any:
        if not _is_local(self.family, address):
            raise PermissionError(f"Tests use loopback only; this one wanted to reach {address!r}.")
        return connect(self, address)

    return guarded


@pytest.fixture(autouse=True, scope="session")
def loopback_only() -> Iterator[None]:
    """Refuse connections that leave this machine, in every test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", _guarded(socket.socket.connect))
        patch.setattr(socket.socket, "connect_ex", _guarded(socket.socket.connect_ex))
        yield


@pytest.fixture(autouse=True, scope="session")
def real_home_untouched() -> Iterator[None]:
    """Fail the run when a test made Kandev's default folder in the home of who runs the tests."""
    default = REAL_HOME / ".kandev"
    existed = default.exists()
    yield
    if not existed and default.exists():
        pytest.fail(f"A test wrote into the real home: {default} did not exist before.")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of this run; every test's own folders lie below it."""
    return tmp_path_factory.getbasetemp().resolve()


@pytest.fixture(autouse=True)
def nothing_left_behind(
    request: pytest.FixtureRequest, run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Give the test a home of its own; fail it when a process, thread, listening socket or task survives.

    Set up before every other fixture of the test, so it looks when all of them have cleaned up.
    """
    for name in [name for name in os.environ if name.startswith(FOREIGN_VARIABLES)]:
        monkeypatch.delenv(name)
    home = run_folder / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "0")
    before = Census.take()
    if inspect.iscoroutinefunction(getattr(request.node, "obj", None)):
        request.getfixturevalue("no_task_left_behind")
    yield
    if found := leftovers(before, str(run_folder)):
        pytest.fail("After this test " + "; ".join(found) + ".")


@pytest.fixture
async def no_task_left_behind() -> AsyncIterator[None]:
    """Fail an async test when a task is pending on its loop after its fixtures have cleaned up."""
    before = asyncio.all_tasks()
    yield
    current = asyncio.current_task()
    for _ in range(LOOP_ROUNDS):
        if not asyncio.all_tasks() - before - {current}:
            return
        await asyncio.sleep(0)
    left = asyncio.all_tasks() - before - {current}
    if not left:
        return
    names = ", ".join(sorted(repr(task.get_coro()) for task in left))
    for task in left:
        task.cancel()
    pytest.fail(f"After this test these tasks are left behind: {names}.")

"""Which agentctl is ours: the one that holds this home's lock, whatever a left or changed file says."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kandev.agentctl.looking import find_marked, read_stat
from kandev.execution.local import LocalAgents
from kandev.execution.sidecar import Sidecar, environment_for
from kandev.ports.execution import Unreachable
from tests.agentctl.contract.worlds import (
    SETTINGS,
    SOON,
    SOURCES,
    Real,
    eventually,
    settings_environment,
    spec,
    start,
    turn,
)
from tests.fakes.tools import FakeTools

COMMAND = (sys.executable, "-m", "kandev.agentctl")

pytestmark = pytest.mark.proves("SURVIVE-identity")


@pytest.fixture
async def real(tmp_path: Path) -> AsyncIterator[Real]:
    world = Real(tmp_path)
    yield world
    await world.close()


def sidecar(home: Path) -> Sidecar:
    """As the next backend makes it."""
    environment = {**environment_for(home), **settings_environment(SETTINGS), "PYTHONPATH": str(SOURCES)}
    return Sidecar(home, environment, COMMAND)


@asynccontextmanager
async def ended(one: Sidecar) -> AsyncIterator[Sidecar]:
    """What it starts is ended behind the block."""
    try:
        yield one
    finally:
        await one.end(SOON)


def note(home: Path) -> Path:
    return home / "agentctl.json"


def change(folder: Path, **members: object) -> None:
    """Another hand writes into the file."""
    document = json.loads(note(folder).read_text())
    note(folder).write_text(json.dumps(document | members))


def start_time(pid: int) -> int:
    stat = read_stat(pid)
    assert stat is not None
    return stat.start_time


class Stranger:
    """A program of somebody else that listens, with its identity as a left file would name it."""

    def __init__(self) -> None:
        self.asked = 0
        self.url = ""
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> "Stranger":
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        writer.close()


async def test_a_file_that_was_left_by_a_dead_one_is_not_believed_though_its_pid_lives_again(
    tmp_path: Path,
) -> None:
    """Same pid and same start time, as after a new boot of the machine."""
    with subprocess.Popen(["sleep", "600"]) as bystander:
        async with Stranger() as stranger, ended(sidecar(tmp_path)) as ours:
            left = {
                "url": stranger.url,
                "home": str(tmp_path),
                "pid": bystander.pid,
                "start_time": start_time(bystander.pid),
                "token": "secret",
                "version": "0",
                "incarnation": "old",
            }
            note(tmp_path).write_text(json.dumps(left))
            assert ours.find() is None
            found = await ours.ensure(SOON)
            assert found.pid != bystander.pid
            assert stranger.asked == 0, "nobody's token is told to a stranger"
            assert bystander.poll() is None
        bystander.kill()


async def test_a_pid_that_was_given_to_another_process_is_not_believed(real: Real) -> None:
    info = await real.sidecar.ensure(SOON)
    with subprocess.Popen(["sleep", "600"]) as bystander:
        change(real.home, pid=bystander.pid)
        assert sidecar(real.home).find() is None
        assert bystander.poll() is None
        bystander.kill()
    await eventually(lambda: real.sidecar.find() == info)


async def test_the_agentctl_of_another_home_is_not_ours_though_its_file_was_copied_here(
    real: Real, tmp_path: Path
) -> None:
    await start(real)
    theirs = real.sidecar.find()
    copy = tmp_path / "copy"
    shutil.copytree(real.home, copy)
    async with ended(sidecar(copy)) as ours:
        assert ours.find() is None
        found = await ours.ensure(SOON)
        assert theirs is not None and found.pid != theirs.pid
        assert len(find_marked("e1", str(real.home))) == 1, "an agent of the other home is left alone"
        assert real.sidecar.find() == theirs


@pytest.mark.parametrize(
    "spoil",
    [
        lambda home: note(home).unlink(),
        lambda home: note(home).write_text("{"),
        lambda home: change(home, token="wrong"),
        lambda home: change(home, url="http://127.0.0.1:9"),
        lambda home: change(home, home="/elsewhere"),
    ],
    ids=["deleted", "torn", "wrong token", "wrong address", "another home"],
)
async def test_a_spoilt_file_starts_nothing_beside_the_living_one_which_mends_it(
    real: Real, spoil: Callable[[Path], object]
) -> None:
    await start(real)
    info = real.sidecar.find()
    assert info is not None
    spoil(real.home)
    again = LocalAgents(sidecar(real.home), SOON, FakeTools())
    await again.attach(2)

    async def known() -> list[str]:
        try:
            return [one.execution for one in await again.known(SOON)]
        except Unreachable:
            return []

    async with asyncio.timeout(SOON):
        while await known() != ["e1"]:
            await asyncio.sleep(0.05)
    assert real.sidecar.find() == info
    assert len(find_marked("e1", str(real.home))) == 1
    assert await again.close(stop_agents=True, deadline=SOON) == 0


async def test_a_home_has_one_agentctl_however_its_path_is_written(real: Real, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(real.home, target_is_directory=True)
    info = await real.sidecar.ensure(SOON)
    assert sidecar(link).find() == info


async def test_agents_that_were_started_under_another_spelling_of_the_home_are_ended_too(
    real: Real, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    real.home.mkdir()
    link.symlink_to(real.home, target_is_directory=True)
    first = sidecar(link)
    agents = LocalAgents(first, SOON, FakeTools())
    await agents.attach(1)
    await agents.start(spec(real), SOON)
    assert (await agents.prompt(turn(1), "d1", "stubborn\nsleep 600", SOON)).taken
    info = first.find()
    assert info is not None
    os.kill(info.pid, 9)
    await eventually(lambda: not first.lives(info))
    assert len(find_marked("e1", str(real.home))) == 1
    await real.sidecar.ensure(SOON)
    assert find_marked(None, str(real.home)) == []
    await agents.attach(3)
    await agents.close(stop_agents=True, deadline=SOON)

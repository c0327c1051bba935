"""The program: its first line, its lock, its end, and what it ends of an earlier one."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from kandev.agentctl import main
from kandev.agentctl.grouping import folder_of, own_group
from kandev.agentctl.looking import find_marked
from kandev.execution import client
from kandev.execution.local import LocalAgents
from kandev.execution.sidecar import Sidecar, environment_for
from kandev.ports.execution import LaunchSpec, Unreachable
from tests.agentctl.contract.worlds import (
    SETTINGS,
    SOON,
    SOURCES,
    Real,
    eventually,
    prompt,
    settings_environment,
    start,
)
from tests.fakes.tools import FakeTools

COMMAND = (sys.executable, "-m", "kandev.agentctl")


def environment(home: Path, **more: str) -> dict[str, str]:
    base = {**environment_for(home), **settings_environment(SETTINGS), "PYTHONPATH": str(SOURCES)}
    return {**base, **more}


@contextmanager
def program(home: Path, *arguments: str, **more: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, "--home", str(home), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home, **more),
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SOON)


def test_the_first_line_says_where_it_is_and_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    with program(tmp_path, KANDEV_AGENTCTL_TOKEN="given") as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        assert ready == {"event": "ready", "url": ready["url"], "home": str(tmp_path), "pid": process.pid}
        info = json.loads((tmp_path / "agentctl.json").read_text())
        assert (info["token"], info["url"], info["pid"]) == ("given", ready["url"], process.pid)
        assert stat.S_IMODE((tmp_path / "agentctl.json").stat().st_mode) == 0o600
        assert httpx.get(ready["url"] + "/health", trust_env=False).json()["pid"] == process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(SOON) == 0
    assert not (tmp_path / "agentctl.json").exists()


def test_a_second_one_in_the_same_home_says_so_and_a_killed_one_frees_the_home(tmp_path: Path) -> None:
    with program(tmp_path) as first:
        assert first.stdout is not None
        first.stdout.readline()
        with program(tmp_path) as second:
            _, said = second.communicate(timeout=SOON)
        assert second.returncode == 1
        assert len(said.splitlines()) == 1
        assert "runs already" in said
        first.kill()
        first.wait(SOON)
        with program(tmp_path) as third:
            assert third.stdout is not None
            assert third.stdout.readline()


async def test_it_serves_although_whoever_started_it_died_before_its_first_line(tmp_path: Path) -> None:
    with program(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.close()
        await eventually((tmp_path / "agentctl.json").exists)
        url = json.loads((tmp_path / "agentctl.json").read_text())["url"]
        await eventually(lambda: httpx.get(url + "/health", trust_env=False).status_code == 200)
        process.send_signal(signal.SIGTERM)
        assert process.wait(SOON) == 0
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
        process.stdout = None  # closed by us: nothing of it is left to be read


@pytest.mark.parametrize(
    ("arguments", "more", "names"),
    [
        ((), {"KANDEV_AGENTCTL_LAUNCH_S": "soon"}, "KANDEV_AGENTCTL_LAUNCH_S"),
        (("--port", "99999"), {}, "--port"),
        (("--host", "203.0.113.1"), {}, "203.0.113.1"),
    ],
)
def test_a_wrong_setting_stops_the_start_with_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], more: dict[str, str], names: str
) -> None:
    with program(tmp_path, *arguments, **more) as process:
        _, said = process.communicate(timeout=SOON)
    assert process.returncode == 1
    assert names in said
    assert "Traceback" not in said


def test_a_home_that_is_a_file_stops_the_start_with_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with program(tmp_path / "file") as process:
        _, said = process.communicate(timeout=SOON)
    assert process.returncode == 1
    assert "cannot be written" in said


@pytest.mark.proves("CTL-light")
def test_it_imports_nothing_heavy() -> None:
    script = (
        "import sys, kandev.agentctl.main\n"
        "heavy = {'pydantic', 'sqlalchemy', 'mcp', 'httpx', 'structlog', 'rich', 'alembic'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(SOURCES)},
    )
    assert done.stdout.strip() == "[]"


def test_a_backend_lets_go_of_an_idle_connection_long_before_agentctl_closes_it() -> None:
    """A request that met the close would be lost, and nobody could tell whether it had arrived."""
    assert main.server_config(Starlette()).timeout_keep_alive >= 2 * client.KEPT_S


@pytest.fixture
async def real(tmp_path: Path) -> AsyncIterator[Real]:
    world = Real(tmp_path)
    yield world
    await world.close()


async def test_callers_side_by_side_start_one_agentctl(real: Real) -> None:
    infos = await asyncio.gather(*(real.sidecar.ensure(SOON) for _ in range(5)))
    assert len({info.pid for info in infos}) == 1
    assert len((real.home / "agentctl.log").read_text().split("Started server process")) == 2


@pytest.mark.field("D17", "E01")
async def test_two_backends_that_race_for_it_get_the_same_one(real: Real) -> None:
    other = Sidecar(real.home, environment(real.home), COMMAND)
    first, second = await asyncio.gather(
        real.sidecar.ensure(SOON), other.ensure(SOON), return_exceptions=True
    )
    found = [one for one in (first, second) if not isinstance(one, BaseException)]
    assert found
    assert (await other.ensure(SOON)).pid == (await real.sidecar.ensure(SOON)).pid
    await other.end(SOON)


@pytest.mark.field("D01")
async def test_a_restarted_backend_finds_the_agentctl_and_its_turn_again(real: Real) -> None:
    up = await start(real)
    assert await prompt(real, 1, "sleep 60")
    again = LocalAgents(Sidecar(real.home, environment(real.home), COMMAND), SOON, FakeTools())
    await again.attach(2)
    (running,) = await again.known(SOON)
    assert (running.execution, running.journal, running.state) == ("e1", up.journal, "ready")
    assert await again.close(stop_agents=False, deadline=SOON) == 1


@pytest.mark.proves("CTL-fence-older-incarnation")
@pytest.mark.field("D15", "E09", "E11")
async def test_a_new_agentctl_first_ends_what_a_killed_one_left(real: Real) -> None:
    await start(real)
    assert await prompt(real, 1, "spawn 600\nsleep 600")
    await eventually(lambda: len(find_marked("e1", str(real.home))) >= 2)
    await real.kill_agentctl()
    assert find_marked("e1", str(real.home))
    await real.sidecar.ensure(SOON)
    assert find_marked("e1", str(real.home)) == []
    if (parent := own_group()) is not None:
        assert not folder_of("e1", str(real.home), parent).exists(), "its control group is gone too"


@pytest.mark.field("E11")
async def test_sigterm_ends_all_agents_with_it(real: Real) -> None:
    await asyncio.gather(*(start(real, f"e{number}") for number in range(3)))
    info = real.sidecar.find()
    assert info is not None
    os.kill(info.pid, signal.SIGTERM)
    await eventually(lambda: not real.sidecar.lives(info))
    assert find_marked(None, str(real.home)) == []


@pytest.mark.proves("CTL-orphan")
async def test_a_lonely_agentctl_ends_itself_and_leaves_its_journals(tmp_path: Path) -> None:
    home = tmp_path / "home"
    alone = environment(home, KANDEV_AGENTCTL_ORPHAN_S="0.5")
    sidecar = Sidecar(home, alone, COMMAND)
    agents = LocalAgents(sidecar, SOON, FakeTools())
    await agents.attach(1)
    spec = LaunchSpec(
        execution="e1",
        session_id="s1",
        task_id="t1",
        protocol="acp",
        command=(sys.executable, "-m", "kandev.agentctl.mock_agent"),
        cwd=str(tmp_path),
        env={"PYTHONPATH": str(SOURCES)},
    )
    await agents.start(spec, SOON)
    await eventually(lambda: sidecar.find() is None)
    assert list((home / "agentctl" / "journals" / "e1").glob("*.jsonl"))
    await agents.close(stop_agents=True, deadline=SOON)


async def test_an_agentctl_that_cannot_start_is_unreachable_in_one_sentence(tmp_path: Path) -> None:
    broken = Sidecar(tmp_path, {}, (sys.executable, "-c", "raise SystemExit(1)"))
    with pytest.raises(Unreachable, match="did not start"):
        await broken.ensure(SOON)
    missing = Sidecar(tmp_path, {}, (str(tmp_path / "nothing"),))
    with pytest.raises(Unreachable, match="could not be started"):
        await missing.ensure(SOON)
    hanging = Sidecar(tmp_path, {}, (sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(Unreachable, match=r"within 0\.2 s"):
        await hanging.ensure(0.2)

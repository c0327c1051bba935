"""Control groups: used where the system lets us, never needed."""

import asyncio
from pathlib import Path

import pytest

from kandev.agentctl.adapters.base import StartFailed
from kandev.agentctl.grouping import PREFIX, Group, own_group, remove_empty
from kandev.agentctl.looking import read_stat
from kandev.agentctl.process import spawn
from kandev.agentctl.settings import Settings
from tests.agentctl.process.conftest import Spawn

grouped = pytest.mark.skipif(own_group() is None, reason="this machine has no cgroup v2 that we may divide")
UNBRANDED = "prlimit --rttime=unlimited:unlimited"
FORGETFUL = f"{UNBRANDED} env -i setsid sh -c '(env -i setsid sh -c \"echo \\$\\$; exec sleep 600\" &)'; cat"


@pytest.mark.field("E17")
@grouped
@pytest.mark.proves("SURVIVE-escapees")
async def test_a_process_that_shed_mark_parent_and_session_before_we_looked_is_ended(start: Spawn) -> None:
    process = await start(FORGETFUL)
    async with asyncio.timeout(5):
        pid = int((await process.read()).split()[0])
    assert pid in [found.pid for found in process.look()]
    assert await process.end(force=False) == []
    assert read_stat(pid) is None or not read_stat(pid).alive  # type: ignore[union-attr]


@grouped
async def test_we_are_not_in_the_group_of_an_execution(start: Spawn) -> None:
    process = await start("exec cat")
    assert [found.pid for found in process.look()] == [process.pid]
    assert not [path for path in Path("/proc/self/cgroup").read_text().splitlines() if PREFIX in path]
    with pytest.raises(StartFailed):
        await spawn("e2", ["no-such-command"], "/", {}, Settings())
    assert not [path for path in Path("/proc/self/cgroup").read_text().splitlines() if PREFIX in path]


@pytest.mark.field("E19")
@grouped
async def test_the_group_of_an_execution_is_gone_with_it(start: Spawn) -> None:
    parent = own_group()
    assert parent is not None
    process = await start("exec cat")
    lines = Path(f"/proc/{process.pid}/cgroup").read_text().splitlines()
    (path,) = (line[len("0::") :] for line in lines if line.startswith("0::"))
    folder = parent / Path(path).name
    assert folder.name.startswith(PREFIX)
    assert folder.exists()
    assert await process.end(force=False) == []
    assert not folder.exists()


async def test_without_a_writable_group_everything_is_a_no_op(tmp_path: Path) -> None:
    for parent in (None, tmp_path / "missing"):
        group = Group("execution", "/home", parent)
        with group.entered():
            assert group.pids() == []
        group.kill()
        group.remove()
        assert group.pids() == []
        remove_empty(parent)


async def test_groups_within_the_group_count_and_empty_ones_are_removed(tmp_path: Path) -> None:
    group = Group("execution", "/home", tmp_path)
    (folder,) = tmp_path.glob(f"{PREFIX}*")
    (folder / "inner" / "deeper").mkdir(parents=True)
    (folder / "cgroup.procs").write_text("1\n2\n")
    (folder / "inner" / "deeper" / "cgroup.procs").write_text("3\n")
    assert sorted(group.pids()) == [1, 2, 3]
    (tmp_path / f"{PREFIX}left").mkdir()
    remove_empty(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]

"""The end of an execution: everything that belongs to it is gone, and nothing else."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kandev.agentctl.child import launch, reap_orphans
from kandev.agentctl.ending import end_left, end_marked, send_signal
from kandev.agentctl.looking import read_stat
from kandev.agentctl.process import AgentProcess, find_marked, spawn
from kandev.agentctl.settings import Settings
from kandev.wire import agentctl as wire
from tests.agentctl.process.conftest import Spawn
from tests.burden import Burden

FORGETFUL = "env -i setsid sh -c '(env -i setsid sh -c \"echo \\$\\$; exec sleep 600\" &)'; cat"
"""Its grandchild keeps nothing of what it was started with: no environment, no parent, no session."""
STUBBORN = "trap '' TERM HUP INT; cat; echo deaf; while :; do sleep 600 & wait; done"


async def first_line(process: AgentProcess) -> bytes:
    async with asyncio.timeout(5):
        return (await process.read()).splitlines()[0]


def alive(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is not None and stat.alive


async def test_an_agent_that_ends_with_its_input_is_not_signalled(start: Spawn) -> None:
    process = await start("trap 'exit 99' TERM; cat; exit 5")
    assert await process.end(force=False) == []
    assert await process.exited() == 5


async def test_a_forced_end_does_not_wait_for_the_input(start: Spawn) -> None:
    process = await start("trap 'exit 99' TERM; echo up; cat > /dev/null & wait; wait")
    await first_line(process)
    assert await process.end(force=True) == []
    assert await process.exited() in (99, 0)


@pytest.mark.proves("INV-10", "CTL-delete-survivors")
@pytest.mark.field("E07", "E25")
async def test_an_agent_that_is_deaf_to_everything_is_killed_with_its_children(start: Spawn) -> None:
    process = await start(STUBBORN)
    assert await process.end(force=False) == []
    assert await process.exited() == -signal.SIGKILL
    assert process.look() == []


@pytest.mark.proves("SURVIVE-escapees")
@pytest.mark.field("A03", "E17")
@pytest.mark.usefixtures("no_groups")
async def test_children_in_sessions_of_their_own_end_with_the_agent(start: Spawn) -> None:
    process = await start("setsid sleep 600 & setsid sh -c 'sleep 600 & sleep 600' & echo up; cat")
    await first_line(process)
    assert await process.end(force=False) == []


@pytest.mark.field("E09", "E17")
@pytest.mark.usefixtures("no_groups", "subreaper")
async def test_an_orphan_without_mark_in_the_agents_session_is_found(start: Spawn) -> None:
    process = await start("(env -i sh -c 'echo $$; exec sleep 600' &); cat")
    pid = int(await first_line(process))
    await process.close_input()
    await process.exited()
    assert [found.pid for found in process.look()] == [pid]
    assert await process.end(force=False) == []
    assert read_stat(pid) is None


@pytest.mark.proves("SURVIVE-escapees")
@pytest.mark.usefixtures("no_groups", "subreaper")
async def test_a_process_that_shed_mark_parent_and_session_before_we_looked_is_found_by_its_brand(
    start: Spawn,
) -> None:
    bystander = await start("exec sleep 600", "execution-2")
    process = await start(FORGETFUL)
    pid = int((await first_line(process)).split()[0])
    assert pid in [found.pid for found in process.look()]
    assert await process.end(force=False) == []
    assert not alive(pid)
    assert [found.pid for found in bystander.look()] == [bystander.pid]


@pytest.mark.field("E17")
@pytest.mark.usefixtures("no_groups")
async def test_who_was_seen_once_belongs_though_mark_parent_and_session_are_gone(start: Spawn) -> None:
    unbranded = "prlimit --rttime=unlimited:unlimited"
    process = await start(f"{unbranded} env -i setsid sh -c 'echo $$; exec sleep 600' & cat")
    pid = int(await first_line(process))
    assert pid in [found.pid for found in process.look()]
    await process.close_input()
    await process.exited()
    assert pid in [found.pid for found in process.look()]
    assert await process.end(force=False) == []


@pytest.mark.field("A01")
async def test_a_program_that_spawns_faster_than_we_look_is_ended(start: Spawn) -> None:
    process = await start(
        "trap '' TERM; echo up; while :; do setsid sh -c 'trap \"\" TERM; sleep 600' & sleep 0.01; done"
    )
    await first_line(process)
    assert await process.end(force=True) == []
    assert process.look() == []


@pytest.mark.field("A29")
async def test_concurrent_ends_share_one_ladder_and_a_forced_one_hurries_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    slow = Settings(teardown_stdin_s=60.0, teardown_term_s=5.0, teardown_kill_s=5.0)
    process = await spawn("e", ["sleep", "600"], str(tmp_path), environment, slow)
    polite = asyncio.create_task(process.end(force=False))
    await asyncio.sleep(0)
    async with asyncio.timeout(10):
        assert await process.end(force=True) == []
        assert await polite == []
        assert await process.end(force=False) == []


async def test_a_caller_that_goes_away_does_not_stop_the_end(start: Spawn) -> None:
    process = await start("exec sleep 600")
    caller = asyncio.create_task(process.end(force=True))
    await asyncio.sleep(0)
    caller.cancel()
    async with asyncio.timeout(5):
        assert await process.exited() == -signal.SIGTERM
        assert await process.end(force=True) == []


@pytest.mark.field("E05")
async def test_survivors_are_named_and_another_end_tries_again(
    start: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await start("exec sleep 600")
    with monkeypatch.context() as unable:
        unable.setattr("kandev.agentctl.ending.send_signal", lambda process, signum: None)
        unable.setattr(process, "_settings", Settings(teardown_term_s=0.1, teardown_kill_s=0.1))
        unable.setattr(process._group, "kill", lambda: None)
        survivors = await process.end(force=True)
    assert [(left.pid, left.command) for left in survivors] == [(process.pid, "sleep 600")]
    assert await process.end(force=True) == []


@pytest.mark.field("E05")
@pytest.mark.usefixtures("no_groups")
async def test_what_an_earlier_agentctl_could_not_end_is_found_again_by_mark_and_by_number(
    start: Spawn, settings: Settings, tmp_path: Path
) -> None:
    process = await start("env -i setsid sh -c 'echo $$; exec sleep 600' & exec sleep 600")
    pid = int(await first_line(process))
    named = [found for found in process.look() if found.pid == pid]
    assert await end_left("execution-1", str(tmp_path), named, settings) == []
    assert process.look() == []


@pytest.mark.field("D25")
async def test_a_pid_that_belongs_to_another_process_now_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL) as bystander:
        stat = read_stat(bystander.pid)
        assert stat is not None
        earlier = wire.Process(pid=bystander.pid, start_time=stat.start_time - 1, command="sleep")
        send_signal(earlier, signal.SIGKILL)
        assert bystander.poll() is None
        bystander.kill()


@pytest.mark.proves("CTL-fence-older-incarnation")
@pytest.mark.field("D15", "E11", "E15")
async def test_what_an_older_incarnation_left_is_ended_and_nothing_else(
    start: Spawn, settings: Settings, tmp_path: Path
) -> None:
    old = await start("setsid sleep 600 & echo up; exec sleep 600", "old", KANDEV_INCARNATION="before")
    current = await start("exec sleep 600", "current")
    elsewhere = await start(
        "exec sleep 600", "old", KANDEV_INCARNATION="before", KANDEV_HOME=str(tmp_path / "elsewhere")
    )
    await first_line(old)
    assert {found.pid for found in find_marked("old", str(tmp_path))} >= {old.pid}
    assert await end_marked(str(tmp_path), "now", settings) == []
    assert find_marked("old", str(tmp_path)) == []
    assert [found.pid for found in find_marked(None, str(tmp_path))] == [current.pid]
    assert [found.pid for found in elsewhere.look()] == [elsewhere.pid]


@pytest.mark.proves("CTL-fence-older-incarnation")
@pytest.mark.usefixtures("no_groups", "subreaper")
async def test_what_an_older_incarnation_left_is_ended_though_it_shed_its_mark(
    start: Spawn, settings: Settings, tmp_path: Path
) -> None:
    old = await start(FORGETFUL, "old", KANDEV_INCARNATION="before")
    elsewhere = await start(FORGETFUL, "old", KANDEV_HOME=str(tmp_path / "elsewhere"))
    escaped, other = [int((await first_line(one)).split()[0]) for one in (old, elsewhere)]
    assert await end_marked(str(tmp_path), "now", settings) == []
    assert not alive(escaped)
    assert alive(other)


@pytest.mark.field("E15", "D25")
async def test_a_process_that_only_looks_like_one_of_ours_is_left_alone(
    start: Spawn, settings: Settings, tmp_path: Path
) -> None:
    with subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL) as bystander:
        old = await start("exec sleep 600", "old", KANDEV_INCARNATION="before")
        current = await start("exec sleep 600", "current")
        assert await end_marked(str(tmp_path), "now", settings, ["old"]) == []
        assert await end_left("old", str(tmp_path), [], settings) == []
        assert (old.look(), bystander.poll()) == ([], None)
        assert await current.end(force=True) == []
        assert bystander.poll() is None
        bystander.kill()


async def test_agentctl_never_counts_itself_though_it_carries_a_mark(tmp_path: Path) -> None:
    """A Kandev that an agent started has its parent's mark."""
    program = (
        "from kandev.agentctl.process import find_marked; import os;"
        "print([p.pid for p in find_marked(None, os.environ['KANDEV_HOME'])])"
    )
    marks = {"KANDEV_EXECUTION": "outer", "KANDEV_HOME": str(tmp_path), "KANDEV_INCARNATION": "outer"}
    path = os.pathsep.join(sys.path)
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **marks, "PYTHONPATH": path},
        capture_output=True,
        check=True,
    )
    assert answer.stdout.strip() == b"[]"


def zombies() -> int:
    stats = (read_stat(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return sum(1 for stat in stats if stat and stat.state == "Z" and stat.parent == os.getpid())


@pytest.mark.field("E23")
@pytest.mark.usefixtures("subreaper")
async def test_a_hundred_launches_leave_no_descriptor_and_no_zombie(
    settings: Settings, environment: dict[str, str]
) -> None:
    before = sum(Burden.of(os.getpid()).descriptors.values())
    for number in range(100):
        script = "exec cat" if number % 2 else "(setsid true &); exit 3"
        process = await spawn(f"e{number}", ["/bin/sh", "-c", script], "/", environment, settings)
        if number % 2 == 0:
            assert await process.exited() == 3
        assert await process.end(force=True) == []
    reap_orphans()
    assert (
        sum(Burden.of(os.getpid()).descriptors.values()) <= before + 3
    )  # the loop's own signal pipe and pools
    assert zombies() == 0


@pytest.mark.usefixtures("subreaper")
async def test_reaping_orphans_steals_no_exit_code(environment: dict[str, str]) -> None:
    null = subprocess.DEVNULL
    child = launch(["/bin/sh", "-c", "exit 42"], "/", environment, stdin=null, stdout=null, stderr=null)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    reap_orphans()
    assert await child.exited() == 42

"""The look that comes with every turn finds what a look at all processes finds, and reads no others."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kandev.agentctl import looking
from kandev.agentctl.looking import children_of
from kandev.agentctl.process import AgentProcess
from kandev.wire import agentctl as wire
from tests.agentctl.process.conftest import Spawn

# Each says a pid that belongs to the execution, however it came about.
CHILD = "sleep 600 & echo $!; cat"
GRANDCHILD = "sh -c 'sleep 600 & echo $!; wait' & cat"
IN_A_SESSION_OF_ITS_OWN = "setsid sh -c 'echo $$; exec sleep 600' & cat"
ORPHAN = "sh -c 'sleep 600 & echo $!'; cat"
CHILD_OF_AN_ORPHAN = "(sh -c 'sleep 600 & echo $!; wait' &); cat"
WITH_NOTHING_BUT_A_BRAND = "(env -i setsid sh -c 'echo $$; exec sleep 600' &); cat"

pytestmark = pytest.mark.usefixtures("no_groups", "subreaper")


@pytest.mark.parametrize(
    "script",
    [
        CHILD,
        GRANDCHILD,
        IN_A_SESSION_OF_ITS_OWN,
        ORPHAN,
        CHILD_OF_AN_ORPHAN,
        WITH_NOTHING_BUT_A_BRAND,
    ],
)
async def test_it_finds_what_a_look_at_everything_finds(
    start: Spawn, script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bystander = await start(CHILD, "execution-2")
    await bystander.read()
    process = await start(script)
    pid = int(await process.read())
    async with asyncio.timeout(5):  # until shells that only began something have ended
        while (near := _near(process, monkeypatch)) != (everything := _pids(process._family.look())):
            process._family.seen.clear()
            await asyncio.sleep(0.01)
    assert {process.pid, pid} <= near == everything


def _near(process: AgentProcess, monkeypatch: pytest.MonkeyPatch) -> set[int]:
    process._family.seen.clear()
    with monkeypatch.context() as patch:
        patch.setattr(looking, "snapshot", _forbidden)
        found = _pids(process.look())
    process._family.seen.clear()
    return found


def _pids(found: list[wire.Process]) -> set[int]:
    return {process.pid for process in found}


def _forbidden() -> None:
    raise AssertionError("all processes of the machine were read")


async def test_where_the_system_names_no_children_everything_is_read(
    start: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = await start(CHILD)
    pid = int(await process.read())
    monkeypatch.setattr(looking, "_tells_children", lambda: False)
    monkeypatch.setattr(looking, "children_of", lambda pid: set())
    assert {process.pid, pid} <= _pids(process.look())


@pytest.fixture
def parent() -> Iterator["subprocess.Popen[bytes]"]:
    """A process that starts a child from a thread that is not its first."""
    script = (
        "import subprocess, threading\n"
        "def run():\n"
        "    child = subprocess.Popen(['sleep', '60'])\n"
        "    print(child.pid, flush=True)\n"
        "    input()\n"
        "    child.kill(); child.wait()\n"
        "thread = threading.Thread(target=run); thread.start(); thread.join()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        yield process
        process.communicate(b"\n")


def test_children_of_every_thread_are_children(parent: "subprocess.Popen[bytes]") -> None:
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert children_of(parent.pid) == {child}
    assert parent.pid in children_of(os.getpid())


def test_a_process_that_is_gone_has_no_children() -> None:
    assert children_of(2**22 + 1) == set()


def test_children_are_asked_for_until_the_same_is_said_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    said = iter([{1, 3}, {1, 2, 3}, {2, 3}, {2, 3}, {4}])
    monkeypatch.setattr(looking, "_children_once", lambda pid: next(said))
    assert children_of(1) == {2, 3}

"""A thousand launches, good and bad ones side by side: afterwards agentctl holds what it held before."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kandev.agentctl.grouping import folder_of, own_group
from kandev.agentctl.looking import find_marked
from kandev.ports.execution import LaunchRefused, Running
from tests.agentctl.contract import worlds
from tests.agentctl.contract.worlds import SETTINGS, Real, eventually, following, spec, turn
from tests.burden import Burden

LAUNCHES = 1000
WARMING_UP = 100
SIDE_BY_SIDE = 32
LATEST_S = 30.0
TINY = Path(__file__).resolve().parents[2] / "fakes" / "tiny_agent.sh"
FATES = ("obeys", "waits", "leaves", "deaf", "exits", "missing", "refuses", "stopped", "abandoned", "obeys")
"""What becomes of every tenth launch; the behaviours of the tiny agent, and what is done to it."""
SILENT_EVERY = 40
"""A launch that meets its deadline costs that time."""
GROWTH_MAX = 32 << 20
"""Bytes that allocators may keep; a leak of 40 KiB for each launch is more."""


@pytest.fixture
async def real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Real]:
    monkeypatch.setattr(worlds, "SETTINGS", replace(SETTINGS, launch_s=2, cancel_acknowledge_s=0.3))
    world = Real(tmp_path)
    yield world
    await world.close()


def fate_of(number: int) -> str:
    return "silent" if number % SILENT_EVERY == 0 else FATES[number % len(FATES)]


async def launch(real: Real, number: int) -> None:
    """One execution from its start to the end of its journal."""
    execution, fate = f"e{number}", fate_of(number)
    if fate in ("stopped", "abandoned"):
        await _given_up(real, execution, fate)
    else:
        with suppress(LaunchRefused):
            await _lived(real, execution, fate)
    await real.agents.forget(execution, LATEST_S)


async def _given_up(real: Real, execution: str, fate: str) -> None:
    asked = spec(real, execution, command=(str(TINY), "silent"))
    starting = asyncio.create_task(real.agents.start(asked, LATEST_S))
    while not any(_is(execution, one) for one in await real.agents.known(LATEST_S)):
        await asyncio.sleep(0.01)
    if fate == "stopped":
        await real.agents.end(execution, force=True, deadline=LATEST_S)
    else:
        starting.cancel()
    await asyncio.wait({starting})
    if not starting.cancelled():
        assert isinstance(starting.exception(), LaunchRefused)


def _is(execution: str, running: Running) -> bool:
    return running.execution == execution


async def _lived(real: Real, execution: str, fate: str) -> None:
    command = (str(real.folder / "nothing"),) if fate == "missing" else (str(TINY), fate)
    up = await real.agents.start(spec(real, execution, command=command), LATEST_S)
    assert fate in ("obeys", "waits", "leaves", "deaf")
    first = turn(1, execution)
    assert (await real.agents.prompt(first, f"{execution}:1", "go", LATEST_S)).taken
    if fate in ("waits", "deaf"):
        await real.agents.cancel(first, LATEST_S)
        return
    async with following(real, up, execution) as follower:
        await follower.until_ended(1)


async def launch_all(real: Real, numbers: range) -> None:
    at_once = asyncio.Semaphore(SIDE_BY_SIDE)

    async def one(number: int) -> None:
        async with at_once:
            await launch(real, number)

    async with asyncio.TaskGroup() as group:
        for number in numbers:
            group.create_task(one(number))


async def test_a_thousand_launches_leave_no_process_descriptor_thread_group_or_journal(real: Real) -> None:
    pid = (await real.sidecar.ensure(LATEST_S)).pid
    await launch_all(real, range(WARMING_UP))
    await eventually(lambda: Burden.of(pid).children == 0)
    before = Burden.of(pid)
    await launch_all(real, range(WARMING_UP, LAUNCHES))
    await eventually(lambda: Burden.of(pid).children == 0)
    after = Burden.of(pid)

    sockets = after.descriptors.pop("socket")
    assert sockets <= before.descriptors.pop("socket") + SIDE_BY_SIDE, "only connections that are kept alive"
    assert after.descriptors == before.descriptors
    assert after.threads <= before.threads + 2
    assert after.memory - before.memory < GROWTH_MAX
    assert list((real.home / "agentctl" / "journals").iterdir()) == []
    assert await real.agents.known(LATEST_S) == ()
    assert find_marked(None, str(real.home)) == []
    if (parent := own_group()) is not None:
        groups = [folder_of(f"e{number}", str(real.home), parent) for number in range(LAUNCHES)]
        assert [group for group in groups if group.exists()] == []

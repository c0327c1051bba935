"""What sessions cost that do nothing: memory and processor time of the backend and of agentctl.

Live and idle (an agent waits) beside asleep (no process; the next message starts one). Agents are not
counted. Memory is what a process has in use (RSS), shared pages and all.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx

from bench.client import connected
from bench.figures import Row
from bench.ground import Ground
from bench.processes import clean_environment, cpu_seconds, end_of, megabytes, of_run
from bench.program import STAMPING, Board, Kandev, running

DEADLINE_S = 300.0
SETTLE_S = 1.0
"""For what the last launches leave to be done."""
INTERPRETER = "an empty interpreter"


@dataclass(frozen=True)
class Look:
    """Megabytes, and processor seconds per second."""

    backend: float
    agentctl: float
    busy: float


async def measure(ground: Ground) -> Sequence[Row]:
    """Beside growing crowds of live sessions, then with the last crowd asleep."""
    floor = _interpreter(ground)
    looks: dict[int, Look] = {}
    async with running(ground.folder / "home") as kandev:
        await kandev.signal(signal.SIGTERM)  # a first start does more, once
        await kandev.start()
        async with connected(kandev.url) as client:
            board = await Board.of(client)
            there = 0
            for count in ground.sizes.crowds:
                await board.sessions(count - there, STAMPING)
                there = count
                looks[count] = await _look(ground, kandev, agentctl=count > 0)
        await _put_to_sleep(kandev)
        asleep = await _look(ground, kandev, agentctl=True)
    return [*_live(ground, looks, floor), *_asleep(ground, there, asleep, looks, floor)]


async def _put_to_sleep(kandev: Kandev) -> None:
    """A backend that finds every agent alive and lets it sleep soon: no session has a process any more."""
    await kandev.signal(signal.SIGKILL)
    kandev.settings["KANDEV_IDLE_SLEEP_S"] = "0.5"
    await kandev.start()
    programs = {kandev.pid, kandev.agentctl_pid()}
    async with asyncio.timeout(DEADLINE_S):
        for pid in set(of_run(kandev.home)) - programs:
            await end_of(pid)
        while await _instances(kandev):
            await asyncio.sleep(SETTLE_S)


async def _instances(kandev: Kandev) -> int:
    """How many agentctl still knows of."""
    url = json.loads((kandev.home / "agentctl.json").read_text())["url"]
    async with httpx.AsyncClient(trust_env=False) as client:
        return int((await client.get(f"{url}/health")).json()["instances"])


def _live(ground: Ground, looks: dict[int, Look], floor: float) -> list[Row]:
    rows: list[Row] = []
    most = max(looks)
    for count, look in looks.items():
        budget = ground.budget(150) if count == most else None
        rows.append(Row(f"backend, {count} live", "MB", look.backend, floor, INTERPRETER, budget))
    for count, look in looks.items():
        if count:
            rows.append(Row(f"agentctl, {count} live", "MB", look.agentctl, floor, INTERPRETER))
    fewest = min(count for count in looks if count)
    further = most - fewest
    each = (looks[most].agentctl - looks[fewest].agentctl) / further
    rows.append(Row("agentctl, each further instance", "MB", each, budget=ground.budget(2)))
    each = (looks[most].backend - looks[fewest].backend) / further
    rows.append(Row("backend, each further live session", "MB", each))
    for count, look in looks.items():
        rows.append(Row(f"processor, both, {count} live and idle", "%", 100 * look.busy))
    return rows


def _asleep(ground: Ground, count: int, asleep: Look, looks: dict[int, Look], floor: float) -> list[Row]:
    budget = ground.budget(150)
    return [
        Row(f"backend, {count} asleep", "MB", asleep.backend, looks[min(looks)].backend, "with none", budget),
        Row(f"agentctl, {count} asleep", "MB", asleep.agentctl, floor, INTERPRETER),
        Row(f"processor, both, {count} asleep", "%", 100 * asleep.busy),
    ]


async def _look(ground: Ground, kandev: Kandev, *, agentctl: bool) -> Look:
    pids = [kandev.pid, *([kandev.agentctl_pid()] if agentctl else [])]
    await asyncio.sleep(SETTLE_S)
    before, began = sum(map(cpu_seconds, pids)), time.monotonic()
    await asyncio.sleep(ground.sizes.idle_s)
    busy = (sum(map(cpu_seconds, pids)) - before) / (time.monotonic() - began)
    return Look(megabytes(kandev.pid), megabytes(pids[1]) if agentctl else 0.0, busy)


def _interpreter(ground: Ground) -> float:
    """Megabytes of one that waits for its input, and has nothing else to do."""
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        env=clean_environment(ground.folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            return megabytes(process.pid)
        finally:
            process.kill()

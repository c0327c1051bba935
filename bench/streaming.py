"""Updates of agents on their way to a client: how many a second, how far behind, and whether all of them
come.

At full speed the agents write as fast as they are read, so that the slowest part sets the pace; at a set
pace the stamp inside each chunk tells how far behind the client is. Floors: the same agents read by a bare
driver, and the frames that the client got, moved once more over a raw loopback WebSocket of the same
library.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from websockets.asyncio.client import connect

from bench.client import Client, connected
from bench.driver import Bare, driven
from bench.figures import Row, ms
from bench.ground import Ground
from bench.processes import clean_environment, ended
from bench.program import STAMPING, Board, Kandev, Live, running
from bench.stamps import Stamps, lost_of, update_text

FULL_SPEED = (50, 0.0)
"""Chunks at a time, and seconds between."""
PAUSE_S = 0.05
POLL_S = 0.005
DEADLINE_S = 300.0


@dataclass
class Run:
    """What came of one round of prompts."""

    rate: float
    used_s: float
    """Of the processors, by backend and agentctl."""
    lags: list[float] = field(default_factory=list)
    lost: int = 0
    frames: list[str] = field(default_factory=list)


async def measure(ground: Ground) -> Sequence[Row]:
    """With one and with many sessions."""
    rows: list[Row] = []
    sessions: list[Live] = []
    async with running(ground.folder / "home") as kandev, connected(kandev.url) as client:
        board = await Board.of(client)
        for count, paced in zip(ground.sizes.live, ground.sizes.paced, strict=True):
            sessions += await board.sessions(count - len(sessions), STAMPING)
            each = max(1, ground.sizes.updates // count // (2 if count == 1 else 1))
            bare = await _bare(ground, count, each)
            full = await _run(kandev, client, sessions, (each, *FULL_SPEED))
            raw = len(full.lags) / await _raw(ground, full.frames)
            batch = max(1, round(paced / count * PAUSE_S))
            each = max(batch, round(paced / count * ground.sizes.paced_s))
            calm = await _run(kandev, client, sessions, (each, batch, PAUSE_S))
            rows += _rows(ground, count, paced, (full, calm), (bare, raw))
    return rows


def _rows(
    ground: Ground, count: int, paced: int, runs: tuple[Run, Run], floors: tuple[float, float]
) -> list[Row]:
    (full, calm), (bare, raw) = runs, floors
    of = f"{count} session{'s' if count > 1 else ''}"
    many = count == max(ground.sizes.live)
    rate = ground.budget(5000, at_least=True) if many else None
    behind = ground.budget(100, "p95") if many else None
    return [
        Row(f"updates to a client, {of}, full speed", "/s", full.rate, bare, "read by a bare driver", rate),
        Row(f"the same, beside its frames alone, {of}", "/s", full.rate, raw, "raw loopback WebSocket"),
        Row(f"behind at {paced:,} updates a second, {of}", "ms", ms(calm.lags), budget=behind),
        Row(f"processor time of an update, {of}, full speed", "µs", 1e6 * full.used_s / len(full.lags)),
        Row(f"processor time of an update, {of}, {paced:,}/s", "µs", 1e6 * calm.used_s / len(calm.lags)),
        Row(f"updates lost, {of}", "", full.lost + calm.lost, budget=ground.budget(0)),
    ]


async def _run(
    kandev: Kandev, client: Client, sessions: Sequence[Live], script: tuple[int, int, float]
) -> Run:
    each = script[0]
    ears = {live.id: Stamps() for live in sessions}
    for live in sessions:
        await client.follow(live.id, ears[live.id], since_seq=None)
    client.kept = []
    gate = kandev.home / f"gate-{time.monotonic_ns()}"
    await asyncio.gather(*(live.say(" ".join(map(str, (*script, gate)))) for live in sessions))
    gate.touch()
    used, began = kandev.used_s(), time.monotonic()
    async with asyncio.timeout(DEADLINE_S):
        while not all(ear.over or ear.reloads for ear in ears.values()):
            await asyncio.sleep(POLL_S)
    used = kandev.used_s() - used
    frames, client.kept = client.kept, None
    if faults := {ear.fault for ear in ears.values() if ear.fault}:
        raise RuntimeError(f"turns did not end by themselves: {'; '.join(sorted(faults))}")
    lags = [lag for ear in ears.values() for lag in ear.lags]
    took = max(ear.last_at for ear in ears.values()) - began
    lost = sum(ear.skipped + each - ear.last for ear in ears.values())
    lost += sum([await _lacking(client, live, each) for live in sessions])
    return Run(len(lags) / took, used, lags, lost, frames)


async def _lacking(client: Client, live: Live, each: int) -> int:
    """What the stored transcript lacks of the newest message."""
    page = await client.ask("message.list", session_id=live.id, limit=1000)
    said = [m["content"] for m in page["messages"] if m["author_type"] == "agent" and m["type"] == "message"]
    return lost_of(said[-1], each)


async def _bare(ground: Ground, count: int, each: int) -> float:
    """Updates a second of as many agents as fast as one reader takes them, each decoded."""
    async with AsyncExitStack() as stack:
        peers: list[Bare] = []
        ears: list[Stamps] = []
        for number in range(count):
            folder = ground.folder / f"bare-{count}-{number}"
            peers.append(await stack.enter_async_context(driven(folder, STAMPING)))
            ears.append(Stamps())
            peers[-1].on_update = _hear(ears[-1])
        began = time.monotonic()
        await asyncio.gather(*(peer.prompt(f"{each} {FULL_SPEED[0]} {FULL_SPEED[1]}") for peer in peers))
        took = time.monotonic() - began
    return sum(len(ear.lags) for ear in ears) / took


def _hear(ear: Stamps) -> Any:
    return lambda at, update: ear.take(at, update_text(update))


async def _raw(ground: Ground, frames: Sequence[str]) -> float:
    """Seconds in which the same client gets the same frames from a server that does nothing else."""
    file = ground.folder / "frames.jsonl"
    file.write_text("\n".join(frames), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(Path(__file__).parent / "raw_websocket.py"),
        str(file),
        env=clean_environment(ground.folder),
        stdin=DEVNULL,
        stdout=PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            port = int(await process.stdout.readline())
            async with connect(
                f"ws://127.0.0.1:{port}/", proxy=None, max_size=None, compression=None
            ) as socket:
                client, ear = Client(socket), Stamps()
                for session_id in {json.loads(frame)["payload"]["session_id"] for frame in frames}:
                    client.hear(session_id, ear)
                began = time.monotonic()
                await client.read()
                return time.monotonic() - began
    finally:
        await ended(process)

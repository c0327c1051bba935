"""Stops of an agent that ignores everything: how soon they are answered, and when nothing of it is left.

The agent is deaf to cancels and stubborn towards SIGTERM and the end of its input, so that only the last
step of the ladder ends it. Gone is what the kernel says of every process that carries the session's mark.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Sequence

from bench.client import Client, connected
from bench.driver import driven
from bench.figures import Row, Spread, ms
from bench.ground import Ground
from bench.processes import end_of, of_session
from bench.program import MOCK, Board, Live, running

IGNORES = "stubborn\nsay now\ndeaf 600"


async def measure(ground: Ground) -> Sequence[Row]:
    """One stop after the other, their teardowns side by side."""
    stops = _Stops()
    together = max(ground.sizes.live)
    async with (
        running(ground.folder / "home", ground.sizes.ladder) as kandev,
        connected(kandev.url) as client,
    ):
        board = await Board.of(client)
        while (left := ground.sizes.stops - len(stops.answered)) > 0:
            sessions = await board.sessions(min(together, left), MOCK)
            for live in sessions:
                await live.say(IGNORES)
                await live.notes.output()
            async with asyncio.TaskGroup() as ends:
                for live in sessions:
                    stops.read.append(await _read(client, live))
                    pids = of_session(live.id)
                    began = await stops.ask(live)
                    ends.create_task(stops.end(live, pids, began))
    killed = [await _kill(ground, number) for number in range(min(3, ground.sizes.stops))]
    what = "stop answered, the agent ignores everything"
    most, gone = ground.budget(1000, "p99"), ground.budget(5, "p99")
    return [
        Row(what, "ms", ms(stops.answered), ms(stops.read), "session.get", most),
        Row("stop until verified gone", "s", Spread.of(stops.gone), Spread.of(killed), "SIGKILL, bare", gone),
    ]


class _Stops:
    """Seconds."""

    def __init__(self) -> None:
        self.read: list[float] = []
        self.answered: list[float] = []
        self.gone: list[float] = []

    async def ask(self, live: Live) -> float:
        """When the stop began."""
        began = time.monotonic()
        at, _ = await live.client.timed("session.stop", session_id=live.id)
        self.answered.append(at - began)
        return began

    async def end(self, live: Live, pids: Sequence[int], began: float) -> None:
        """Every process of it is gone, and none has come."""
        last = max([await end_of(pid) for pid in pids])
        if left := of_session(live.id):
            raise RuntimeError(f"after its stop a session has processes: {left}")
        self.gone.append(last - began)


async def _read(client: Client, live: Live) -> float:
    began = time.monotonic()
    at, _ = await client.timed("session.get", session_id=live.id)
    return at - began


async def _kill(ground: Ground, number: int) -> float:
    async with driven(ground.folder / f"bare-{number}", MOCK) as bare:
        began = time.monotonic()
        os.kill(bare.pid, signal.SIGKILL)
        return await end_of(bare.pid) - began

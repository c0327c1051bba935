"""What goes wrong between any two awaits: at agentctl's door and at the store's, armed one by one.

Everything that goes wrong without being armed is small: delays, drawn from the schedule's seed.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass
from typing import Literal

from kandev.core.errors import StoreFault
from kandev.ports.execution import Unreachable
from kandev.storage.sql.inline import Point

LATENCIES_S = (0.0, 0.0, 0.0, 0.0, 0.002, 0.05, 0.3, 1.5)


@dataclass(frozen=True)
class Armed:
    """Happens once, at the next call of this name. `seconds`: 0 loses it, else it is late by so much."""

    door: Literal["agentctl", "store"]
    call: str
    moment: str
    seconds: float = 0.0


class Gate:
    """Holds every call of its kind that comes until it is opened."""

    def __init__(self) -> None:
        self.reached, self._open = asyncio.Event(), asyncio.Event()

    def open(self) -> None:
        """Let go of all."""
        self._open.set()

    async def passed(self) -> None:
        """Wait at it."""
        self.reached.set()
        await self._open.wait()


class Faults:
    """One schedule's faults."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed)
        self.armed: list[Armed] = []
        self.gates: dict[tuple[str, str], Gate] = {}
        """By call and moment at agentctl, by `store` and point at the store."""
        self.unreachable_until = 0.0
        self.refused_cancels = self.refused_prompts = 0
        """How many of the next ones agentctl refuses in words."""
        self.quiet = False

    def gate(self, call: str, moment: str) -> Gate:
        """From now on, everything of this kind waits there."""
        self.gates[call, moment] = gate = Gate()
        return gate

    def settle(self) -> None:
        """Nothing goes wrong any more."""
        self.armed.clear()
        self.unreachable_until = 0.0
        self.refused_cancels = self.refused_prompts = 0
        self.quiet = True

    def _take(self, door: str, call: str, moment: str) -> Armed | None:
        for one in self.armed:
            if (one.door, one.call, one.moment) == (door, call, moment):
                self.armed.remove(one)
                return one
        return None

    async def _dawdle(self, often: float) -> None:
        if not self.quiet and self._draw.random() < often:
            await asyncio.sleep(self._draw.choice(LATENCIES_S))

    async def at_agentctl(self, call: str, moment: str, execution: str) -> None:
        """`agentctl.Fault`."""
        if call == "frame":
            await self._between_frames()
            return
        await self._dawdle(0.5)
        if gate := self.gates.get((call, moment)):
            await gate.passed()
        if asyncio.get_running_loop().time() < self.unreachable_until:
            raise Unreachable("the network is down")
        if one := self._take("agentctl", call, moment):
            if not one.seconds:
                raise Unreachable(f"{call} is lost {moment} it arrived")
            await asyncio.sleep(one.seconds)

    async def _between_frames(self) -> None:
        one = self._take("agentctl", "frame", "after")
        if one is not None and one.seconds:
            await asyncio.sleep(one.seconds)
        elif one is not None or asyncio.get_running_loop().time() < self.unreachable_until:
            raise Unreachable("the stream broke")
        await self._dawdle(0.1)

    async def at_store(self, point: Point) -> None:
        """`inline.Hook`."""
        await self._dawdle(0.15)
        if gate := self.gates.get(("store", point)):
            await gate.passed()
        if one := self._take("store", point, ""):
            if not one.seconds:
                raise StoreFault(f"the disk failed at {point}")
            await asyncio.sleep(one.seconds)

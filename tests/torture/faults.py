"""Carries out the faults of a plan: kills, pauses and polite ends of the programs, and new starts."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable

from tests.e2e.scenes import alive, until_true
from tests.torture.house import House, send
from tests.torture.ledger import Ledger
from tests.torture.plan import MOMENTS, Deed

AT_A_MOMENT = " at a moment"
MOMENT_S = 1.5
"""So long it is waited for; then it is done without."""


class Faults:
    """One after the other. When `carry_out` returns, a backend is up. `may_die`: programs may die by
    themselves meanwhile."""

    def __init__(self, house: House, ledger: Ledger, *, may_die: bool) -> None:
        self._house, self._ledger, self._may_die = house, ledger, may_die
        self._rng = random.Random()
        self._kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "kill backend": self._kill_backend,
            "kill agentctl": self._kill_agentctl,
            "kill agent": lambda: self._kill_agents(1),
            "kill agents": lambda: self._kill_agents(10),
            "kill backend and agentctl": lambda: self._kill_with_backend(agentctl=True),
            "kill backend and agents": lambda: self._kill_with_backend(agents=True),
            "kill agentctl and agent": self._kill_agentctl_and_agent,
            "kill all": lambda: self._kill_with_backend(agentctl=True, agents=True),
            "kill backend while it starts": self._kill_while_it_starts,
            "kill agentctl while it starts": self._kill_starting_agentctl,
            "terminate backend": self._terminate_backend,
            "terminate agentctl": self._terminate_agentctl,
            "pause backend": lambda: self._pause(self._house.backend()),
            "pause agentctl": lambda: self._pause(self._house.agentctl()),
            "pause agent": self._pause_agent,
            "kill a paused backend": self._kill_paused,
            "second backend": self._second,
        }

    async def carry_out(self, deeds: tuple[Deed, ...]) -> None:
        """All of them."""
        for deed in deeds:
            await asyncio.sleep(deed.pause_s)
            self._rng = random.Random(deed.number)
            kind = deed.kind
            if kind.endswith(AT_A_MOMENT):
                kind = kind.removesuffix(AT_A_MOMENT)
                await self._house.moment(self._rng.choice(MOMENTS), MOMENT_S)
                await asyncio.sleep(self._rng.choice((0.0, 0.0, 0.001, 0.004, 0.02)))
            async with self._house.changing:
                await self._kinds[kind]()
            self._ledger.fault(deed.kind)

    async def _again(self) -> None:
        """The next backend, after a while."""
        await asyncio.sleep(self._rng.choice((0.0, 0.0, 0.05, 0.3)))
        await self._house.start()

    async def _kill_backend(self) -> None:
        await self._house.kill()
        await self._again()

    def _strike_agentctl(self) -> None:
        if (pid := self._house.agentctl()) is not None:
            send(pid, signal.SIGKILL)

    async def _kill_agentctl(self) -> None:
        self._strike_agentctl()

    async def _kill_agents(self, most: int) -> None:
        agents = self._house.agents()
        self._rng.shuffle(agents)
        for pid in agents[:most]:
            send(pid, signal.SIGKILL)

    async def _kill_with_backend(self, *, agentctl: bool = False, agents: bool = False) -> None:
        """In a random order, as close together as signals can be."""
        blows: list[Callable[[], object]] = []
        pid = self._house.backend()
        assert pid is not None
        blows.append(lambda: send(pid, signal.SIGKILL))
        if agentctl and (other := self._house.agentctl()) is not None:
            blows.append(lambda: send(other, signal.SIGKILL))
        if agents:
            living = self._house.agents()
            blows.append(lambda: [send(agent, signal.SIGKILL) for agent in living])
        self._rng.shuffle(blows)
        self._house.up.clear()
        for blow in blows:
            blow()
        await self._house.kill()
        await self._again()

    async def _kill_agentctl_and_agent(self) -> None:
        agents, agentctl = self._house.agents()[:1], self._house.agentctl()
        pids = [pid for pid in (*agents, agentctl) if pid is not None]
        self._rng.shuffle(pids)
        for pid in pids:
            send(pid, signal.SIGKILL)

    async def _kill_while_it_starts(self) -> None:
        await self._house.kill()
        for _ in range(self._rng.randint(1, 2)):
            await self._house.kill_while_it_starts(self._rng.uniform(0.1, 1.5))
        await self._again()

    async def _kill_starting_agentctl(self) -> None:
        """The next agentctl, too, while it takes over from the one that was killed."""
        self._strike_agentctl()
        for _ in range(self._rng.randint(1, 2)):
            end = time.monotonic() + 1.5
            while time.monotonic() < end and self._house.agentctl() is None:
                await asyncio.sleep(0.01)
            await asyncio.sleep(self._rng.uniform(0, 0.6))
            self._strike_agentctl()

    async def _terminate_backend(self) -> None:
        code = await self._house.stop()
        lawful = (0, -signal.SIGKILL) if self._may_die else (0,)
        assert code in lawful, f"the backend that was told to end ended with {code}"
        await self._again()

    async def _terminate_agentctl(self) -> None:
        if (pid := self._house.agentctl()) is not None:
            send(pid, signal.SIGTERM)
            await until_true(lambda: not alive(pid), "agentctl ends when it is asked to")

    async def _pause(self, pid: int | None) -> None:
        if pid is None or not send(pid, signal.SIGSTOP):
            return
        try:
            await asyncio.sleep(self._rng.uniform(0.1, 1.2))
        finally:
            send(pid, signal.SIGCONT)

    async def _pause_agent(self) -> None:
        agents = self._house.agents()
        await self._pause(self._rng.choice(agents) if agents else None)

    async def _kill_paused(self) -> None:
        pid = self._house.backend()
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        await asyncio.sleep(self._rng.uniform(0.05, 0.5))
        await self._kill_backend()

    async def _second(self) -> None:
        try:
            code, said = await self._house.second()
        except subprocess.TimeoutExpired:
            assert self._may_die, "a second backend on the home was not refused"
            return  # the first one had just died
        if self._may_die and code == -signal.SIGKILL:
            return  # it took the place of the first one, which had just died, and then died itself
        right = code == 1 and "another backend uses the home" in said
        assert right, f"a second backend on the home ended with {code} and said {said!r}"

"""Hundreds of launches through the public doors, good and bad ones side by side: nothing of them stays."""

import asyncio
from pathlib import Path

import pytest

from tests.burden import Burden
from tests.e2e.kandev import Kandev
from tests.e2e.scenes import marked, profile, turns_over, until_true

LAUNCHES = 240
WARMING_UP = 40
SIDE_BY_SIDE = 12
TINY = Path(__file__).resolve().parents[1] / "fakes" / "tiny_agent.sh"
FATES = ("obeys", "leaves", "waits", "deaf", "exits", "missing", "refuses", "silent", "stopped", "dies")
"""What becomes of every tenth launch: the behaviours of the tiny agent, and what is done to it."""
HURRIED = {"KANDEV_CANCEL_ACKNOWLEDGE_S": "0.5", "KANDEV_LAUNCH_S": "4", "KANDEV_TEARDOWN_S": "20"}
GROWTH_MAX = 32 << 20
"""Bytes; a leak of 200 KiB for each launch is more."""


class Launches:
    """One profile for each fate, and the sessions that were launched with it."""

    def __init__(self, kandev: Kandev) -> None:
        self.kandev = kandev
        self.sessions: list[str] = []
        self._profiles: dict[str, str] = {}

    async def prepare(self) -> None:
        for fate in FATES:
            behaviour = {"stopped": "silent", "dies": "waits"}.get(fate, fate)
            command = ["/nowhere/agent"] if fate == "missing" else [str(TINY), behaviour]
            self._profiles[fate] = await profile(self.kandev, command, name=fate)

    async def all(self, numbers: range) -> None:
        at_once = asyncio.Semaphore(SIDE_BY_SIDE)

        async def one(number: int) -> None:
            async with at_once:
                await self._live(FATES[number % len(FATES)])

        async with asyncio.TaskGroup() as group:
            for number in numbers:
                group.create_task(one(number))

    async def _live(self, fate: str) -> None:
        call = self.kandev.call
        task_id, session_id = await self.kandev.session("go", agent_profile_id=self._profiles[fate])
        self.sessions.append(session_id)
        async with self.kandev.watching(session_id) as events:
            if fate == "stopped":
                await call("session.stop", {"session_id": session_id})
            elif fate in ("exits", "missing", "refuses", "silent"):
                await events.state("FAILED")
            else:
                await events.until("session.message.added", lambda p: p["message"]["author_type"] == "agent")
                if fate in ("waits", "deaf"):
                    await call("agent.cancel", {"session_id": session_id})
                if fate == "dies":
                    await call("session.stop", {"session_id": session_id, "force": True})
                await turns_over(events)
        await call("task.delete", {"id": task_id})


async def quiet(kandev: Kandev, launches: Launches) -> None:
    """Nothing of any session runs, and agentctl has forgotten them all."""
    agentctl = kandev.agentctl_pid()
    await until_true(lambda: Burden.of(agentctl).children == 0, "agentctl has no child")
    journals = kandev.home / "agentctl" / "journals"
    await until_true(lambda: not list(journals.iterdir()), "no journal is kept")
    assert [s for s in launches.sessions if marked(s)] == []


@pytest.mark.proves("INV-8", "INV-10")
@pytest.mark.field("E01", "E23")
async def test_hundreds_of_launches_leave_backend_and_agentctl_as_they_were(tmp_path: Path) -> None:
    async with Kandev(tmp_path / "home", HURRIED) as kandev:
        assert kandev.process is not None
        launches = Launches(kandev)
        await launches.prepare()
        await launches.all(range(WARMING_UP))
        await quiet(kandev, launches)
        pids = (kandev.process.pid, kandev.agentctl_pid())
        before = [Burden.of(pid) for pid in pids]
        await launches.all(range(WARMING_UP, LAUNCHES))
        await quiet(kandev, launches)

        def let_go() -> bool:
            return all(_as_before(held, Burden.of(pid)) for held, pid in zip(before, pids, strict=True))

        try:
            await until_true(let_go, "they hold what they held")
        except AssertionError:
            raise AssertionError(f"{before} became {[Burden.of(pid) for pid in pids]}") from None


def _as_before(before: Burden, after: Burden) -> bool:
    """Connections and the threads of a pool may be kept, within their bounds."""
    held = {kind: after.descriptors[kind] - before.descriptors[kind] for kind in after.descriptors}
    sockets = held.pop("socket", 0)
    return (
        sockets <= 2 * SIDE_BY_SIDE
        and not any(held.values())
        and after.threads <= before.threads + 2
        and after.children <= before.children
        and after.memory - before.memory < GROWTH_MAX
    )

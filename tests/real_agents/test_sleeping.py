"""Real agents fall asleep when they are idle, and wake with their conversation."""

from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import until_holds

from . import processes
from .bed import Bed, BedAgent, let_a_minute_pass
from .model import ScriptedModel
from .working import GONE_S, HONEST, Work, begin, remembers

SLEEPY = {**HONEST, "KANDEV_IDLE_SLEEP_S": "1"}


@pytest.mark.proves("SURVIVE-sleep")
async def test_a_real_agent_sleeps_and_wakes_with_its_conversation(
    tmp_path: Path, bed: Bed, real_agent: BedAgent, model: ScriptedModel
) -> None:
    async with Kandev(tmp_path / "home", SLEEPY) as kandev:
        work = await begin(kandev, bed, real_agent, "remember the word quince")
        async with kandev.watching(work.session_id) as events:
            await work.turn_over(events, 1)

            async def asleep() -> bool:
                return "execution" not in await kandev.call("session.get", {"session_id": work.session_id})

            await until_holds(asleep, "it fell asleep")
            await processes.wait_until(lambda: not processes.marked(real_agent.mark), "nothing left", GONE_S)
            let_a_minute_pass(real_agent)
            before = await remarks(kandev, work)
            await remembers(work, events, model, 2, "quince")
        assert await remarks(kandev, work) == before, "nobody is told of it"


async def remarks(kandev: Kandev, work: Work) -> list[str]:
    """What stands in the chat that is neither the person's nor the agent's. A helper that an agent left
    running for a moment behind its turn is told of, asleep or not."""
    told = [m for m in await kandev.messages(work.session_id) if m["author_type"] == "system"]
    return [m["content"] for m in told if "outlived" not in m["metadata"]]

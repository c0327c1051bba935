"""Real agents fall asleep when they are idle, and wake with their conversation."""

import json
from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import until_holds

from . import processes
from .bed import Bed, BedAgent, let_a_minute_pass
from .model import ScriptedModel
from .test_over_kandev import GONE_S, HONEST, begin

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
            await work.say("which word was it")
            await work.turn_over(events, 2)
        asked = await model.log.asked("which word was it")
        assert "quince" in json.dumps(model.log.bodies[asked["n"]]), "the agent has the conversation"
        said = [m["content"] for m in await kandev.messages(work.session_id) if m["author_type"] == "system"]
        assert said == [], "nobody is told of it"

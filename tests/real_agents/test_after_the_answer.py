"""Behind the answer to a cancel or a stop a real agent calls its model no more."""

import secrets
from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev

from . import processes
from .bed import Bed, BedAgent
from .model import ScriptedModel
from .working import GONE_S, HONEST, TURN_S, begin


@pytest.mark.field("A07", "A43")
@pytest.mark.parametrize("verb", ["agent.cancel", "session.stop"])
async def test_no_model_call_follows(
    tmp_path: Path, bed: Bed, real_agent: BedAgent, model: ScriptedModel, verb: str
) -> None:
    command = f"sleep 63.{secrets.randbelow(9000) + 1000}"

    def running() -> bool:
        return any(process.command == command for process in processes.marked(real_agent.mark))

    async with Kandev(tmp_path / "home", HONEST) as kandev:
        work = await begin(kandev, bed, real_agent, f"[shell {command}]")
        await processes.wait_until(running, command, TURN_S)
        await work.say("what waits is not said")
        assert (await kandev.call(verb, {"session_id": work.session_id}))["success"] is True
        calls = len(model.log.bodies)
        if verb == "agent.cancel":
            await processes.wait_until(lambda: not running(), f"the end of {command}", GONE_S)
            await kandev.call("session.stop", {"session_id": work.session_id})
        await processes.wait_until(lambda: not processes.marked(real_agent.mark), "its end", GONE_S)
        assert len(model.log.bodies) == calls > 0

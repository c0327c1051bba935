"""The bed works: each real agent answers, is cancelled, leaves nothing behind, all without Kandev."""

import json
import secrets
from asyncio import timeout

from . import processes
from .bed import Bed, BedAgent, let_a_minute_pass, profile_for
from .driver import BareAgent
from .model import ScriptedModel

TURN_S = 60.0
STOP_S = 10.0
GONE_S = 5.0


async def test_a_real_agent_says_what_the_scripted_model_answered(
    real_agent: BedAgent, model: ScriptedModel
) -> None:
    async with BareAgent(real_agent) as agent:
        introduced = await agent.initialize()
        session = await agent.new_session()
        turn = await agent.prompt(session, "hello there")
        async with timeout(TURN_S):
            result = await turn
        await model.log.asked("hello there")

    assert introduced["protocolVersion"] == 1
    assert result["stopReason"] == "end_turn"
    assert "echo: hello there" in agent.said()
    assert processes.marked(real_agent.mark) == []


async def test_a_cancelled_answer_stops_as_cancelled_and_the_session_takes_the_next_prompt(
    real_agent: BedAgent, model: ScriptedModel
) -> None:
    async with BareAgent(real_agent) as agent:
        await agent.initialize()
        session = await agent.new_session()
        turn = await agent.prompt(session, "[slow 60]")
        await agent.until(lambda: "w3 " in agent.said())
        asked = await model.log.asked("[slow 60]")
        await agent.cancel(session)
        async with timeout(STOP_S):
            stopped = await turn
        call = await model.log.finished(asked["n"], STOP_S)
        following = await agent.prompt(session, "go on")
        async with timeout(TURN_S):
            result = await following

    assert stopped["stopReason"] == "cancelled"
    assert "client_gone" in call
    assert result["stopReason"] == "end_turn"
    assert "echo: go on" in agent.said()


async def test_a_cancelled_shell_command_ends_unless_the_agent_is_known_to_leave_it(
    real_agent: BedAgent,
) -> None:
    command = f"sleep 61.{secrets.randbelow(9000) + 1000}"

    def running() -> bool:
        return any(process.command == command for process in processes.marked(real_agent.mark))

    async with BareAgent(real_agent) as agent:
        await agent.initialize()
        session = await agent.new_session()
        turn = await agent.prompt(session, f"[shell {command}]")
        await processes.wait_until(running, command, TURN_S)
        await agent.cancel(session)
        async with timeout(STOP_S):
            stopped = await turn
        if not real_agent.may_leave_commands:
            await processes.wait_until(lambda: not running(), f"the end of {command}", GONE_S)

    assert stopped["stopReason"] == "cancelled"


async def test_a_session_is_continued_by_a_new_process_of_the_agent(
    real_agent: BedAgent, model: ScriptedModel
) -> None:
    async with BareAgent(real_agent) as first:
        await first.initialize()
        session = await first.new_session()
        turn = await first.prompt(session, "remember the word quince")
        async with timeout(TURN_S):
            await turn
    let_a_minute_pass(real_agent)
    async with BareAgent(real_agent) as second:
        await second.initialize()
        await second.load_session(session)
        turn = await second.prompt(session, "which word was it")
        async with timeout(TURN_S):
            result = await turn
    asked = await model.log.asked("which word was it")

    assert result["stopReason"] == "end_turn"
    assert "quince" in json.dumps(model.log.bodies[asked["n"]])


def test_a_profile_starts_the_agent_as_the_bed_would(real_agent: BedAgent, bed: Bed) -> None:
    profile = profile_for(bed, real_agent)

    assert profile["protocol"] == "acp"
    assert profile["command"] == real_agent.command
    assert profile["env"]["HOME"] == str(real_agent.home)
    assert set(profile) - {"mode"} == {"name", "protocol", "command", "env", "withhold"}
    assert profile.get("mode") == real_agent.mode

"""Who may be put to sleep, with an agent that the test plays."""

import asyncio

import pytest

from kandev.wire import agentctl as wire
from tests.agentctl.server.hosts import Answer, Host, eventually
from tests.agentctl.server.lanes import Client

pytestmark = pytest.mark.proves("CTL-sleep")
TOOL = wire.Process(pid=7, start_time=70, command="npm run dev")
BRIDGE = wire.Process(pid=9, start_time=90, command="/venv/bin/python -P -m kandev agentctl mcp-bridge")
HELPER = wire.Process(pid=8, start_time=80, command="a server of its tools")


async def sleep(host: Host, after_seq: int | None = None) -> Answer:
    seq = host.instances.get("e1").journal.last_seq if after_seq is None else after_seq
    return await host.of("e1", "POST", "sleep", {"after_seq": seq})


async def refused(host: Host) -> str:
    answer = await sleep(host)
    assert (answer.status, answer.reason) == (409, "awake")
    assert host.instances.get("e1").state in ("starting", "ready") and not host.agent().forces
    return str(answer.body["message"])


async def test_an_idle_agent_is_ended_politely(host: Host) -> None:
    await host.create()
    assert (await sleep(host)).status == 200
    assert (host.agent().forces, host.kinds()[-1]) == ([False], "process_exited")


async def test_an_agent_that_offers_no_way_back_stays_up(host: Host) -> None:
    host.stage.resumable = False
    await host.create()
    assert "conversation" in await refused(host)


async def test_what_a_turn_left_running_keeps_it_up_until_it_ends(host: Host) -> None:
    await host.create()
    agent = host.agent()
    agent.living = [HELPER]
    await host.prompt(1)
    agent.living = [HELPER, TOOL]
    await agent.ends()
    await host.prompt(2)
    await agent.ends()
    assert "npm run dev" in await refused(host), "it outlived two turns and runs still"
    agent.living = [HELPER]
    assert (await sleep(host)).status == 200


async def test_the_bridge_to_its_tools_is_no_work_that_a_turn_leaves_behind(host: Host) -> None:
    """Agents start it when they first call a tool."""
    await host.create()
    await host.prompt(1)
    host.agent().living = [BRIDGE]
    await host.agent().ends()
    (ended,) = [frame for frame in await host.frames() if isinstance(frame, wire.TurnEnded)]
    assert ended.outlived == []
    assert (await sleep(host)).status == 200


async def test_an_agent_that_waits_for_a_tool_stays_up(host: Host) -> None:
    await host.create(mcp_mode="task")
    call = Client(host).call()
    await eventually(lambda: host.instances.get("e1").tunnel.waits)
    assert "tools" in await refused(host)
    call.cancel()
    await eventually(lambda: not host.instances.get("e1").tunnel.waits)
    assert (await sleep(host)).status == 200


async def test_what_the_agent_started_by_itself_counts_too(host: Host) -> None:
    await host.create()
    agent = host.agent()
    await agent.says("by myself")
    agent.living = [TOOL]
    await eventually(lambda: host.kinds()[-1] == "turn_ended")
    assert "npm run dev" in await refused(host)


async def test_a_turn_of_its_own_keeps_it_up(host: Host) -> None:
    await host.create()
    await host.agent().says("by myself")
    assert "work" in await refused(host)


async def test_a_prompt_that_is_being_written_keeps_it_up(host: Host) -> None:
    await host.create()
    host.agent().may_write.clear()
    prompting = asyncio.create_task(host.prompt(1))
    await eventually(lambda: host.instances.get("e1").works)
    await refused(host)
    host.agent().may_write.set()
    assert (await prompting).status == 202


@pytest.mark.field("B45", "D27")
async def test_what_was_journalled_behind_the_position_keeps_it_up(host: Host) -> None:
    await host.create()
    answer = await sleep(host, 0)
    assert (answer.status, answer.reason) == (409, "awake")


async def test_a_prompt_behind_it_is_refused_for_ever(host: Host) -> None:
    await host.create()
    await sleep(host)
    assert ((await host.prompt(1)).status, (await host.prompt(1)).reason) == (409, "ended")


async def test_an_unknown_execution_is_not_buried(host: Host) -> None:
    assert (await host.of("e1", "POST", "sleep", {"after_seq": 0})).status == 404
    assert (await host.create()).status == 201


@pytest.mark.parametrize("blind", ["begin", "end"])
async def test_after_a_look_that_failed_the_next_one_counts_what_is_new(host: Host, blind: str) -> None:
    await host.create()
    agent = host.agent()
    agent.living = [HELPER]
    await host.prompt(1)
    await agent.ends()
    agent.blind = blind == "begin"
    await host.prompt(2)
    agent.living = [HELPER, TOOL]
    agent.blind = blind == "end"
    await agent.ends()
    assert (
        "npm run dev" in await refused(host) if blind == "begin" else "Nobody can tell" in await refused(host)
    )
    agent.blind = False
    assert "npm run dev" in await refused(host)
    agent.living = [HELPER]
    assert (await sleep(host)).status == 200

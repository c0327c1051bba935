"""What agents ask by their tools, the same on the simulated agentctl and the real one: each call is answered
once, whatever becomes of lanes, backends and agents meanwhile."""

import asyncio
import dataclasses
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kandev.ports.execution import UnknownExecution, Up
from tests.agentctl.contract import worlds
from tests.agentctl.contract.worlds import (
    SOON,
    Follower,
    World,
    eventually,
    following,
    prompt,
    start,
    turn,
    words,
)
from tests.fakes.tools import FakeTools, echo, respond, silence

pytestmark = pytest.mark.proves("CTL-mcp", "CTL-one-suite")

CALL = 'mcp t {"a": 1}'


@asynccontextmanager
async def calling(world: World) -> AsyncIterator[tuple[Up, Follower]]:
    """An agent in the middle of a call that nobody answers."""
    world.tools.answer = silence
    up = await start(world, mcp_mode="task")
    async with following(world, up) as follower:
        assert await prompt(world, 1, CALL)
        await world.tools.until(1)
        yield up, follower


async def result(follower: Follower, count: int = 1) -> dict[str, Any]:
    """What the agent says that it got."""

    def results() -> list[str]:
        said = [words(frame) for frame in follower.frames]
        return [text.removeprefix("mcp-result ") for text in said if text.startswith("mcp-result ")]

    await follower.until(lambda _: len(results()) >= count)
    answer: dict[str, Any] = json.loads(results()[count - 1])
    return answer


async def test_a_call_is_answered_and_the_answer_is_known_to_have_arrived(world: World) -> None:
    up = await start(world, mcp_mode="task")
    async with following(world, up) as follower:
        assert await prompt(world, 1, CALL)
        assert await result(follower) == {"execution": "e1", "params": {"name": "t", "arguments": {"a": 1}}}
    call = await world.tools.until(1)
    assert not call.again
    async with asyncio.timeout(SOON):
        assert await call.served


async def test_calls_come_with_the_execution_that_they_are_of(world: World) -> None:
    for execution in ("e1", "e2"):
        up = await start(world, execution, mcp_mode="task")
        async with following(world, up, execution) as follower:
            await world.agents.prompt(turn(1, execution), "d1", CALL, SOON)
            assert (await result(follower))["execution"] == execution


async def test_an_agent_without_a_mode_has_no_tools(world: World) -> None:
    up = await start(world)
    async with following(world, up) as follower:
        assert await prompt(world, 1, CALL)
        assert (await result(follower))["error"]["message"] == "session/new gave no tool server"
    assert not world.tools.calls


async def test_a_call_outlives_a_lane_that_breaks(world: World) -> None:
    async with calling(world) as (_, follower):
        call = await world.tools.until(1)
        world.break_lane("e1")
        await respond(call, {"late": True})
        assert await result(follower) == {"late": True}
        assert len(world.tools.calls) == 1
        async with asyncio.timeout(SOON):
            assert await call.served


async def test_the_next_backend_gets_a_call_again_and_answers_it(world: World) -> None:
    async with calling(world) as (up, _):
        first = await world.tools.until(1)
        tools = FakeTools(echo)
        heir = world.backend(2, tools)
        await heir.known(SOON)
        follower = Follower(heir, "e1", up.journal)
        try:
            again = await tools.until(1)
            assert (again.call_id, again.again) == (first.call_id, True)
            assert (await result(follower))["execution"] == "e1"
        finally:
            await follower.close()


async def test_a_call_whose_agent_dies_is_left(world: World) -> None:
    async with calling(world) as (_, follower):
        call = await world.tools.until(1)
        await world.agents.end("e1", force=True, deadline=SOON)
        async with asyncio.timeout(SOON):
            await call.left.wait()
            assert not await call.served
        await follower.until_exited()


async def test_a_call_whose_turn_is_cancelled_is_left(world: World) -> None:
    async with calling(world) as (_, follower):
        call = await world.tools.until(1)
        assert await world.agents.cancel(turn(1), SOON)
        async with asyncio.timeout(SOON):
            await call.left.wait()
        await respond(call, {"too": "late"})
        assert await prompt(world, 2, "say next")
        await follower.until_ended(2)
        assert not [f for f in follower.frames if words(f).startswith("mcp-result")]


async def test_a_call_whose_agentctl_dies_is_left_and_its_lane_ends(world: World) -> None:
    async with calling(world):
        call = await world.tools.until(1)
        await world.kill_agentctl()
        async with asyncio.timeout(SOON):
            await call.left.wait()
        await eventually(lambda: world.lanes() == 0)


async def test_the_lane_of_an_execution_ends_with_it(world: World) -> None:
    up = await start(world, mcp_mode="task")
    async with following(world, up):
        assert world.lanes() == 1
        await world.agents.end("e1", force=False, deadline=SOON)
        await eventually(lambda: world.lanes() == 0)
        await world.agents.forget("e1", SOON)
        with pytest.raises(UnknownExecution):
            async for _ in world.agents.follow("e1", up.journal, 0, lambda: 0):
                raise AssertionError("nothing is left of it")


@pytest.mark.parametrize("kind", ["simulated", "real"])
async def test_without_any_backend_a_call_fails_after_its_time(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "SETTINGS", dataclasses.replace(worlds.SETTINGS, mcp_hold_s=0.2))
    async with worlds.world_of(kind, tmp_path) as world, calling(world) as (_, follower):
        await world.agents.leave_tools()  # type: ignore[attr-defined]
        failed = await result(follower)
    assert failed["isError"] and failed["content"][0]["text"].startswith("[INTERNAL_ERROR]")

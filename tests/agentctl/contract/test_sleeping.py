"""The contract about sleep: an idle execution is ended on request, and a busy one is not."""

import asyncio

import pytest

from kandev.core.session import Answer
from kandev.ports.execution import UnknownExecution, Unreachable
from tests.agentctl.contract.worlds import SOON, World, following, prompt, spec, start, turn

pytestmark = pytest.mark.proves("CTL-sleep")


async def test_an_idle_execution_is_ended_and_its_journal_kept(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say hi")
    async with following(world, up) as follower:
        await follower.until_ended(1)
        seen = follower.frames[-1].seq
        assert await world.agents.put_to_sleep("e1", seen, SOON) is None
        await follower.until_exited()
    assert await world.agents.put_to_sleep("e1", seen, SOON) is None, "a repeat finds it asleep"
    assert (await world.agents.end("e1", force=False, deadline=SOON)).survivors == ()
    assert not await prompt(world, 2, "say more")


async def test_its_conversation_goes_on_in_the_next_execution(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say hi")
    async with following(world, up) as follower:
        await follower.until_ended(1)
        assert await world.agents.put_to_sleep("e1", follower.frames[-1].seq, SOON) is None
    assert up.conversation is not None
    again = await start(world, "e2", resume_token=up.conversation)
    assert again.conversation == up.conversation


@pytest.mark.field("D27")
async def test_a_turn_keeps_it_awake(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say hi\nsleep 60")
    async with following(world, up) as follower:
        await follower.until_said("hi")
        assert await world.agents.put_to_sleep("e1", follower.frames[-1].seq, SOON)
        assert await world.agents.cancel(turn(1), SOON)
        assert (await follower.until_ended(1)).stop_reason == "cancelled"


async def test_an_open_permission_keeps_it_awake(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "ask remove it")
    async with following(world, up) as follower:
        asked = await follower.until_asked()
        assert await world.agents.put_to_sleep("e1", follower.frames[-1].seq, SOON)
        await world.agents.answer_permission(turn(1), asked.asked.request_id, Answer("allow_once"), SOON)
        await follower.until_ended(1)


async def test_what_was_said_and_not_seen_keeps_it_awake(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say hi")
    async with following(world, up) as follower:
        await follower.until_ended(1)
        assert await world.agents.put_to_sleep("e1", follower.frames[-1].seq - 1, SOON)
        assert await prompt(world, 2, "say still here")
        await follower.until_said("still here")


async def test_what_a_turn_left_running_keeps_it_awake(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "spawn 60")
    async with following(world, up) as follower:
        await follower.until_ended(1)
        why = await world.agents.put_to_sleep("e1", follower.frames[-1].seq, SOON)
        assert why and "still runs" in why


async def test_one_that_agentctl_does_not_know_is_said_to_be_unknown_and_not_buried(world: World) -> None:
    await start(world, "other")
    with pytest.raises(UnknownExecution):
        await world.agents.put_to_sleep("e1", 0, SOON)
    await start(world)


async def test_one_that_died_by_itself_is_over(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "exit 3")
    async with following(world, up) as follower:
        assert (await follower.until_exited()).exit_code == 3
    assert await world.agents.put_to_sleep("e1", 0, SOON) is None


async def test_a_launch_is_not_put_to_sleep(world: World) -> None:
    starting = spec(world, command=world.slow_command())
    begun = asyncio.create_task(world.agents.start(starting, SOON))
    while not await world.agents.known(SOON):
        await asyncio.sleep(0.01)
    assert await world.agents.put_to_sleep("e1", 0, SOON)
    await world.agents.end("e1", force=True, deadline=SOON)
    await asyncio.wait({begun})
    assert isinstance(begun.exception(), Exception)


async def test_a_backend_of_an_older_epoch_puts_nothing_to_sleep(world: World) -> None:
    await start(world)
    newer = world.backend(5)
    await newer.known(SOON)
    with pytest.raises(Unreachable):
        await world.agents.put_to_sleep("e1", 1, 1.0)
    assert [one.state for one in await newer.known(SOON)] == ["ready"]

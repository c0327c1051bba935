"""The contract about prompts: one answer per dispatch id, refusals for ever, the owner's epoch."""

import asyncio

import pytest

from kandev.core import inputs
from kandev.ports.execution import LaunchRefused, UnknownExecution, Unreachable
from tests.agentctl.contract.worlds import SOON, World, following, kinds, prompt, start, turn

pytestmark = pytest.mark.proves("CTL-one-suite")


@pytest.mark.proves("CTL-prompt")
async def test_a_prompt_is_taken_answered_and_ended_in_wire_order(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say hello\nthink deep")
    async with following(world, up) as follower:
        ended = await follower.until_ended(1)
    assert (ended.stop_reason, ended.error) == ("end_turn", None)
    assert kinds(follower.frames) == ["Remembered", "Taken", "Output", "Output", "Ended"]
    assert [frame.seq for frame in follower.frames] == [1, 2, 3, 4, 5]
    assert all(f.report.turn == turn(1) for f in follower.frames if isinstance(f.report, inputs.TurnReport))


@pytest.mark.proves("CTL-fence-duplicate")
@pytest.mark.field("C11", "C31")
async def test_a_repeated_dispatch_id_gets_its_first_answer_and_is_not_prompted_twice(world: World) -> None:
    up = await start(world)
    first = world.agents.prompt(turn(1), "d1", "say once", SOON)
    second = world.agents.prompt(turn(1), "d1", "say once", SOON)
    answers = await asyncio.gather(first, second)
    assert [answer.taken for answer in answers] == [True, True]
    async with following(world, up) as follower:
        await follower.until_ended(1)
        assert (await world.agents.prompt(turn(1), "d1", "say once", SOON)).taken
        assert await prompt(world, 2, "say next")
        await follower.until_ended(2)
    assert kinds(follower.frames).count("Taken") == 2


@pytest.mark.proves("CTL-fence-refusal-for-ever", "CTL-prompt", "HOLE-9")
async def test_a_refused_prompt_is_refused_for_ever_also_as_a_delayed_copy(world: World) -> None:
    await start(world)
    assert await prompt(world, 1, "sleep 60")
    busy = await world.agents.prompt(turn(2), "d2", "say two", SOON)
    assert not busy.taken
    assert busy.reason
    assert await world.agents.cancel(turn(1), SOON)
    assert not (await world.agents.prompt(turn(2), "d2", "say two", SOON)).taken
    assert not (await world.agents.prompt(turn(2), "other", "say two", SOON)).taken
    assert await prompt(world, 3, "say three")


@pytest.mark.proves("CTL-dispatch", "CTL-fence-refusal-for-ever", "HOLE-9")
async def test_a_negative_answer_about_a_dispatch_is_for_ever(world: World) -> None:
    await start(world)
    assert await world.agents.dispatched(turn(1), "d1", SOON) is False
    assert not (await world.agents.prompt(turn(1), "d1", "say late", SOON)).taken
    assert not (await world.agents.prompt(turn(1), "copy", "say late", SOON)).taken
    assert await prompt(world, 2, "say two")
    assert await world.agents.dispatched(turn(2), "d2", SOON) is True


async def test_an_older_generation_is_refused(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 5, "say five")
    async with following(world, up) as follower:
        await follower.until_ended(5)
    assert not await prompt(world, 4, "say four")
    assert await prompt(world, 6, "say six")


async def test_a_failing_prompt_ends_with_the_agents_sentence(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "fail 429 rate limit exceeded")
    async with following(world, up) as follower:
        ended = await follower.until_ended(1)
    assert "rate limit exceeded" in (ended.error or "")


@pytest.mark.proves("CTL-fence-epoch", "HOLE-14")
@pytest.mark.field("D15", "D17")
async def test_an_old_backend_can_do_nothing(world: World) -> None:
    up = await start(world)
    new = world.backend(2)
    assert await new.known(SOON)
    old = world.agents
    assert not (await old.prompt(turn(1), "d1", "say old", SOON)).taken
    with pytest.raises((LaunchRefused, Unreachable)):
        await start(world, "e2")
    for attempt in (
        old.cancel(turn(1), SOON),
        old.end("e1", force=True, deadline=SOON),
        old.forget("e1", SOON),
        old.dispatched(turn(9), "d9", SOON),
        anext(aiter(old.follow("e1", up.journal, 0, lambda: 0))),
    ):
        with pytest.raises(Unreachable):
            await attempt
    assert [one.execution for one in await new.known(SOON)] == ["e1"]
    assert (await new.prompt(turn(2), "d2", "say new", SOON)).taken


@pytest.mark.proves("CTL-fence-epoch", "CTL-fence-duplicate")
async def test_an_old_backends_copy_of_a_known_dispatch_still_gets_its_answer(world: World) -> None:
    await start(world)
    assert await prompt(world, 1, "sleep 60")
    await world.backend(2).known(SOON)
    assert (await world.agents.prompt(turn(1), "d1", "sleep 60", SOON)).taken


@pytest.mark.proves("CTL-instances", "HOLE-11")
async def test_an_unknown_execution_is_never_a_refusal(world: World) -> None:
    await start(world)
    agents, nobody = world.agents, turn(1, "nobody")
    for attempt in (
        agents.prompt(nobody, "d1", "say x", SOON),
        agents.dispatched(nobody, "d1", SOON),
        agents.cancel(nobody, SOON),
        agents.end("nobody", force=False, deadline=SOON),
        anext(aiter(agents.follow("nobody", "no-journal", 0, lambda: 0))),
    ):
        with pytest.raises(UnknownExecution):
            await attempt

"""The contract about executions and their journals: identity, tombstones, ends, replay."""

import asyncio

import pytest

from kandev.core import inputs
from kandev.execution.following import ACKNOWLEDGE_EVERY_S
from kandev.ports.execution import LaunchRefused, UnknownExecution, Unreachable
from tests.agentctl.contract.worlds import (
    SOON,
    World,
    eventually,
    following,
    kinds,
    prompt,
    spec,
    start,
    turn,
)

pytestmark = pytest.mark.proves("CTL-one-suite")


@pytest.mark.proves("CTL-fence-instance-id", "CTL-instances")
@pytest.mark.field("C57", "D17")
async def test_a_repeated_start_answers_the_same_execution(world: World) -> None:
    first, second = await asyncio.gather(start(world), start(world))
    assert first == second == await start(world)
    running = await world.agents.known(SOON)
    assert [(one.execution, one.session_id, one.state) for one in running] == [("e1", "s1", "ready")]


@pytest.mark.proves("CTL-fence-instance-id", "HOLE-10")
async def test_a_start_that_was_overtaken_by_its_end_is_refused(world: World) -> None:
    await start(world, "other")
    with pytest.raises(UnknownExecution):
        await world.agents.end("e1", force=False, deadline=SOON)
    with pytest.raises(LaunchRefused):
        await start(world)


@pytest.mark.proves("CTL-fence-instance-id")
@pytest.mark.field("A31")
async def test_an_end_beside_a_start_leaves_no_process_whichever_comes_first(world: World) -> None:
    await start(world, "other")
    end = world.agents.end("e1", force=False, deadline=SOON)
    refused, _ = await asyncio.gather(start(world), end, return_exceptions=True)
    assert isinstance(refused, LaunchRefused)
    running = await world.agents.known(SOON)
    assert [one.execution for one in running if one.state in ("starting", "ready")] == ["other"]


@pytest.mark.proves("CTL-fence-instance-id")
async def test_a_forgotten_execution_does_not_start_again(world: World) -> None:
    await start(world)
    await world.agents.forget("e1", SOON)
    await world.agents.forget("e1", SOON)
    assert await world.agents.known(SOON) == ()
    with pytest.raises(LaunchRefused):
        await start(world)
    with pytest.raises(UnknownExecution):
        await world.agents.cancel(turn(1), SOON)


@pytest.mark.proves("CTL-stop", "CTL-process-exited", "HOLE-15")
async def test_an_end_keeps_the_journal_and_its_last_frame_is_the_exit(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say hi\ndeaf 60")
    down = await world.agents.end("e1", force=False, deadline=SOON)
    again = await world.agents.end("e1", force=False, deadline=SOON)
    assert down == again
    async with following(world, up) as follower:
        await follower.until_exited()
    assert follower.frames[-1].seq == down.last_seq
    assert down.journal == up.journal
    assert down.survivors == ()
    assert not (await world.agents.prompt(turn(2), "d2", "say more", SOON)).taken


@pytest.mark.proves("CTL-process-exited", "HOLE-15")
@pytest.mark.field("B41")
async def test_an_agent_that_exits_in_a_turn_is_reported_after_all_it_said(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say last words\nexit 3")
    async with following(world, up) as follower:
        exited = await follower.until_exited()
        assert exited.exit_code == 3
    assert kinds(follower.frames) == ["Remembered", "Taken", "Output", "Exited"]
    assert await world.agents.dispatched(turn(1), "d1", SOON) is True
    assert await world.agents.cancel(turn(1), SOON)
    assert not await prompt(world, 2, "say more")


@pytest.mark.field("A31")
async def test_an_end_during_the_start_leaves_nothing(world: World) -> None:
    starting = asyncio.create_task(start(world, command=world.slow_command()))
    while not await world.agents.known(SOON):
        await asyncio.sleep(0.01)
    down = await world.agents.end("e1", force=True, deadline=SOON)
    assert down.survivors == ()
    await asyncio.wait({starting})
    assert all(one.state in ("ended", "failed") for one in await world.agents.known(SOON))


@pytest.mark.proves("CTL-stream")
async def test_a_follower_goes_on_behind_what_it_has_committed(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say one\nsay two")
    async with following(world, up) as follower:
        await follower.until_ended(1)
    async with following(world, up, after=3) as second:
        await second.until_ended(1)
    assert [frame.seq for frame in second.frames] == [4, 5]


@pytest.mark.proves("CTL-stream", "HOLE-13")
async def test_what_was_not_committed_is_sent_again(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say one")
    async with following(world, up, commits=False) as follower:
        await follower.until_ended(1)
    async with following(world, up) as second:
        await second.until_ended(1)
    assert second.frames == follower.frames


@pytest.mark.proves("CTL-fence-journal-id", "HOLE-12")
async def test_another_journal_means_that_the_execution_is_gone(world: World) -> None:
    await start(world)
    with pytest.raises(UnknownExecution):
        await anext(aiter(world.agents.follow("e1", "another", 0, lambda: 0)))


async def test_a_stream_that_has_nothing_to_acknowledge_is_not_woken(world: World) -> None:
    up = await start(world)
    frames: list[inputs.Frame] = []
    looks = 0

    def committed() -> int:
        nonlocal looks
        looks += 1
        return frames[-1].seq if frames else 0

    async def follow() -> None:
        async for frame in world.agents.follow("e1", up.journal, 0, committed):
            frames.append(frame)

    following = asyncio.create_task(follow())
    await eventually(lambda: bool(frames))
    await asyncio.wait({following}, timeout=20 * ACKNOWLEDGE_EVERY_S)  # nothing comes in so long a time
    following.cancel()
    await asyncio.wait({following})
    assert len(frames) == 1
    assert looks < 5


async def test_following_a_deleted_execution_ends(world: World) -> None:
    up = await start(world)
    async with following(world, up) as follower:
        await follower.until(lambda f: f.seq == 1)
        await world.agents.forget("e1", SOON)
        await asyncio.wait({follower.task}, timeout=SOON)
        if follower.frames and isinstance(follower.frames[-1].report, inputs.Exited):
            return
        with pytest.raises(UnknownExecution):
            follower.task.result()


@pytest.mark.field("D11")
async def test_a_killed_agentctl_leaves_journals_and_true_answers(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say hi\nsleep 60")
    async with following(world, up) as follower:
        await follower.until_said("hi")
    await world.kill_agentctl()
    assert [one.state for one in await world.agents.known(SOON)] in ([], ["ended"])
    async with following(world, up) as second:
        await second.until_exited()
    assert await world.agents.dispatched(turn(1), "d1", SOON) is True
    assert await world.agents.dispatched(turn(2), "d2", SOON) is False
    assert (await start(world)).journal == up.journal
    assert (await world.agents.end("e1", force=False, deadline=SOON)).survivors == ()


@pytest.mark.proves("SURVIVE-unknown-entry")
async def test_nobody_can_tell_what_became_of_a_prompt_that_was_written_when_agentctl_was_killed(
    world: World,
) -> None:
    up = await start(world)
    await world.freeze("e1")
    writing = asyncio.create_task(prompt(world, 1, "say " + "x" * 1_000_000))
    await world.until_writing("e1")
    assert await world.agents.dispatched(turn(1), "d1", SOON) is None
    await world.kill_agentctl()
    with pytest.raises(Unreachable):
        await writing
    for _ in range(2):
        assert await world.agents.dispatched(turn(1), "d1", SOON) is None
        with pytest.raises(Unreachable):
            await world.agents.prompt(turn(1), "d1", "say again", SOON)
    async with following(world, up) as follower:
        assert (await follower.until_exited()).exit_code is None
    assert "Taken" not in kinds(follower.frames)


@pytest.mark.proves("SURVIVE-agentctl-kill")
async def test_a_launch_that_was_cut_off_by_the_death_of_agentctl_begins_anew(world: World) -> None:
    starting = asyncio.create_task(start(world, command=world.slow_command()))
    while not await world.agents.known(SOON):
        await asyncio.sleep(0.01)
    await world.kill_agentctl()
    with pytest.raises(Unreachable):
        await starting
    world.launch_at_once()
    up = await start(world)
    assert await prompt(world, 1, "say hello")
    async with following(world, up) as follower:
        await follower.until_said("hello")


async def test_a_backend_that_lets_go_ends_idle_agents_and_leaves_turns(world: World) -> None:
    await start(world, "idle")
    await start(world, "e1")
    assert await prompt(world, 1, "sleep 60")
    assert await world.agents.close(stop_agents=False, deadline=SOON) == 1
    states = {one.execution: one.state for one in await world.agents.known(SOON)}
    assert states == {"idle": "ended", "e1": "ready"}


async def test_a_failed_launch_says_why(world: World) -> None:
    wrong = spec(world, command=world.wrong_command())
    with pytest.raises(LaunchRefused) as refused:
        await world.agents.start(wrong, SOON)
    assert "no such program" in str(refused.value).lower().replace("-", " ")
    with pytest.raises(LaunchRefused):
        await world.agents.start(wrong, SOON)

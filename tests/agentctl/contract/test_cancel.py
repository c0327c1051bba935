"""The contract about cancels and permissions."""

import asyncio

import pytest

from kandev.core import inputs
from kandev.core.session import Answer
from tests.agentctl.contract.worlds import SOON, World, following, kinds, prompt, start, turn, words

pytestmark = pytest.mark.proves("CTL-one-suite")


@pytest.mark.proves(
    "CTL-cancel", "CANCEL-process-lives", "CANCEL-layer-agentctl-server", "CANCEL-layer-agentctl-client"
)
async def test_a_cancelled_turn_ends_and_the_same_process_takes_the_next_prompt(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say hi\nsleep 60")
    assert await world.agents.cancel(turn(1), SOON)
    assert await prompt(world, 2, "say again")
    async with following(world, up) as follower:
        assert (await follower.until_ended(1)).stop_reason == "cancelled"
        assert (await follower.until_ended(2)).stop_reason == "end_turn"
    assert "Exited" not in kinds(follower.frames)


@pytest.mark.proves("CTL-fence-cancel-generation", "HOLE-16")
@pytest.mark.field("B19")
async def test_a_cancel_that_overtakes_its_prompt_makes_it_void(world: World) -> None:
    await start(world)
    assert await world.agents.cancel(turn(1), SOON)
    assert not await prompt(world, 1, "say late")
    assert await prompt(world, 2, "say next")


@pytest.mark.proves("CTL-cancel")
@pytest.mark.field("A21", "B07")
async def test_a_cancel_of_an_ended_turn_is_true_and_hits_nobody(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say one")
    async with following(world, up) as follower:
        await follower.until_ended(1)
        assert await prompt(world, 2, "stream 20 20")
        assert await world.agents.cancel(turn(1), SOON)
        assert (await follower.until_ended(2)).stop_reason == "end_turn"


@pytest.mark.proves("CTL-cancel", "TURN-repeated")
@pytest.mark.field("A35")
async def test_a_lost_cancel_is_repeated(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "lose 2\nsleep 60")
    assert await world.agents.cancel(turn(1), SOON)
    async with following(world, up) as follower:
        assert (await follower.until_ended(1)).stop_reason == "cancelled"


@pytest.mark.proves("CTL-cancel")
@pytest.mark.field("A19", "B23")
async def test_an_agent_that_ignores_the_cancel_is_reported_as_not_acknowledging(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "deaf 60")
    answers = await asyncio.gather(*(world.agents.cancel(turn(1), SOON) for _ in range(3)))
    assert answers == [False, False, False]
    async with following(world, up) as follower:
        down = await world.agents.end("e1", force=True, deadline=SOON)
        await follower.until_exited()
    assert down.survivors == ()
    assert "Ended" not in kinds(follower.frames)


@pytest.mark.field("B11", "A19")
async def test_a_prompt_that_is_never_answered_is_given_up_after_its_cancel(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "silent")
    answers = await asyncio.gather(*(world.agents.cancel(turn(1), SOON) for _ in range(30)))
    assert set(answers) == {False}
    async with following(world, up) as follower:
        assert (await world.agents.end("e1", force=False, deadline=SOON)).survivors == ()
        await follower.until_exited()
    assert "Ended" not in kinds(follower.frames)


@pytest.mark.field("A23", "B07")
async def test_a_cancel_by_an_old_name_spares_the_turn_that_runs_and_one_by_its_own_ends_it(
    world: World,
) -> None:
    up = await start(world)
    assert await prompt(world, 1, "say one")
    async with following(world, up) as follower:
        await follower.until_ended(1)
        assert await prompt(world, 2, "say two\nsleep 60")
        await follower.until_said("two")
        for _ in range(5):
            assert await world.agents.cancel(turn(1), SOON)
        assert "Ended" not in kinds(follower.frames)[kinds(follower.frames).index("Ended") + 1 :]
        assert await world.agents.cancel(turn(2), SOON)
        assert (await follower.until_ended(2)).stop_reason == "cancelled"


async def test_a_slow_agents_profile_gives_it_more_time(world: World) -> None:
    await start(world, cancel_acknowledge_s=5.0)
    assert await prompt(world, 1, "late 1")
    assert await world.agents.cancel(turn(1), SOON)


@pytest.mark.field("A21")
async def test_an_agent_that_lies_about_the_cancel_ends_its_turn_all_the_same(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "lie 60")
    assert await world.agents.cancel(turn(1), SOON)
    async with following(world, up) as follower:
        assert (await follower.until_ended(1)).stop_reason == "end_turn"


@pytest.mark.proves("CTL-permission")
async def test_a_permission_is_answered_once_and_a_repeated_answer_is_settled(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "ask May I")
    async with following(world, up) as follower:
        asked = (await follower.until_asked()).asked
        for _ in range(2):
            await world.agents.answer_permission(turn(1), asked.request_id, Answer("allow_once"), SOON)
        await follower.until_said("outcome: selected allow_once")
        await follower.until_ended(1)
    done = [f.report for f in follower.frames if isinstance(f.report, inputs.PermissionDone)]
    assert [(one.by, one.option_id) for one in done] == [("client", "allow_once")]


@pytest.mark.proves("CTL-permission")
@pytest.mark.field("B47")
async def test_a_rejected_permission_takes_the_agents_reject_option(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "ask May I")
    async with following(world, up) as follower:
        asked = (await follower.until_asked()).asked
        await world.agents.answer_permission(turn(1), asked.request_id, Answer(rejected=True), SOON)
        await follower.until_said("outcome: selected reject_once")


@pytest.mark.proves("CTL-auto-approve")
async def test_an_automatic_approval_takes_the_narrower_option(world: World) -> None:
    up = await start(world, auto_approve=True)
    assert await prompt(world, 1, "ask May I")
    async with following(world, up) as follower:
        await follower.until_said("outcome: selected allow_once")


@pytest.mark.proves("CTL-fence-own-permissions", "TURN-open-permission", "HOLE-18")
@pytest.mark.field("B33", "B35")
async def test_a_cancel_answers_the_open_permission_first(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "ask May I\nsleep 60")
    async with following(world, up) as follower:
        await follower.until_asked()
        assert await world.agents.cancel(turn(1), SOON)
        await follower.until_ended(1)
    assert any(words(frame) == "outcome: cancelled" for frame in follower.frames)
    done = [f.report for f in follower.frames if isinstance(f.report, inputs.PermissionDone)]
    assert [(one.outcome, one.by) for one in done] == [("cancelled", "cancel")]


@pytest.mark.field("B37")
async def test_a_late_decision_does_not_fit_a_request_of_the_next_process(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "ask May I")
    async with following(world, up) as follower:
        old = (await follower.until_asked()).asked.request_id
    await world.agents.end("e1", force=True, deadline=SOON)
    again = await start(world, "e2")
    assert (await world.agents.prompt(turn(2, "e2"), "d2", "ask May I\nsay done", SOON)).taken
    async with following(world, again, "e2") as second:
        asked = (await second.until_asked()).asked.request_id
        assert asked != old
        await world.agents.answer_permission(turn(2, "e2"), old, Answer("allow_once"), SOON)
        await world.agents.answer_permission(turn(2, "e2"), asked, Answer(rejected=True), SOON)
        await second.until_said("outcome: selected reject_once")


@pytest.mark.proves("CTL-fence-own-permissions", "HOLE-18")
@pytest.mark.field("B33")
async def test_a_permission_asked_under_a_cancel_is_answered_by_agentctl(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "deaf 0.3\nask May I")
    async with following(world, up) as follower:
        assert await world.agents.cancel(turn(1), SOON)
        await follower.until_ended(1)
    assert any(words(frame) == "outcome: cancelled" for frame in follower.frames)
    done = [f.report for f in follower.frames if isinstance(f.report, inputs.PermissionDone)]
    assert [(one.outcome, one.by) for one in done] == [("cancelled", "cancel")]


@pytest.mark.field("B05")
async def test_late_words_of_an_ended_turn_stay_its_own(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "echo-after 2\nsay first")
    async with following(world, up) as follower:
        await follower.until_ended(1)
        await follower.until(lambda f: kinds(follower.frames).count("Output") == 3)
    outputs = [f.report for f in follower.frames if isinstance(f.report, inputs.Output)]
    assert [one.turn for one in outputs] == [turn(1)] * 3
    assert kinds(follower.frames)[-1] == "Output"


@pytest.mark.proves("HOLE-23")
async def test_a_turn_that_the_agent_begins_by_itself_is_reported_with_its_end(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "wake 0.6 good morning")
    async with following(world, up) as follower:
        began = await follower.until(lambda f: isinstance(f.report, inputs.OwnTurn))
        ended = await follower.until_ended(0)
    assert isinstance(began.report, inputs.OwnTurn)
    assert began.report.turn.generation == 0
    assert began.report.turn.own
    assert ended.turn == began.report.turn
    assert ended.stop_reason == "idle"


async def test_a_prompt_ends_the_agents_own_turn_first(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "wake 0.6 good morning")
    async with following(world, up) as follower:
        await follower.until(lambda f: isinstance(f.report, inputs.OwnTurn))
        assert await prompt(world, 2, "say two")
        await follower.until_ended(2)
    said = kinds(follower.frames)
    assert said.index("OwnTurn") < said.index("Ended", said.index("OwnTurn")) < said.index("Taken", 3)


@pytest.mark.field("B49")
async def test_an_own_turn_is_cancelled_by_its_own_id(world: World) -> None:
    up = await start(world)
    assert await prompt(world, 1, "wake 0.6 good morning")
    async with following(world, up) as follower:
        began = await follower.until(lambda f: isinstance(f.report, inputs.OwnTurn))
        assert isinstance(began.report, inputs.OwnTurn)
        assert await world.agents.cancel(began.report.turn, SOON)
        await follower.until_ended(0)
        assert await world.agents.cancel(began.report.turn, SOON)
    assert await prompt(world, 2, "say two")

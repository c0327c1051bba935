"""The rows S of the race matrix: a stop against everything that can happen at the same moment."""

from __future__ import annotations

import asyncio

import pytest

from kandev.core.errors import NotFound
from kandev.core.session import Launch
from kandev.usecases import cancel_turn, launch_session, recover_session, stop_session, stop_task
from tests.simulation.faults import Armed
from tests.simulation.story import Story, in_every_order


def stopping(story: Story, session: str) -> asyncio.Task[None]:
    """Ask for a stop."""
    return story.ask(stop_session.stop_session(story.ctx, session_id=session))


async def cannot_stop(story: Story, session: str) -> None:
    """A stop is refused, and nothing at all is changed by it."""
    before = story.everything()
    with pytest.raises(NotFound, match="execution not found"):
        await stopping(story, session)
    assert story.everything() == before


@pytest.mark.proves("STOP-running", "STOP-nothing-runs", "INV-6", "INV-7", "STATE-one-event")
@in_every_order
async def test_s1_a_running_session_is_cancelled_before_its_process_is_touched(story: Story) -> None:
    session = await story.launched("sleep 300")
    end = story.faults.gate("end", "before")
    await stopping(story, session)
    assert story.state(session) == "CANCELLED"
    assert story.moves(session) == [
        ("CREATED", "STARTING"),
        ("STARTING", "RUNNING"),
        ("RUNNING", "CANCELLED"),
    ]
    assert story.task_state() == "REVIEW"
    assert story.world.living(session)
    end.open()
    await story.until(lambda: story.value(session).launch is Launch.ABSENT)
    assert not story.world.living(session)
    await cannot_stop(story, session)
    await story.calm()


@pytest.mark.proves("STOP-waiting")
@in_every_order
async def test_s2_a_waiting_session_whose_process_lives_is_cancelled(story: Story) -> None:
    session = await story.launched()
    await stopping(story, session)
    assert story.state(session) == "CANCELLED"
    await story.calm()
    assert not story.world.living()


@pytest.mark.proves("STOP-nothing-runs", "INV-7")
@in_every_order
async def test_s3_a_session_that_was_never_started_or_has_no_process_is_not_running(story: Story) -> None:
    prepared = await launch_session.launch_session(story.ctx, task_id="t2", intent="prepare")
    await cannot_stop(story, prepared.session_id)
    asleep = await story.launched("exit 0")
    await story.until(lambda: story.value(asleep).launch is Launch.ABSENT)
    await cannot_stop(story, asleep)
    await story.calm()


@pytest.mark.proves("STOP-retry", "INV-5")
@in_every_order
async def test_s3b_a_session_between_a_refused_prompt_and_its_retry_is_stopped(story: Story) -> None:
    session = await story.launched()
    story.faults.quiet = True  # the retry comes after a second: nothing else may be slow
    story.faults.armed.append(Armed("agentctl", "prompt", "before"))
    story.message(session)
    await story.until(lambda: story.value(session).retry)
    story.world.kill_agent(story.value(session).execution)
    await story.until(lambda: story.value(session).launch is Launch.ABSENT)
    assert story.value(session).retry, "the retry came before the stop: the story does not hold"
    await stopping(story, session)
    assert story.state(session) == "CANCELLED"
    await asyncio.sleep(120)
    assert story.value(session).executions == 1
    assert story.fates(session)["m2"] == "queued"
    await story.calm()


@pytest.mark.proves("STOP-before-end", "INV-3", "INV-5")
@pytest.mark.field("B27", "C05")
@in_every_order
async def test_s5_an_end_that_waits_behind_the_stop_drains_nothing(story: Story) -> None:
    session = await story.launched("sleep 300")
    waiting = story.message(session)
    assert (await waiting).status == "queued"
    commit = story.faults.gate("store", "write")
    stop = stopping(story, session)
    await commit.reached.wait()
    await story.world.executions[story.value(session).execution].prompt_over("end_turn", None)
    commit.open()
    await stop
    await story.until(lambda: story.value(session).launch is Launch.ABSENT)
    assert story.state(session) == "CANCELLED"
    assert story.handed() == ["m1"]
    assert story.fates(session)["m2"] == "queued"
    await story.calm()


@pytest.mark.proves("STOP-over-cancel", "TURN-stop-meanwhile", "INV-8")
@pytest.mark.field("A11", "B01")
@in_every_order
async def test_s7_a_stop_wins_over_the_cancel_of_a_deaf_agent_and_is_answered_at_once(story: Story) -> None:
    session = await story.launched("deaf 300")
    cancel = story.ask(cancel_turn.cancel_turn(story.ctx, session_id=session))
    await story.until(lambda: story.value(session).cancelling)
    story.faults.quiet = True
    began = story.now
    await stopping(story, session)
    assert story.now - began <= 1
    assert story.state(session) == "CANCELLED"
    assert (await cancel).success
    await story.calm()


@pytest.mark.proves("STOP-claimed", "INV-2", "INV-5")
@pytest.mark.field("B01", "C03")
@in_every_order
async def test_s8_a_claimed_message_whose_hand_over_had_not_begun_returns_to_its_place(story: Story) -> None:
    session = await story.launched()
    prompt = story.faults.gate("prompt", "before")
    story.message(session)
    await prompt.reached.wait()
    story.message(session)
    await story.until(lambda: "m3" in story.fates(session))
    await stopping(story, session)
    await story.until(lambda: story.value(session).launch is Launch.ABSENT)
    assert story.fates(session) == {"m1": "delivered", "m2": "queued", "m3": "queued"}
    prompt.open()
    await story.calm()
    assert story.handed() == ["m1"]


@pytest.mark.proves("STOP-claimed", "INV-2")
@in_every_order
async def test_s8_a_message_that_the_agent_had_taken_was_delivered_to_the_stopped_turn(story: Story) -> None:
    session = await story.launched()
    answer = story.faults.gate("prompt", "after")
    story.message(session, "sleep 300")
    await answer.reached.wait()
    await stopping(story, session)
    await story.until(lambda: story.value(session).launch is Launch.ABSENT)
    assert story.fates(session) == {"m1": "delivered", "m2": "delivered"}
    await story.calm()


@pytest.mark.proves("STOP-death", "INV-6", "STATE-terminal")
@in_every_order
async def test_s9_a_process_that_dies_between_the_commit_and_the_teardown_is_no_failure(story: Story) -> None:
    session = await story.launched("sleep 300")
    end = story.faults.gate("end", "before")
    await stopping(story, session)
    await end.reached.wait()
    story.world.kill_agent(story.value(session).execution)
    await asyncio.sleep(5)
    assert story.state(session) == "CANCELLED"
    end.open()
    await story.calm()
    assert (story.state(session), story.value(session).executions) == ("CANCELLED", 1)


@pytest.mark.proves("STOP-latecomer")
@in_every_order
async def test_s10_a_session_that_is_launched_after_the_list_was_read_escapes(story: Story) -> None:
    """The documented boundary of the first version."""
    old = await story.launched("sleep 300")
    commit = story.faults.gate("store", "write")
    stop = story.ask(stop_task.stop_task(story.ctx, task_id="t1"))
    await commit.reached.wait()
    launch = story.ask(launch_session.launch_session(story.ctx, task_id="t1", prompt="say m2\nsleep 20"))
    commit.open()
    assert (await stop).stopped == (old,)
    fresh = (await launch).session_id
    await story.until(lambda: story.running(fresh))
    assert (story.state(old), story.task_state()) == ("CANCELLED", "IN_PROGRESS")
    await story.calm()
    assert story.task_state() == "REVIEW"


@pytest.mark.proves("STOP-starting", "INV-5")
@pytest.mark.field("A31", "A35")
@in_every_order
async def test_s10b_a_launch_under_way_is_rolled_back_when_it_comes_back(story: Story) -> None:
    story.world.launch_s = 30
    launched = await launch_session.launch_session(story.ctx, task_id="t1", prompt="say m1")
    session = launched.session_id
    assert story.state(session) == "STARTING"
    await stopping(story, session)
    assert story.state(session) == "CANCELLED"
    await story.calm()
    await asyncio.sleep(60)
    assert not story.world.living()
    assert story.fates(session) == {"m1": "queued"}
    resumed = await recover_session.recover_session(story.ctx, session_id=session)
    assert resumed.queued == 1
    await story.until(lambda: story.handed() == ["m1"])
    await story.until(lambda: story.value(session).turn is None)


@pytest.mark.proves("STOP-caller-gone", "INV-6")
@pytest.mark.field("D07")
@in_every_order
async def test_s11_the_teardown_completes_although_the_caller_went_away(story: Story) -> None:
    session = await story.launched("deaf 300")
    end = story.faults.gate("end", "before")
    stop = stopping(story, session)
    await story.until(lambda: story.state(session) == "CANCELLED")
    stop.cancel()
    await end.reached.wait()
    end.open()
    await story.calm()
    assert not story.world.living()


@pytest.mark.proves("STOP-hanging-teardown", "INV-8")
@in_every_order
async def test_s13_a_teardown_that_hangs_delays_no_answer_and_leftovers_are_named(story: Story) -> None:
    story.world.end_s, story.world.survivors = 7, ("4711 sleeper",)
    session = await story.launched("sleep 300")
    story.faults.quiet = True
    began = story.now
    await stopping(story, session)
    assert story.now - began <= 1
    await story.until(lambda: story.value(session).launch is Launch.ABSENT)
    assert story.now - began >= 7
    assert any("4711 sleeper" in line for line in story.lines(session))
    await story.calm()

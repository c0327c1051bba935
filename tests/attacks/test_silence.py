"""Agents that hang, with their input open or closed, at each step of the protocol: nothing waits for ever."""

import asyncio

import pytest

from tests.attacks.steps import IN_TURN, LARGE, STARTING, Case, case, unless_unknown
from tests.e2e.kandev import Kandev
from tests.e2e.scenes import get, said, until_holds

pytestmark = pytest.mark.proves("SURVIVE-hostile-agent-silence")
HOWS = ("hang", "shut")


async def ended_by_a_cancel(one: Case) -> None:
    """The way out of a silence: the cancel is not acknowledged, and the process is replaced."""
    answer = await one.cancel()
    assert (answer["success"], answer["error"]) == (False, "cancel timed out, still under way")
    assert (await one.turn_over())["cause"] == "user"
    await one.until_gone()
    assert await one.state() == "WAITING_FOR_INPUT"
    await one.answers_the_next_message()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("step", STARTING)
async def test_before_it_is_ready_the_start_fails_at_its_deadline_and_can_be_tried_again(
    house: Kandev, how: str, step: str
) -> None:
    async with case(house, how, step) as one:
        await one.events.state("FAILED")
        (line,) = await one.errors()
        assert "was not ready within 4 s" in line
        await one.until_gone()
        await house.call("session.recover", {"session_id": one.session_id})
        await one.heard("first done")


async def test_while_a_wish_is_set_the_start_goes_on_without_it(house: Kandev) -> None:
    async with case(house, "hang", "session/set_model") as one:
        await until_holds(lambda: _noticed(one), "it is said that the wish was not set")
        await one.until_state("RUNNING")  # the hanging agent takes the first message too
        await one.cancel()
        await one.until_gone()


async def _noticed(one: Case) -> bool:
    told = await said(one.house, one.session_id, "system", "status")
    return any("The model 'm' was not set" in line for line in told)


@pytest.mark.parametrize("how", [*HOWS, "history"])
async def test_while_it_takes_up_its_conversation_the_message_waits_parked_at_the_deadline(
    house: Kandev, how: str
) -> None:
    async with case(house, how, "session/load") as one:
        await one.turn_over()
        await one.say("leave")
        await one.turn_over()
        assert await unless_unknown(asyncio.create_task(one.say("again"))) == "queued"
        await one.until_state("WAITING_FOR_INPUT")
        assert "was not ready within 4 s" in (await get(house, one.session_id))["parked_reason"]
        await one.until_gone()
        await one.answers_the_next_message()
        await one.heard("again done")


@pytest.mark.parametrize("how", HOWS)
async def test_while_it_takes_a_prompt_its_input_is_given_up_at_the_deadline(house: Kandev, how: str) -> None:
    async with case(house, how, "taking") as one:
        await one.turn_over()
        asking = asyncio.create_task(one.say(LARGE))
        assert (await one.turn_over())["cause"] == "lost"
        assert await unless_unknown(asking) == "unknown"
        await one.until_gone()
        await one.answers_the_next_message()


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("step", IN_TURN)
async def test_in_a_turn_nothing_is_ended_by_silence_and_a_cancel_is_the_way_out(
    house: Kandev, how: str, step: str
) -> None:
    async with case(house, how, step) as one:
        await one.turn_over()
        assert (await one.say("step"))["status"] == "sent"
        waits = {"permission": "permission"}.get(step)
        await until_holds(lambda: _waits_for(one, waits), f"it waits for {waits}")
        explained = await house.call("session.explain", {"session_id": one.session_id})
        assert (explained["state"], explained["phase"]) == ("RUNNING", "running")
        await ended_by_a_cancel(one)


async def _waits_for(one: Case, what: str | None) -> bool:
    session = await get(one.house, one.session_id)
    return session["state"] == "RUNNING" and session.get("waiting_for") == what


@pytest.mark.parametrize("how", HOWS)
async def test_at_the_cancel_the_process_is_replaced(house: Kandev, how: str) -> None:
    async with case(house, how, "session/cancel") as one:
        await one.turn_over()
        await one.say("stay")
        await one.heard("I stay.")
        await ended_by_a_cancel(one)


@pytest.mark.parametrize("how", HOWS)
async def test_after_a_cancel_the_next_turn_is_silent_or_lost_and_has_its_way_out(
    house: Kandev, how: str
) -> None:
    async with case(house, how, "cancelled") as one:
        await one.turn_over()
        await one.say("stay")
        await one.heard("I stay.")
        assert (await one.cancel())["success"]
        await one.turn_over()
        if how == "hang":
            assert (await one.say("hello"))["status"] == "sent"
            await ended_by_a_cancel(one)
        else:  # its input is closed: the prompt cannot be written, and nobody can tell
            asking = asyncio.create_task(one.say("hello"))
            assert (await one.turn_over())["cause"] == "lost"
            assert await unless_unknown(asking) == "unknown"
            await one.until_gone()
            await one.answers_the_next_message()


@pytest.mark.parametrize("how", HOWS)
async def test_while_it_is_ended_it_is_killed_and_nobody_waits_for_it(house: Kandev, how: str) -> None:
    async with case(house, how, "teardown") as one:
        await one.turn_over()
        await house.call("session.stop", {"session_id": one.session_id})
        assert await one.state() == "CANCELLED"
        await one.until_gone()
        assert await one.errors() == []

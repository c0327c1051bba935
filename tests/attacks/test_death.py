"""Agents that die, are killed or fall mute at each step of the protocol: it is told, and nothing is left."""

import asyncio

import pytest

from tests.attacks.steps import IN_TURN, LARGE, STARTING, WORDS, Case, case, unless_unknown
from tests.e2e.kandev import Kandev
from tests.e2e.scenes import get, said

pytestmark = pytest.mark.proves("SURVIVE-hostile-agent-death")
HOWS = ("exit", "kill", "mute")
CODES = {"exit": 7, "kill": -9}


async def told(one: Case, how: str, step: str) -> None:
    """The chat says how the process ended, and its last words."""
    line = (await one.errors())[-1]
    assert f"{WORDS} {step}" in line, line
    if how in CODES:
        assert f"code {CODES[how]}" in line, line


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("step", STARTING)
async def test_before_it_is_ready_the_start_fails_with_its_last_words_and_can_be_tried_again(
    house: Kandev, how: str, step: str
) -> None:
    async with case(house, how, step) as one:
        await one.events.state("FAILED")
        await told(one, how, step)
        await one.until_gone()
        session = await get(house, one.session_id)
        assert session["queue"]["count"] == 1, "the message waits"
        await house.call("session.recover", {"session_id": one.session_id})
        await one.heard("first done")


@pytest.mark.parametrize("how", HOWS)
async def test_while_a_wish_is_set_the_start_fails_like_any_other(house: Kandev, how: str) -> None:
    async with case(house, how, "session/set_model") as one:
        await one.events.state("FAILED")
        await told(one, how, "session/set_model")
        await one.until_gone()


@pytest.mark.parametrize("how", HOWS)
async def test_while_it_takes_up_its_conversation_the_message_waits_parked_with_the_reason(
    house: Kandev, how: str
) -> None:
    async with case(house, how, "session/load") as one:
        await one.turn_over()
        await one.say("leave")
        assert (await one.turn_over())["cause"] == "process"
        assert await unless_unknown(asyncio.create_task(one.say("again"))) == "queued"
        await one.until_state("WAITING_FOR_INPUT")
        await told(one, how, "session/load")
        await one.until_gone()
        session = await get(house, one.session_id)
        assert "did not start" in session["parked_reason"] and session["queue"]["count"] == 1
        await one.answers_the_next_message()
        await one.heard("again done")


@pytest.mark.parametrize("how", HOWS)
async def test_while_it_takes_a_prompt_nobody_can_tell_and_that_is_said(house: Kandev, how: str) -> None:
    async with case(house, how, "taking") as one:
        await one.turn_over()
        asking = asyncio.create_task(one.say(LARGE))
        assert (await one.turn_over())["cause"] == "lost"
        assert await unless_unknown(asking) == "unknown"
        await one.until_gone()
        errors = await one.errors()
        assert any(f"{WORDS} taking" in line for line in errors), errors
        assert any("nobody can tell" in line.lower() for line in errors), errors
        await one.answers_the_next_message()
        assert not any("step done" in words for words in await said(house, one.session_id)), "not sent again"


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("step", IN_TURN)
async def test_in_a_turn_the_turn_ends_with_exit_code_and_last_words_in_the_chat(
    house: Kandev, how: str, step: str
) -> None:
    async with case(house, how, step) as one:
        await one.turn_over()
        assert (await one.say("step"))["status"] == "sent"
        ended = await one.turn_over()
        assert (ended["cause"], ended["stop_reason"]) == ("process", "process_ended")
        await told(one, how, step)
        await one.until_gone()
        assert await one.state() == "WAITING_FOR_INPUT"
        requests = [m for m in await house.messages(one.session_id) if m["type"] == "permission_request"]
        assert all(request["metadata"]["status"] == "cancelled" for request in requests)
        assert len(requests) == (step == "permission")
        await one.answers_the_next_message()


@pytest.mark.parametrize("how", HOWS)
async def test_under_a_cancel_the_turn_counts_as_cancelled(house: Kandev, how: str) -> None:
    async with case(house, how, "session/cancel") as one:
        await one.turn_over()
        await one.say("stay")
        await one.heard("I stay.")
        assert (await one.cancel())["success"]
        assert (await one.turn_over())["cause"] == "user"
        await one.until_gone()
        assert "Turn cancelled by user." in await said(house, one.session_id, "system", "status")
        await one.answers_the_next_message()


@pytest.mark.parametrize("how", HOWS)
async def test_after_a_cancel_only_the_next_message_needs_a_new_process(house: Kandev, how: str) -> None:
    async with case(house, how, "cancelled") as one:
        await one.turn_over()
        await one.say("stay")
        await one.heard("I stay.")
        assert (await one.cancel())["success"]
        assert (await one.turn_over())["cause"] == "user"
        await one.until_gone()
        assert await one.state() == "WAITING_FOR_INPUT" and await one.errors() == []
        await one.answers_the_next_message()


@pytest.mark.parametrize("how", HOWS)
async def test_while_it_is_ended_nothing_else_happens(house: Kandev, how: str) -> None:
    async with case(house, how, "teardown") as one:
        await one.turn_over()
        await house.call("session.stop", {"session_id": one.session_id})
        assert await one.state() == "CANCELLED"
        await one.until_gone()
        assert await one.state() == "CANCELLED" and await one.errors() == []
        await house.call("session.recover", {"session_id": one.session_id})
        await one.answers_the_next_message()

"""An agent asks a person: answered in its call, or, when the call was given up, by the next prompt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kandev.mcp.actions import call_tool
from tests.gateway.house import WAIT_S, House
from tests.mcp.clients import Call
from tests.usecases.family import Family, Member, family, turns

pytestmark = pytest.mark.proves("ACT-clarification.respond", "NOTE-session.clarification_requested")

ASK = "ask_user_question_kandev"
WHICH = {
    "questions": [
        {
            "id": "colour",
            "prompt": "Which colour?",
            "options": [{"label": "red", "description": "like a fire"}, {"label": "blue"}],
        }
    ]
}


@asynccontextmanager
async def asking(
    house: House, call_id: str = "c1"
) -> AsyncIterator[tuple[Family, Member, Call, asyncio.Task[dict[str, Any]]]]:
    """An agent at work whose call waits for a person."""
    home = await family(house)
    agent = await home.member()
    call = Call({"method": "tools/call", "params": {}}, call_id=call_id)
    asked = asyncio.create_task(call_tool(house.ctx, agent.calling(call_id), ASK, WHICH, call))
    try:
        await open_question(house, agent)
        yield home, agent, call, asked
    finally:
        asked.cancel()
        await asyncio.wait({asked})


async def open_question(house: House, agent: Member) -> dict[str, Any]:
    async with asyncio.timeout(WAIT_S):
        while True:
            session = await house.ok("session.get", session_id=agent.session_id)
            if questions := session.get("questions"):
                assert session["waiting_for"] == "question"
                return dict(questions[0])
            await asyncio.sleep(0.01)


async def respond(house: House, agent: Member, **answer: Any) -> dict[str, Any]:
    pending = (await open_question(house, agent))["pending_id"]
    return await house.ok(
        "clarification.respond", pending_id=pending, answers=[{"question_id": "colour", **answer}]
    )


async def test_the_answer_is_the_calls_result_and_the_turn_goes_on(house: House) -> None:
    async with asking(house) as (_, agent, call, asked):
        shown = await open_question(house, agent)
        assert shown["prompt"] == "Which colour?" and len(shown["options"]) == 2
        responding = asyncio.create_task(respond(house, agent, selected_options=["red"], custom_text="dark"))
        answer = await asyncio.wait_for(asked, WAIT_S)
        assert answer == {
            "status": "answered",
            "answers": [{"question_id": "colour", "answer": "red\ndark"}],
        }
        call.served.set_result(True)
        told = await asyncio.wait_for(responding, WAIT_S)
        assert told["status"] == "sent" and await turns(house, agent) == ["active"]
        fate = await house.ok("message.status", entry_id=told["entry_id"])
        assert fate["state"] == "delivered"
        assert "questions" not in await house.ok("session.get", session_id=agent.session_id)


async def test_an_answer_that_did_not_reach_the_agent_takes_the_place_of_its_stuck_turn(house: House) -> None:
    async with asking(house) as (home, agent, call, asked):
        responding = asyncio.create_task(respond(house, agent, selected_options=["blue"]))
        await asyncio.wait_for(asked, WAIT_S)
        call.served.set_result(False)
        assert (await asyncio.wait_for(responding, WAIT_S))["status"] == "sent"
        assert (await turns(house, agent))[0] == "interrupted"
        assert "blue" in await home.conversation(agent)


async def test_a_late_answer_to_a_call_that_was_given_up_is_the_next_prompt(house: House) -> None:
    async with asking(house) as (home, agent, call, asked):
        call.left.set()
        with pytest.raises(Exception, match="given up"):
            await asyncio.wait_for(asked, WAIT_S)
        told = await asyncio.wait_for(respond(house, agent, custom_text="green"), WAIT_S)
        assert told["status"] == "sent"
        assert (await turns(house, agent))[0] == "interrupted"
        heard = [handed for handed in await home.conversation(agent) if "green" in handed]
        assert heard


async def test_a_call_that_comes_again_finds_its_question(house: House) -> None:
    async with asking(house) as (_, agent, _call, asked):
        asked.cancel()
        await asyncio.wait({asked})
        second = Call({"method": "tools/call", "params": {}})
        again = asyncio.create_task(call_tool(house.ctx, agent.calling("c1"), ASK, WHICH, second))
        session = await house.ok("session.get", session_id=agent.session_id)
        assert len(session["questions"]) == 1
        second.served.set_result(True)
        told = await asyncio.wait_for(respond(house, agent, selected_options=["red"]), WAIT_S)
        assert told["status"] == "sent" and (await again)["status"] == "answered"


@pytest.mark.proves("TURN-open-question")
async def test_a_cancel_of_the_turn_answers_the_call_as_cancelled(house: House) -> None:
    async with asking(house) as (_, agent, _call, asked):
        assert (await house.ok("agent.cancel", session_id=agent.session_id))["success"]
        assert (await asyncio.wait_for(asked, WAIT_S))["status"] == "cancelled"
        shown = await house.ok("message.list", session_id=agent.session_id)
        (request,) = [m for m in shown["messages"] if m["type"] == "clarification_request"]
        assert request["metadata"]["status"] == "cancelled"


async def test_a_declined_question_says_so_to_the_agent(house: House) -> None:
    async with asking(house) as (_, agent, _call, asked):
        pending = (await open_question(house, agent))["pending_id"]
        told = await house.ok("clarification.respond", pending_id=pending, answers=[], rejected=True)
        assert told == {"success": True, "status": "declined"}
        assert (await asyncio.wait_for(asked, WAIT_S)) == {"status": "declined", "answers": []}


@pytest.mark.parametrize(
    ("answers", "more", "words"),
    [
        ([], {}, "one answer"),
        ([{"question_id": "size", "custom_text": "x"}], {}, "one answer"),
        ([{"question_id": "colour", "selected_options": ["green"]}], {}, "does not offer"),
        ([{"question_id": "colour"}], {}, "is empty"),
        ([{"question_id": "colour", "custom_text": "  "}], {}, "is empty"),
        ([{"question_id": "colour", "custom_text": "x"}], {"rejected": True}, "not both"),
    ],
)
async def test_an_answer_that_is_none_is_refused_and_the_question_stays(
    house: House, answers: Any, more: Any, words: str
) -> None:
    async with asking(house) as (_, agent, _call, asked):
        pending = (await open_question(house, agent))["pending_id"]
        before = house.rows()
        said = await house.refused(
            "clarification.respond", "VALIDATION_ERROR", pending_id=pending, answers=answers, **more
        )
        assert words in said and house.rows() == before and not asked.done()


async def test_what_was_never_asked_is_not_found(house: House) -> None:
    answer = [{"question_id": "q1", "custom_text": "x"}]
    await house.refused("clarification.respond", "NOT_FOUND", pending_id="session:none", answers=answer)


async def test_a_second_answer_is_a_conflict(house: House) -> None:
    async with asking(house) as (_, agent, _call, _asked):
        pending = (await open_question(house, agent))["pending_id"]
        await house.ok("clarification.respond", pending_id=pending, answers=[], rejected=True)
        answer = [{"question_id": "colour", "custom_text": "x"}]
        await house.refused("clarification.respond", "CONFLICT", pending_id=pending, answers=answer)


@pytest.mark.parametrize("count", [0, 2])
async def test_an_agent_asks_one_question_at_a_time(house: House, count: int) -> None:
    home = await family(house)
    agent = await home.member()
    given = {"questions": [{"prompt": f"Which {n}?"} for n in range(count)]}
    assert "VALIDATION_ERROR" in await home.refused(agent, "ask_user_question", **given)

"""Calls that ask a person once more: again after the answer has had its fate, and without end."""

from __future__ import annotations

import asyncio

import pytest

from kandev.core.errors import Conflict
from kandev.core.questions import AT_ONCE
from kandev.mcp.actions import call_tool
from tests.gateway.house import WAIT_S, House
from tests.mcp.clients import Call
from tests.usecases.test_questions import ASK, WHICH, asking, respond

pytestmark = pytest.mark.proves("ACT-clarification.respond")


async def test_a_call_that_comes_again_after_its_answer_went_elsewhere_does_not_wait_for_ever(
    house: House,
) -> None:
    async with asking(house) as (_, agent, call, asked):
        responding = asyncio.create_task(respond(house, agent, selected_options=["red"]))
        await asyncio.wait_for(asked, WAIT_S)
        call.served.set_result(True)
        assert (await asyncio.wait_for(responding, WAIT_S))["status"] == "sent"
        second = Call({"method": "tools/call", "params": {}}, again=True)
        again = call_tool(house.ctx, agent.calling("c1"), ASK, WHICH, second)
        with pytest.raises(Conflict, match="answered"):
            await asyncio.wait_for(again, WAIT_S)


async def test_an_agent_that_asks_and_leaves_cannot_pile_up_questions(house: House) -> None:
    async with asking(house) as (_, agent, _call, asked):
        for number in range(2, AT_ONCE + 1):
            call = Call({"method": "tools/call", "params": {}}, call_id=f"c{number}")
            call.left.set()
            with pytest.raises(Conflict, match="given up"):
                await call_tool(house.ctx, agent.calling(call.call_id), ASK, WHICH, call)
        with pytest.raises(Conflict, match=f"{AT_ONCE} questions"):
            await call_tool(house.ctx, agent.calling("more"), ASK, WHICH, Call({}))
        assert not asked.done(), "those that are open stay so"
        shown = await house.ok("session.get", session_id=agent.session_id)
        listed = await house.ok("message.list", session_id=agent.session_id)
        requests = [m for m in listed["messages"] if m["type"] == "clarification_request"]
        assert len(shown["questions"]) == len(requests) == AT_ONCE

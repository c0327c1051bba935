"""A question's call comes again after its answer has had its fate: it ends, as every wait does."""

from __future__ import annotations

import asyncio

import pytest

from kandev.core.errors import Conflict
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

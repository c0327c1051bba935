"""A parent's agent and its child's, each a process of its own: created, written to, interrupted by tools."""

from __future__ import annotations

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.parents import Parent, family
from tests.e2e.scenes import agent_spoke, said, turns_over

pytestmark = pytest.mark.proves("MCP-message-task", "MCP-task-mode")


async def turns(house: Kandev, session_id: str, count: int) -> None:
    """Until so many of its turns are over."""
    async with house.watching(session_id) as events:
        await turns_over(events, count)


async def test_a_parent_queues_then_interrupts_and_the_child_hears_both_in_that_order(house: Kandev) -> None:
    parent, child, session_id = await family(house, "say begun\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
    queued = await parent.gets("message_task", task_id=child, prompt="say later")
    assert queued == {"task_id": child, "session_id": session_id, "status": "queued"}
    async with house.watching(session_id) as events:
        sent = await parent.gets("message_task", task_id=child, prompt="say now", delivery_mode="interrupt")
        assert sent["status"] == "sent"
        await turns_over(events, 3)
    assert await said(house, session_id) == ["begun", "now", "later"]
    assert await said(house, session_id, "user") == ["say begun\nsleep 600", "say now", "say later"]
    assert not [line for line in await said(house, session_id, "system", "status") if "cancelled" in line]
    related = await parent.gets("list_related_tasks")
    assert [t["task_id"] for t in related["children"]] == [child]


async def test_a_child_is_refused_an_interrupt_of_its_parent_and_may_write_to_it(house: Kandev) -> None:
    parent, child, session_id = await family(house, "say begun")
    await turns(house, session_id, 1)
    below = Parent(house, child, session_id)
    interrupt = {"task_id": parent.task_id, "prompt": "say no", "delivery_mode": "interrupt"}
    refused = await below.uses("message_task", **interrupt)
    assert refused["isError"]
    (content,) = refused["content"]
    assert content["text"].startswith("[FORBIDDEN] ")
    assert "direct parent" in content["text"]
    assert "structuredContent" not in refused
    wrong = await below.uses("message_task", **interrupt, sender_task_id=parent.task_id)
    assert wrong["content"][0]["text"] == "[VALIDATION_ERROR] Unknown field `sender_task_id`."
    async with house.watching(parent.session_id) as events:
        answer = await below.gets("message_task", task_id=parent.task_id, prompt="say thanks")
        assert answer == {"task_id": parent.task_id, "session_id": parent.session_id, "status": "sent"}
        await turns_over(events, parent.turns + 1)
    assert (await said(house, parent.session_id))[-1] == "thanks"

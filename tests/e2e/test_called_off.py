"""What is called off before it began is told: the state, the queue, and where an entry ended."""

from typing import Any

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import add, agent_spoke, get, nothing_left, profile


@pytest.mark.field("B43", "A41")
@pytest.mark.parametrize(
    ("action", "state", "parked"),
    [
        ("agent.cancel", "WAITING_FOR_INPUT", "cancelled by a person"),
        ("session.stop", "CANCELLED", None),
        ("orchestrator.stop", "CANCELLED", None),
    ],
)
async def test_a_start_that_is_called_off_is_told_and_keeps_its_message(
    house: Kandev, action: str, state: str, parked: str | None
) -> None:
    slow = await profile(house, env={"MOCK_AGENT_START": "slow 0.5"})
    task_id, session_id = await house.session("say hello", agent_profile_id=slow)
    async with house.watching(session_id) as events:
        named: dict[str, Any] = {"session_id": session_id}
        await house.call(action, {"task_id": task_id} if action == "orchestrator.stop" else named)
        await events.state(state)
        if parked:
            told = await events.until("message.queue.status_changed", lambda p: not p["auto_run"])
            assert (told["count"], told["parked_reason"]) == (1, parked)
        lines = [m["content"] for m in await house.messages(session_id) if m["author_type"] == "system"]
        assert len(lines) == 1 and ("cancelled" in lines[0]) is (parked is not None)
        assert (await get(house, session_id))["queue"]["count"] == 1
        queue = await house.call("message.queue.get", {"session_id": session_id})
        assert [entry["content"] for entry in queue["entries"]] == ["say hello"]
        assert [f["action"] for f in events.seen].count("session.turn.started") == 0
        await house.call("session.delete", {"session_id": session_id})
        await nothing_left(session_id)


@pytest.mark.field("B43", "C33")
async def test_a_message_that_is_taken_out_is_told_to_whoever_follows(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        gone = await add(house, task_id, session_id, "say gone")
        await events.until("message.queue.status_changed", lambda p: p["count"] == 1)
        await house.call("session.stop", {"session_id": session_id})
        removal = {"session_id": session_id, "entry_id": gone["entry_id"]}
        await house.call("message.queue.remove", removal)
        await events.until("message.queue.status_changed", lambda p: p["count"] == 0)
        assert (await house.call("message.status", {"entry_id": gone["entry_id"]}))["state"] == "removed"

"""`kill -9` of the backend at awkward moments: afterwards every message has one fate, told truthfully."""

from contextlib import suppress

import httpx
import pytest

from tests.e2e.kandev import CallFailed, Events, Kandev
from tests.e2e.scenes import (
    add,
    agent_spoke,
    get,
    kill_everything,
    marked,
    profile,
    said,
    turns_over,
    until_true,
)

pytestmark = pytest.mark.proves("SURVIVE-backend-kill")


def over(events: Events) -> bool:
    return any(frame["action"] == "session.turn.completed" for frame in events.seen)


@pytest.mark.parametrize("moment", [1, 3, 5, 7, 9, 12])
async def test_a_kill_after_any_event_of_a_turn_loses_and_doubles_nothing(
    kandev: Kandev, moment: int
) -> None:
    task_id, session_id = await kandev.session("say one\nstream 5 5")
    async with kandev.watching(session_id) as events:
        while len(events.seen) < moment and not over(events):
            await events.news()
    await kandev.kill()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await events.until("session.turn.completed", lambda p: p["cause"] == "agent")
        await events.state("WAITING_FOR_INPUT")
        sent = await add(kandev, task_id, session_id, "say two")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "two")
    assert await said(kandev, session_id) == ["one", "".join(f"chunk {n} " for n in range(1, 6)), "two"]
    assert await said(kandev, session_id, "user") == ["say one\nstream 5 5", "say two"]
    assert (await kandev.call("message.status", {"entry_id": sent["entry_id"]}))["state"] == "delivered"


@pytest.mark.field("D07", "D17")
async def test_a_launch_that_was_under_way_at_a_kill_is_taken_up(kandev: Kandev) -> None:
    slow = await profile(kandev, env={"MOCK_AGENT_START": "slow 1.5"})
    _, session_id = await kandev.session("say hello", agent_profile_id=slow)
    await until_true(lambda: marked(session_id), "the process is there")
    (agent,) = marked(session_id)
    await kandev.kill()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    assert marked(session_id) == [agent], "nothing was started beside it"
    assert await said(kandev, session_id) == ["hello"]


@pytest.mark.field("D01")
async def test_a_cancel_that_was_under_way_at_a_kill_is_carried_out(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello\nlate 0.5")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        await add(kandev, task_id, session_id, "say queued")
        async with kandev.events() as caller:
            await caller.send("agent.cancel", {"session_id": session_id})
            await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
            await kandev.kill()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        ended = await turns_over(events)
        assert ended["cause"] == "user"
        session = await get(kandev, session_id)
        assert (session["state"], session["cancellation_pending"]) == ("WAITING_FOR_INPUT", False)
        assert session["parked_reason"] == "cancelled by a person"
    assert await said(kandev, session_id) == ["hello"]


@pytest.mark.proves("TURN-row-without-execution")
@pytest.mark.field("A13")
async def test_a_cancel_right_after_everything_was_killed_hears_that_nothing_runs(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        await add(kandev, task_id, session_id, "say queued")
    await kill_everything(kandev, session_id)
    await kandev.start()
    with pytest.raises(CallFailed) as refused:
        await kandev.call("agent.cancel", {"session_id": session_id})
    assert (refused.value.code, refused.value.message) == ("CONFLICT", "agent not running")
    async with kandev.watching(session_id) as events:
        assert (await turns_over(events))["cause"] == "lost"
        await events.state("WAITING_FOR_INPUT")
        session = await get(kandev, session_id)
        assert (session["cancellation_pending"], session["queue"]["count"]) == (False, 1)
        assert session["parked_reason"] != "cancelled by a person"
    lines = [m["content"] for m in await kandev.messages(session_id) if m["author_type"] == "system"]
    assert not [line for line in lines if "cancelled" in line], lines


@pytest.mark.field("E01")
async def test_a_stop_whose_teardown_was_under_way_at_a_kill_is_finished(kandev: Kandev) -> None:
    _, session_id = await kandev.session("stubborn\nspawn 600\nsay hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
    await kandev.call("session.stop", {"session_id": session_id})
    await kandev.kill()
    await kandev.start()
    assert (await get(kandev, session_id))["state"] == "CANCELLED"
    await until_true(lambda: not marked(session_id), "nothing of it is left")


@pytest.mark.field("C31", "C39")
async def test_a_message_whose_answer_was_lost_in_a_kill_is_one_message_when_it_is_sent_again(
    kandev: Kandev,
) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    message = (task_id, session_id, "say again")
    first = await add(kandev, *message, idempotency_key="k")
    await kandev.kill()
    with suppress(httpx.HTTPError):
        await add(kandev, *message, idempotency_key="k")
    await kandev.start()
    assert (await add(kandev, *message, idempotency_key="k"))["entry_id"] == first["entry_id"]
    queue = await kandev.call("message.queue.get", {"session_id": session_id})
    assert [e["content"] for e in queue["entries"]] == ["say again"]

"""Cancelling a turn, end to end: the event flow and every row of the error table, over the public doors."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kandev import CallFailed, Events, Kandev
from tests.e2e.scenes import add, agent_spoke, get, profile, said, turns_over

CANCEL_FRAME = {"jsonrpc": "2.0", "method": "session/cancel"}


async def cancel(house: Kandev, session_id: str) -> dict[str, Any]:
    return await house.call("agent.cancel", {"session_id": session_id})


def actions(events: Events) -> list[str]:
    return [frame["action"] for frame in events.seen]


@pytest.mark.proves(
    "CANCEL-test-integration",
    "CANCEL-flow-2-agent-answers",
    "CANCEL-flow-3-prompt-returns",
    "CANCEL-flow-4-execution-ready",
    "CANCEL-flow-4-event",
    "CANCEL-flow-5-client-sees",
    "CANCEL-acp-prompt-returns",
    "CANCEL-acp-at-once",
    "CANCEL-process-lives",
    "CANCEL-layer-execution",
    "TURN-ended",
    "TURN-chat-line",
    "TURN-task-review",
    "TURN-next-prompt",
    "TURN-pending-visible",
    "NOTE-session.cancellation_changed",
)
async def test_a_cancelled_turn_ends_and_the_session_takes_the_next_prompt(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        assert await cancel(house, session_id) == {"success": True, "session_id": session_id}

        pending = await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        settled = await events.until("session.cancellation_changed", lambda p: not p["cancellation_pending"])
        assert settled["cancellation_revision"] > pending["cancellation_revision"]
        ended = await events.until("session.turn.completed")
        assert (ended["cause"], ended["stop_reason"]) == ("user", "cancelled")

        session = await get(house, session_id)
        assert session["state"] == "WAITING_FOR_INPUT"
        assert session["execution"]["status"] == "ready"
        assert session["cancellation_pending"] is False
        assert "active_turn" not in session
        assert (await house.call("task.get", {"id": task_id}))["state"] == "REVIEW"
        line = (await house.messages(session_id))[-1]
        assert (line["type"], line["author_type"]) == ("status", "system")
        assert "cancelled" in line["content"]
        assert line["metadata"]["cancelled_by"] == "user"

        before = session["execution"]["id"]
        sent = await add(house, task_id, session_id, "say again\nrecall")
        assert sent["status"] == "sent"
        await events.until("session.turn.completed", lambda p: p["cause"] == "agent")
        words = await said(house, session_id)
        assert words[:2] == ["hello", "again"]
        assert "say hello" in words[2], "the conversation went on"
        after = await get(house, session_id)
        assert after["execution"]["id"] == before, "the same process"


@pytest.mark.proves(
    "CANCEL-acp-frame",
    "CANCEL-acp-no-id",
    "CANCEL-acp-only-session-id",
    "CANCEL-flow-1-message-sent",
    "CANCEL-test-protocol-acp",
)
async def test_the_frame_on_the_agents_pipe_is_exactly_the_protocols(house: Kandev, tmp_path: Path) -> None:
    wire = tmp_path / "wire.jsonl"
    logged = await profile(house, env={"MOCK_AGENT_LOG": str(wire)})
    _, session_id = await house.session("say hello\nsleep 600", agent_profile_id=logged)
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        await cancel(house, session_id)
    received = [json.loads(line) for line in wire.read_text().splitlines()]
    frames = [json.loads(r["line"]) for r in received if r["dir"] == "<"]
    agents_id = next(f["params"]["sessionId"] for f in frames if f.get("method") == "session/prompt")
    cancels = [f for f in frames if f.get("method") == "session/cancel"]
    assert cancels
    assert all(f == {**CANCEL_FRAME, "params": {"sessionId": agents_id}} for f in cancels)


@pytest.mark.proves("CANCEL-error-no-active-turn", "TURN-no-turn")
@pytest.mark.field("A21")
async def test_without_an_active_turn_a_cancel_is_a_success_that_changes_nothing(house: Kandev) -> None:
    _, session_id = await house.session("say done")
    async with house.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
        before = await house.messages(session_id)
        assert await cancel(house, session_id) == {"success": True, "session_id": session_id}
        assert await house.messages(session_id) == before
        assert (await get(house, session_id))["cancellation_revision"] == 0


@pytest.mark.proves("CANCEL-error-agent-not-running", "TURN-no-execution")
async def test_without_an_agent_a_cancel_says_so(house: Kandev) -> None:
    task_id = (await house.task())["task"]["id"]
    prepared = await house.call("session.launch", {"task_id": task_id, "intent": "prepare"})
    with pytest.raises(CallFailed) as refused:
        await cancel(house, prepared["session_id"])
    assert (refused.value.status, refused.value.code) == (409, "CONFLICT")
    assert refused.value.message == "agent not running"


@pytest.mark.proves("CANCEL-error-session-not-found", "TURN-unknown-session", "CANCEL-layer-usecase")
async def test_an_unknown_session_or_one_of_another_task_is_not_found(house: Kandev) -> None:
    other = (await house.task())["task"]["id"]
    _, session_id = await house.session("say done")
    for payload in ({"session_id": "nobody"}, {"session_id": session_id, "task_id": other}):
        with pytest.raises(CallFailed) as refused:
            await house.call("agent.cancel", payload)
        assert (refused.value.status, refused.value.code) == (404, "NOT_FOUND")
        assert refused.value.message == "session not found"


@pytest.mark.proves(
    "CANCEL-error-timeout", "TURN-not-acknowledged", "TURN-escalated-process-replaced", "TURN-intent-decides"
)
@pytest.mark.field("A11", "A15", "D13")
async def test_a_deaf_agent_is_replaced_and_the_caller_hears_the_truth(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\ndeaf 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        answer = await cancel(house, session_id)
        assert answer == {
            "success": False,
            "session_id": session_id,
            "error": "cancel timed out, still under way",
        }
        await events.state("WAITING_FOR_INPUT")
        ended = await events.until("session.turn.completed")
        assert ended["cause"] == "user"
        assert (await house.call("task.get", {"id": task_id}))["state"] == "REVIEW"
        first = ended["execution_id"]

        assert (await add(house, task_id, session_id, "recall"))["status"] == "sent"
        again = await events.until("session.turn.completed", lambda p: p["execution_id"] != first)
        assert again["cause"] == "agent"
        words = await said(house, session_id)
        assert words == ["hello", "recall: say hello / deaf 600"], "a new process has the old conversation"


@pytest.mark.proves("CANCEL-error-permission", "TURN-open-permission", "STATE-waiting-for")
@pytest.mark.field("A27", "B33")
async def test_a_cancel_answers_an_open_permission_as_cancelled(house: Kandev) -> None:
    task_id, session_id = await house.session("ask Touch a file\nsay never")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        session = await get(house, session_id)
        assert (session["state"], session["waiting_for"]) == ("RUNNING", "permission")
        queued = await add(house, task_id, session_id, "say later")
        assert queued["status"] == "queued", "an open permission leaves the session not promptable"
        assert (await cancel(house, session_id))["success"] is True
    messages = await house.messages(session_id)
    request = next(m for m in messages if m["type"] == "permission_request")
    assert request["metadata"]["request_id"] == asked["request_id"]
    assert request["metadata"]["status"] == "cancelled"
    words = await said(house, session_id)
    assert words in ([], ["outcome: cancelled"]), "the agent was told, and went no further"


@pytest.mark.proves("TURN-starting", "TURN-parked")
@pytest.mark.field("A17", "B19")
async def test_a_cancel_during_the_start_keeps_the_prompt_back(house: Kandev) -> None:
    slow = await profile(house, env={"MOCK_AGENT_START": "slow 1"})
    task_id, session_id = await house.session("say hello", agent_profile_id=slow)
    assert (await cancel(house, session_id))["success"] is True
    async with house.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
        session = await get(house, session_id)
        assert session["execution"]["status"] == "ready", "the start went on"
        assert session["queue"] == {"count": 1, "max": 10, "auto_run": False}
        assert session["parked_reason"] == "cancelled by a person"
        assert (await house.call("task.get", {"id": task_id}))["state"] == "REVIEW"
        assert all(m["author_type"] == "system" for m in await house.messages(session_id))

        assert (await add(house, task_id, session_id, "say second"))["status"] == "sent"
        await events.until("session.turn.completed")
    words = await said(house, session_id)
    assert words == ["hello", "second"], "a session's first prompt begins with its first message"


@pytest.mark.proves("TURN-joined")
@pytest.mark.field("B23")
async def test_two_cancels_of_one_turn_are_one_and_get_the_same_answer(house: Kandev) -> None:
    _, session_id = await house.session("say hello\nlate 0.3")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        answers = await asyncio.gather(*(cancel(house, session_id) for _ in range(5)))
        assert answers == [{"success": True, "session_id": session_id}] * 5
        await events.state("WAITING_FOR_INPUT")
        lines = [m for m in await house.messages(session_id) if "cancelled" in m["content"]]
        assert len(lines) == 1
        assert actions(events).count("session.turn.completed") == 1


@pytest.mark.proves("TURN-ended")
async def test_a_caller_waits_as_long_as_the_profile_lets_its_agent_take(tmp_path: Path) -> None:
    async with Kandev(tmp_path / "home", {"KANDEV_MESSAGE_ANSWER_S": "1"}) as kandev:
        patient = await profile(kandev, cancel_acknowledge_s=10)
        _, session_id = await kandev.session("say hello\nlate 2", agent_profile_id=patient)
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
            assert await cancel(kandev, session_id) == {"success": True, "session_id": session_id}
            assert (await get(kandev, session_id))["state"] == "WAITING_FOR_INPUT"
            assert (await turns_over(events))["cause"] == "user"


@pytest.mark.proves("TURN-stop-meanwhile")
async def test_a_stop_wins_over_a_cancel_that_waits(house: Kandev) -> None:
    _, session_id = await house.session("say hello\ndeaf 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        waiting = asyncio.create_task(cancel(house, session_id))
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        await house.call("session.stop", {"session_id": session_id})
        assert (await waiting)["success"] is True
        assert (await get(house, session_id))["state"] == "CANCELLED"


@pytest.mark.proves("TURN-caller-gone", "DOOR-mutation-goes-on")
@pytest.mark.field("D07")
async def test_a_caller_that_goes_away_does_not_take_its_cancel_back(house: Kandev) -> None:
    _, session_id = await house.session("say hello\nlate 0.5")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        async with house.events() as caller:
            gone = asyncio.create_task(caller.request("agent.cancel", {"session_id": session_id}))
            await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        gone.cancel()
        ended = await events.until("session.turn.completed")
        assert ended["cause"] == "user"


@pytest.mark.proves("TURN-repeated")
@pytest.mark.field("A35")
async def test_a_cancel_that_the_agent_did_not_see_is_written_again(house: Kandev) -> None:
    _, session_id = await house.session("lose 2\nsay hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        assert (await cancel(house, session_id))["success"] is True


async def test_an_agent_that_lies_about_its_stop_reason_changes_nothing(house: Kandev) -> None:
    _, session_id = await house.session("say hello\nlie 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        assert (await cancel(house, session_id))["success"] is True
        assert (await events.until("session.turn.completed"))["cause"] == "user"


@pytest.mark.proves("CANCEL-layer-websocket", "CANCEL-layer-http", "DOOR-frame")
async def test_both_doors_answer_a_cancel_alike(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        payload = {"task_id": task_id, "session_id": session_id}
        frame = await events.request("agent.cancel", payload)
        assert set(frame) == {"id", "type", "action", "payload", "timestamp"}
        assert (frame["type"], frame["action"]) == ("response", "agent.cancel")
        assert frame["payload"] == {"success": True, "session_id": session_id}
    assert await house.call("agent.cancel", payload) == {"success": True, "session_id": session_id}

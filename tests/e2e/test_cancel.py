"""Cancelling a turn, end to end: the event flow and every row of the error table, over the public doors."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kandev import CallFailed, Events, Kandev

CANCEL_FRAME = {"jsonrpc": "2.0", "method": "session/cancel"}


async def cancel(kandev: Kandev, session_id: str) -> dict[str, Any]:
    return await kandev.call("agent.cancel", {"session_id": session_id})


async def working(events: Events) -> None:
    """The agent has begun to play its script."""
    await events.until("session.message.added", lambda p: p["message"]["author_type"] == "agent")


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
async def test_a_cancelled_turn_ends_and_the_session_takes_the_next_prompt(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await working(events)
        assert await cancel(kandev, session_id) == {"success": True, "session_id": session_id}

        pending = await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        settled = await events.until("session.cancellation_changed", lambda p: not p["cancellation_pending"])
        assert settled["cancellation_revision"] > pending["cancellation_revision"]
        ended = await events.until("session.turn.completed")
        assert (ended["cause"], ended["stop_reason"]) == ("user", "cancelled")

        session = await kandev.call("session.get", {"session_id": session_id})
        assert session["state"] == "WAITING_FOR_INPUT"
        assert session["execution"]["status"] == "ready"
        assert session["cancellation_pending"] is False
        assert "active_turn" not in session
        assert (await kandev.call("task.get", {"id": task_id}))["state"] == "REVIEW"
        line = (await kandev.messages(session_id))[-1]
        assert (line["type"], line["author_type"]) == ("status", "system")
        assert "cancelled" in line["content"]
        assert line["metadata"]["cancelled_by"] == "user"

        before = session["execution"]["id"]
        sent = await kandev.call(
            "message.add", {"task_id": task_id, "session_id": session_id, "content": "say again\nrecall"}
        )
        assert sent["status"] == "sent"
        await events.until("session.turn.completed", lambda p: p["cause"] == "agent")
        said = [m["content"] for m in await kandev.messages(session_id) if m["author_type"] == "agent"]
        assert said[:2] == ["hello", "again"]
        assert "say hello" in said[2], "the conversation went on"
        after = await kandev.call("session.get", {"session_id": session_id})
        assert after["execution"]["id"] == before, "the same process"


@pytest.mark.proves(
    "CANCEL-acp-frame",
    "CANCEL-acp-no-id",
    "CANCEL-acp-only-session-id",
    "CANCEL-flow-1-message-sent",
    "CANCEL-test-protocol-acp",
)
async def test_the_frame_on_the_agents_pipe_is_exactly_the_protocols(kandev: Kandev, tmp_path: Path) -> None:
    wire = tmp_path / "wire.jsonl"
    profile = await logged_profile(kandev, wire)
    _, session_id = await kandev.session("say hello\nsleep 600", agent_profile_id=profile)
    async with kandev.watching(session_id) as events:
        await working(events)
        await cancel(kandev, session_id)
    received = [json.loads(line) for line in wire.read_text().splitlines()]
    frames = [json.loads(r["line"]) for r in received if r["dir"] == "<"]
    agents_id = next(f["params"]["sessionId"] for f in frames if f.get("method") == "session/prompt")
    cancels = [f for f in frames if f.get("method") == "session/cancel"]
    assert cancels
    assert all(f == {**CANCEL_FRAME, "params": {"sessionId": agents_id}} for f in cancels)


async def logged_profile(kandev: Kandev, wire: Path) -> str:
    """The mock agent, writing down every line it gets and sends."""
    profiles = (await kandev.call("agent.profile.list"))["profiles"]
    mock = next(p for p in profiles if p["name"] == "Mock agent")
    created = await kandev.call(
        "agent.profile.create",
        {
            "name": "Logged",
            "protocol": "acp",
            "command": mock["command"],
            "env": {"MOCK_AGENT_LOG": str(wire)},
        },
    )
    return str(created["id"])


@pytest.mark.proves("CANCEL-error-no-active-turn", "TURN-no-turn")
async def test_without_an_active_turn_a_cancel_is_a_success_that_changes_nothing(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say done")
    async with kandev.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
        before = await kandev.messages(session_id)
        assert await cancel(kandev, session_id) == {"success": True, "session_id": session_id}
        assert await kandev.messages(session_id) == before
        assert (await kandev.call("session.get", {"session_id": session_id}))["cancellation_revision"] == 0


@pytest.mark.proves("CANCEL-error-agent-not-running", "TURN-no-execution")
async def test_without_an_agent_a_cancel_says_so(kandev: Kandev) -> None:
    task_id = (await kandev.task())["task"]["id"]
    prepared = await kandev.call("session.launch", {"task_id": task_id, "intent": "prepare"})
    with pytest.raises(CallFailed) as refused:
        await cancel(kandev, prepared["session_id"])
    assert (refused.value.status, refused.value.code) == (409, "CONFLICT")
    assert refused.value.message == "agent not running"


@pytest.mark.proves("CANCEL-error-session-not-found", "TURN-unknown-session", "CANCEL-layer-usecase")
async def test_an_unknown_session_or_one_of_another_task_is_not_found(kandev: Kandev) -> None:
    other = (await kandev.task())["task"]["id"]
    _, session_id = await kandev.session("say done")
    for payload in ({"session_id": "nobody"}, {"session_id": session_id, "task_id": other}):
        with pytest.raises(CallFailed) as refused:
            await kandev.call("agent.cancel", payload)
        assert (refused.value.status, refused.value.code) == (404, "NOT_FOUND")
        assert refused.value.message == "session not found"


@pytest.mark.proves(
    "CANCEL-error-timeout", "TURN-not-acknowledged", "TURN-escalated-process-replaced", "TURN-intent-decides"
)
async def test_a_deaf_agent_is_replaced_and_the_caller_hears_the_truth(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello\ndeaf 600")
    async with kandev.watching(session_id) as events:
        await working(events)
        answer = await cancel(kandev, session_id)
        assert answer == {
            "success": False,
            "session_id": session_id,
            "error": "cancel timed out, still under way",
        }
        await events.state("WAITING_FOR_INPUT")
        ended = await events.until("session.turn.completed")
        assert ended["cause"] == "user"
        assert (await kandev.call("task.get", {"id": task_id}))["state"] == "REVIEW"
        first = ended["execution_id"]

        message = {"task_id": task_id, "session_id": session_id, "content": "recall"}
        assert (await kandev.call("message.add", message))["status"] == "sent"
        again = await events.until("session.turn.completed", lambda p: p["execution_id"] != first)
        assert again["cause"] == "agent"
        said = [m["content"] for m in await kandev.messages(session_id) if m["author_type"] == "agent"]
        assert said == ["hello", "recall: say hello / deaf 600"], "a new process has the old conversation"


@pytest.mark.proves("CANCEL-error-permission", "TURN-open-permission", "STATE-waiting-for")
async def test_a_cancel_answers_an_open_permission_as_cancelled(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("ask Touch a file\nsay never")
    async with kandev.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        session = await kandev.call("session.get", {"session_id": session_id})
        assert (session["state"], session["waiting_for"]) == ("RUNNING", "permission")
        queued = await kandev.call(
            "message.add", {"task_id": task_id, "session_id": session_id, "content": "say later"}
        )
        assert queued["status"] == "queued", "an open permission leaves the session not promptable"
        assert (await cancel(kandev, session_id))["success"] is True
    messages = await kandev.messages(session_id)
    request = next(m for m in messages if m["type"] == "permission_request")
    assert request["metadata"]["request_id"] == asked["request_id"]
    assert request["metadata"]["status"] == "cancelled"
    said = [m["content"] for m in messages if m["author_type"] == "agent" and m["type"] == "message"]
    assert said in ([], ["outcome: cancelled"]), "the agent was told, and went no further"


@pytest.mark.proves("TURN-starting", "TURN-parked")
async def test_a_cancel_during_the_start_keeps_the_prompt_back(kandev: Kandev) -> None:
    slow = await kandev.call(
        "agent.profile.create",
        {
            "name": "Slow",
            "protocol": "acp",
            "command": (await kandev.call("agent.profile.list"))["profiles"][0]["command"],
            "env": {"MOCK_AGENT_START": "slow 1"},
        },
    )
    task_id, session_id = await kandev.session("say hello", agent_profile_id=slow["id"])
    assert (await cancel(kandev, session_id))["success"] is True
    async with kandev.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
        session = await kandev.call("session.get", {"session_id": session_id})
        assert session["execution"]["status"] == "ready", "the start went on"
        assert session["queue"] == {"count": 1, "max": 10, "auto_run": False}
        assert session["parked_reason"] == "cancelled by a person"
        assert (await kandev.call("task.get", {"id": task_id}))["state"] == "REVIEW"
        assert all(m["author_type"] == "system" for m in await kandev.messages(session_id))

        message = {"task_id": task_id, "session_id": session_id, "content": "say second"}
        assert (await kandev.call("message.add", message))["status"] == "sent"
        await events.until("session.turn.completed")
    said = [m["content"] for m in await kandev.messages(session_id) if m["author_type"] == "agent"]
    assert said == ["hello", "second"], "a session's first prompt begins with its first message"


@pytest.mark.proves("TURN-joined")
async def test_two_cancels_of_one_turn_are_one_and_get_the_same_answer(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say hello\nlate 0.3")
    async with kandev.watching(session_id) as events:
        await working(events)
        answers = await asyncio.gather(*(cancel(kandev, session_id) for _ in range(5)))
        assert answers == [{"success": True, "session_id": session_id}] * 5
        await events.state("WAITING_FOR_INPUT")
        lines = [m for m in await kandev.messages(session_id) if "cancelled" in m["content"]]
        assert len(lines) == 1
        assert actions(events).count("session.turn.completed") == 1


@pytest.mark.proves("TURN-stop-meanwhile")
async def test_a_stop_wins_over_a_cancel_that_waits(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say hello\ndeaf 600")
    async with kandev.watching(session_id) as events:
        await working(events)
        waiting = asyncio.create_task(cancel(kandev, session_id))
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        await kandev.call("session.stop", {"session_id": session_id})
        assert (await waiting)["success"] is True
        assert (await kandev.call("session.get", {"session_id": session_id}))["state"] == "CANCELLED"


@pytest.mark.proves("TURN-caller-gone", "DOOR-mutation-goes-on")
async def test_a_caller_that_goes_away_does_not_take_its_cancel_back(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say hello\nlate 0.5")
    async with kandev.watching(session_id) as events:
        await working(events)
        async with kandev.events() as caller:
            gone = asyncio.create_task(caller.request("agent.cancel", {"session_id": session_id}))
            await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        gone.cancel()
        ended = await events.until("session.turn.completed")
        assert ended["cause"] == "user"


@pytest.mark.proves("TURN-repeated")
async def test_a_cancel_that_the_agent_did_not_see_is_written_again(kandev: Kandev) -> None:
    _, session_id = await kandev.session("lose 2\nsay hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await working(events)
        assert (await cancel(kandev, session_id))["success"] is True


async def test_an_agent_that_lies_about_its_stop_reason_changes_nothing(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say hello\nlie 600")
    async with kandev.watching(session_id) as events:
        await working(events)
        assert (await cancel(kandev, session_id))["success"] is True
        assert (await events.until("session.turn.completed"))["cause"] == "user"


@pytest.mark.proves("CANCEL-layer-websocket", "CANCEL-layer-http", "DOOR-frame")
async def test_both_doors_answer_a_cancel_alike(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await working(events)
        payload = {"task_id": task_id, "session_id": session_id}
        frame = await events.request("agent.cancel", payload)
        assert set(frame) == {"id", "type", "action", "payload", "timestamp"}
        assert (frame["type"], frame["action"]) == ("response", "agent.cancel")
        assert frame["payload"] == {"success": True, "session_id": session_id}
    assert await kandev.call("agent.cancel", payload) == {"success": True, "session_id": session_id}

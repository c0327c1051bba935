"""What an agent says and does becomes lines of the transcript; what is no protocol never breaks it."""

import json
from typing import Any

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import add, get, nth, said, turns_over


async def played(house: Kandev, script: str) -> list[dict[str, Any]]:
    """The transcript of one turn, without the prompt itself."""
    _, session_id = await house.session(script)
    async with house.watching(session_id) as events:
        await turns_over(events)
        await events.state("WAITING_FOR_INPUT")
    return (await house.messages(session_id))[1:]


def kinds(messages: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(m["author_type"], m["type"], m["content"]) for m in messages]


@pytest.mark.proves("DOOR-growing-message", "NOTE-session.message")
async def test_chunks_are_one_message_whose_content_grows_without_gap_or_double(house: Kandev) -> None:
    _, session_id = await house.session("stream 200 2")
    async with house.watching(session_id) as events:
        await turns_over(events)
    whole = "".join(f"chunk {n} " for n in range(1, 201))
    assert await said(house, session_id) == [whole]
    grown: dict[str, str] = {}
    for frame in events.seen:
        payload = frame["payload"]
        if frame["action"] == "session.message.added":
            grown[payload["message"]["id"]] = payload["message"]["content"]
        elif frame["action"] == "session.message.updated" and "append" in payload:
            assert payload["offset"] == len(grown[payload["message_id"]])
            grown[payload["message_id"]] += payload["append"]
    assert whole in grown.values(), "who follows the notifications has the same text"


async def test_messages_thoughts_and_tool_calls_stand_in_the_order_in_which_they_came(house: Kandev) -> None:
    messages = await played(house, "say one\nthink hm\nsay two\ntool build 0\nsay three")
    assert kinds(messages) == [
        ("agent", "message", "one"),
        ("agent", "thought", "hm"),
        ("agent", "message", "two"),
        ("agent", "tool_call", "build"),
        ("agent", "message", "three"),
    ]
    call = messages[3]["metadata"]
    assert (call["status"], call["kind"]) == ("completed", "execute")
    assert "build: completed" in json.dumps(call)


async def test_a_cancelled_turn_leaves_its_tool_call_cancelled(house: Kandev) -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": "c1", "title": "build", "status": "in_progress"}
    _, session_id = await house.session(f"update {json.dumps(call)}\nsleep 600")
    async with house.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["type"] == "tool_call")
        await house.call("agent.cancel", {"session_id": session_id})
    shown = next(m for m in await house.messages(session_id) if m["type"] == "tool_call")
    assert shown["metadata"]["status"] == "cancelled"


async def test_a_plan_is_one_line_that_is_replaced(house: Kandev) -> None:
    def plan(*statuses: str) -> str:
        entries = [{"content": f"step {i}", "priority": "low", "status": s} for i, s in enumerate(statuses)]
        return f"update {json.dumps({'sessionUpdate': 'plan', 'entries': entries})}"

    messages = await played(house, "\n".join([plan("pending"), "say working", plan("completed", "pending")]))
    assert kinds(messages) == [
        ("agent", "plan", "- step 0\n- step 1"),
        ("agent", "message", "working"),
    ]
    assert [e["status"] for e in messages[0]["metadata"]["entries"]] == ["completed", "pending"]


async def test_usage_and_mode_are_kept_on_the_session_and_unknown_updates_harm_nothing(house: Kandev) -> None:
    updates = [
        {"sessionUpdate": "usage_update", "used": 1200, "size": 200000},
        {"sessionUpdate": "current_mode_update", "currentModeId": "plan"},
        {"sessionUpdate": "never_heard_of", "x": [1, {"y": None}]},
        {"sessionUpdate": 7},
    ]
    _, session_id = await house.session("\n".join([*(f"update {json.dumps(u)}" for u in updates), "say on"]))
    async with house.watching(session_id) as events:
        await turns_over(events)
    assert "on" in await said(house, session_id)
    meta = (await get(house, session_id))["meta"]
    assert "1200" in json.dumps(meta["usage"])
    assert "plan" in json.dumps(meta["mode"])


async def test_what_is_not_json_is_skipped_and_said_and_the_turn_goes_on(house: Kandev) -> None:
    messages = await played(house, "garbage 4\nsay still here")
    notice = "The agent wrote a line that is no protocol message: this is not JSON"
    assert kinds(messages) == [("system", "status", notice), ("agent", "message", "still here")]


async def test_a_message_of_a_megabyte_comes_through_whole(house: Kandev) -> None:
    messages = await played(house, "flood 1000000\nsay after")
    big = messages[0]["content"]
    assert set(big) == {"x"} and 900_000 < len(big) <= 1_000_000
    assert messages[1]["content"] == "after"


@pytest.mark.proves("INV-3")
@pytest.mark.field("B05")
async def test_what_an_agent_says_behind_its_turn_is_history_and_changes_nothing(house: Kandev) -> None:
    task_id, session_id = await house.session("say done\necho-after 3")
    async with house.watching(session_id) as events:
        await turns_over(events)
        assert (await add(house, task_id, session_id, "say next"))["status"] == "sent"
        await turns_over(events, 2)
    assert await said(house, session_id) == ["done", "next"]
    assert [f["action"] for f in events.seen].count("session.turn.started") == 2


async def test_a_turn_that_an_agent_begins_by_itself_is_shown_as_its_own(house: Kandev) -> None:
    task_id, session_id = await house.session("say resting\nwake 0.4 I had an idea")
    async with house.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "I had an idea")
        started = await nth(events, "session.turn.started", 2)
        assert (started["prompt_generation"], bool(started["own_turn_id"])) == (0, True)
        ended = await turns_over(events, 2)
        assert ended["turn_id"] == started["turn_id"]
        session = await get(house, session_id)
        assert (session["state"], session["execution"]["status"]) == ("WAITING_FOR_INPUT", "ready")
        assert (await add(house, task_id, session_id, "say thanks"))["status"] == "sent"
        await turns_over(events, 3)
    own = next(m for m in await house.messages(session_id) if m["content"] == "I had an idea")
    assert own["turn_id"] == started["turn_id"]
    assert await said(house, session_id) == ["resting", "I had an idea", "thanks"]


@pytest.mark.field("B49")
async def test_a_turn_of_the_agents_own_can_be_cancelled(house: Kandev) -> None:
    _, session_id = await house.session("say resting\nwake 0.4 I had an idea")
    async with house.watching(session_id) as events:
        await nth(events, "session.turn.started", 2)
        assert (await house.call("agent.cancel", {"session_id": session_id}))["success"] is True
        await events.state("WAITING_FOR_INPUT")
    assert (await get(house, session_id))["cancellation_pending"] is False

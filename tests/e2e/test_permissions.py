"""An agent asks for permission: who may answer, how often, and what the agent hears."""

import asyncio
from typing import Any

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import add, get, profile, said, turns_over


async def respond(house: Kandev, session_id: str, request_id: str, **answer: Any) -> dict[str, Any]:
    payload = {"session_id": session_id, "request_id": request_id, **answer}
    return await house.call("permission.respond", payload)


@pytest.mark.proves("ACT-permission.respond", "NOTE-session.permission_requested", "STATE-waiting-for")
@pytest.mark.field("B47")
@pytest.mark.parametrize(
    ("answer", "heard", "status"),
    [
        ({"option_id": "allow_once"}, "outcome: selected allow_once", "selected"),
        ({"option_id": "reject_once"}, "outcome: selected reject_once", "rejected"),
        ({"rejected": True}, "outcome: selected reject_once", "rejected"),
        ({"cancelled": True}, "outcome: cancelled", "cancelled"),
    ],
)
async def test_the_agent_hears_the_decision_and_goes_on(
    house: Kandev, answer: dict[str, Any], heard: str, status: str
) -> None:
    _, session_id = await house.session("ask Touch a file\nsay done")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        assert asked["title"] == "Touch a file"
        offered = {o["option_id"]: o["kind"] for o in asked["options"]}
        assert offered["allow_once"] == "allow_once"
        waiting = await get(house, session_id)
        assert (waiting["state"], waiting["waiting_for"]) == ("RUNNING", "permission")
        assert await respond(house, session_id, asked["request_id"], **answer) == {"success": True}
        await turns_over(events)
        assert "waiting_for" not in await get(house, session_id)
        with pytest.raises(CallFailed) as again:
            await respond(house, session_id, asked["request_id"], **answer)
        assert again.value.code == "CONFLICT"
    assert await said(house, session_id) == [heard, "done"]
    request = next(m for m in await house.messages(session_id) if m["type"] == "permission_request")
    assert request["metadata"]["status"] == status


async def test_what_is_no_answer_is_refused_and_the_request_stays_open(house: Kandev) -> None:
    _, session_id = await house.session("ask Touch a file")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        name = asked["request_id"]
        for answer in ({}, {"option_id": "allow_once", "cancelled": True}, {"option_id": "never_offered"}):
            with pytest.raises(CallFailed) as refused:
                await respond(house, session_id, name, **answer)
            assert refused.value.code == "VALIDATION_ERROR"
        with pytest.raises(CallFailed) as unknown:
            await respond(house, session_id, "nobody", rejected=True)
        assert (unknown.value.code, unknown.value.message) == ("NOT_FOUND", "permission request not found")
        assert (await get(house, session_id))["waiting_for"] == "permission"


async def test_of_two_answers_at_once_one_counts(house: Kandev) -> None:
    _, session_id = await house.session("ask Touch a file")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        options = ("allow_once", "reject_once")
        answers = await asyncio.gather(
            *(respond(house, session_id, asked["request_id"], option_id=o) for o in options),
            return_exceptions=True,
        )
        refusals = [a for a in answers if isinstance(a, CallFailed)]
        assert [r.code for r in refusals] == ["CONFLICT"]
        taken = options[answers.index({"success": True})]
        await turns_over(events)
    assert await said(house, session_id) == [f"outcome: selected {taken}"]


@pytest.mark.field("A13")
async def test_who_comes_later_finds_the_open_request_in_the_snapshot(house: Kandev) -> None:
    _, session_id = await house.session("ask Touch a file")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        frame = await events.request("session.subscribe", {"session_id": session_id})
        (found,) = frame["payload"]["permissions"]
        assert found["request_id"] == asked["request_id"]
        assert found["options"] == asked["options"]


@pytest.mark.field("A27", "B37")
async def test_a_stop_closes_an_open_request(house: Kandev) -> None:
    _, session_id = await house.session("ask Touch a file")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        await house.call("session.stop", {"session_id": session_id})
        with pytest.raises(CallFailed) as late:
            await respond(house, session_id, asked["request_id"], option_id="allow_once")
        assert late.value.code == "CONFLICT"
    request = next(m for m in await house.messages(session_id) if m["type"] == "permission_request")
    assert request["metadata"]["status"] == "cancelled"


@pytest.mark.field("B37")
async def test_a_decision_about_a_stopped_turn_lets_nothing_go_on_after_a_resume(house: Kandev) -> None:
    task_id, session_id = await house.session("ask Delete everything\nsay deleted")
    async with house.watching(session_id) as events:
        old = await events.until("session.permission_requested")
        await house.call("session.stop", {"session_id": session_id})
        await house.call("session.recover", {"session_id": session_id})
        await add(house, task_id, session_id, "ask Touch a file\nsay touched")
        new = await events.until("session.permission_requested", lambda p: p["title"] == "Touch a file")
        with pytest.raises(CallFailed) as late:
            await respond(house, session_id, old["request_id"], option_id="allow_once")
        assert late.value.code == "CONFLICT"
        assert (await get(house, session_id))["waiting_for"] == "permission"
        await respond(house, session_id, new["request_id"], rejected=True)
        await turns_over(events, 2)
    assert await said(house, session_id) == ["outcome: selected reject_once", "touched"]


async def test_a_profile_that_approves_by_itself_asks_nobody_and_allows_once(house: Kandev) -> None:
    trusting = await profile(house, auto_approve=True)
    _, session_id = await house.session("ask Touch a file\nsay done", agent_profile_id=trusting)
    async with house.watching(session_id) as events:
        await turns_over(events)
    assert await said(house, session_id) == ["outcome: selected allow_once", "done"]

"""Session and task states, and the events that tell of them, as a client of both streams sees them."""

from typing import Any

import pytest

from tests.e2e.kandev import CallFailed, Events, Kandev
from tests.e2e.scenes import add, agent_spoke, get, profile, said, turns_over


def states(events: Events) -> list[tuple[str, str]]:
    """Every session state change that was told, in order."""
    told = [f["payload"] for f in events.seen if f["action"] == "session.state_changed"]
    return [(p["old_state"], p["new_state"]) for p in told]


async def board(house: Kandev, events: Events) -> None:
    """Follow the workspace."""
    answer = await events.request("workspace.subscribe", {"workspace_id": await house.workspace()})
    assert answer["type"] == "response", answer


def task_states(events: Events, task_id: str) -> list[tuple[str, str]]:
    told = [f["payload"] for f in events.seen if f["action"] == "task.state_changed"]
    return [(p["old_state"], p["new_state"]) for p in told if p["task_id"] == task_id]


@pytest.mark.proves("STATE-launch-with-prompt", "STATE-one-event", "STATE-task", "NOTE-session.state_changed")
async def test_a_launch_with_a_prompt_goes_straight_to_work_and_the_task_with_it(house: Kandev) -> None:
    async with house.events() as desk:
        await board(house, desk)
        task_id, session_id = await house.session("say hello")
        async with house.watching(session_id) as events:
            await turns_over(events)
            await events.state("WAITING_FOR_INPUT")
            await desk.until("task.state_changed", lambda p: p["new_state"] == "REVIEW")
            await desk.state("WAITING_FOR_INPUT")
            assert states(events) == [
                ("CREATED", "STARTING"),
                ("STARTING", "RUNNING"),
                ("RUNNING", "WAITING_FOR_INPUT"),
            ]
            assert states(desk) == states(events), "the board hears the same"
        assert task_states(desk, task_id) == [
            ("TODO", "SCHEDULING"),
            ("SCHEDULING", "IN_PROGRESS"),
            ("IN_PROGRESS", "REVIEW"),
        ]


async def test_a_launch_without_a_prompt_leaves_the_task_where_it_was(house: Kandev) -> None:
    async with house.events() as desk:
        await board(house, desk)
        task_id, session_id = await house.session()
        async with house.watching(session_id) as events:
            await events.state("WAITING_FOR_INPUT")
            assert states(events) == [("CREATED", "STARTING"), ("STARTING", "WAITING_FOR_INPUT")]
            await desk.until("task.state_changed", lambda p: p["new_state"] == "TODO")
        assert (await house.call("task.get", {"id": task_id}))["state"] == "TODO"
        assert await said(house, session_id) == []


@pytest.mark.proves("STATE-same-is-silent", "ACT-task.state")
async def test_the_same_state_again_tells_nothing(house: Kandev) -> None:
    task_id = (await house.task())["task"]["id"]
    async with house.events() as desk:
        await board(house, desk)
        for state in ("BLOCKED", "BLOCKED", "TODO", "TODO"):
            assert (await house.call("task.state", {"id": task_id, "state": state}))["state"] == state
        await desk.until("task.state_changed", lambda p: p["new_state"] == "TODO")
        await house.call("task.update", {"id": task_id, "title": "A mark behind it"})
        await desk.until("task.updated", lambda p: p["task"]["title"] == "A mark behind it")
        assert task_states(desk, task_id) == [("TODO", "BLOCKED"), ("BLOCKED", "TODO")]


@pytest.mark.proves("STATE-same-is-silent", "STATE-one-event", "STOP-nothing-runs")
async def test_a_second_stop_finds_nothing_and_tells_nothing(house: Kandev) -> None:
    _, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        await house.call("session.stop", {"session_id": session_id})
        with pytest.raises(CallFailed) as again:
            await house.call("session.stop", {"session_id": session_id})
        assert (again.value.code, again.value.message) == ("NOT_FOUND", "execution not found")
        await events.until("session.updated", lambda p: "execution" not in p["session"])
        await house.call("session.rename", {"session_id": session_id, "name": "A mark behind it"})
        await events.until("session.updated", lambda p: p["session"]["name"] == "A mark behind it")
        assert states(events) == [
            ("CREATED", "STARTING"),
            ("STARTING", "RUNNING"),
            ("RUNNING", "CANCELLED"),
        ]


@pytest.mark.proves("STATE-terminal", "MESSAGE-terminal-conflict", "INV-5", "INV-6")
@pytest.mark.field("A43", "D29")
async def test_a_stopped_session_stays_cancelled_until_somebody_resumes_it(house: Kandev) -> None:
    task_id, session_id = await house.session("stream 500 10")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        await house.call("session.stop", {"session_id": session_id})
        assert (await get(house, session_id))["state"] == "CANCELLED"
        before = await house.messages(session_id)
        with pytest.raises(CallFailed) as refused:
            await add(house, task_id, session_id, "say no")
        assert (refused.value.status, refused.value.code) == (409, "CONFLICT")
        assert "CANCELLED" in refused.value.message and "resume" in refused.value.message
        with pytest.raises(CallFailed) as gone:
            await house.call("agent.cancel", {"session_id": session_id})
        assert gone.value.code == "CONFLICT"
        await events.until("session.updated", lambda p: "execution" not in p["session"])
        assert (await get(house, session_id))["state"] == "CANCELLED"
        assert await house.messages(session_id) == before, "what the agent went on saying is not shown"

        await house.call("session.recover", {"session_id": session_id})
        await events.state("WAITING_FOR_INPUT")
        assert states(events)[2:] == [
            ("RUNNING", "CANCELLED"),
            ("CANCELLED", "STARTING"),
            ("STARTING", "WAITING_FOR_INPUT"),
        ]


async def test_finishing_a_task_completes_its_sessions_and_a_message_opens_them_again(house: Kandev) -> None:
    task_id, session_id = await house.session("say first")
    async with house.watching(session_id) as events:
        await turns_over(events)
        await events.state("WAITING_FOR_INPUT")
        finished = await house.call("task.state", {"id": task_id, "state": "COMPLETED"})
        assert finished["state"] == "COMPLETED"
        await events.state("COMPLETED")
        assert (await add(house, task_id, session_id, "recall"))["status"] == "sent"
        await turns_over(events, 2)
    assert (await said(house, session_id))[-1] == "recall: say first"
    assert (await house.call("task.get", {"id": task_id}))["state"] == "COMPLETED", "a person's word stays"


@pytest.mark.proves("ACT-session.get")
async def test_a_session_shows_its_turn_while_it_lasts_and_no_longer(house: Kandev) -> None:
    _, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        busy = await get(house, session_id)
        assert busy["state"] == "RUNNING"
        assert busy["execution"]["status"] == "busy"
        assert busy["active_turn"]["execution_id"] == busy["execution"]["id"]
        assert busy["queue"] == {"count": 0, "max": 10, "auto_run": True}
        assert (busy["cancellation_pending"], busy["cancellation_revision"]) == (False, 0)
        await house.call("agent.cancel", {"session_id": session_id})
        idle = await get(house, session_id)
        assert "active_turn" not in idle
        assert idle["execution"] == {"id": busy["execution"]["id"], "status": "ready"}


@pytest.mark.proves("ACT-task.session.list", "DOOR-lists", "ACT-session.rename", "ACT-session.set_primary")
async def test_two_sessions_of_one_task_stand_side_by_side(house: Kandev) -> None:
    task_id, first = await house.session("say one\nsleep 600")
    launched = await house.call("session.launch", {"task_id": task_id, "prompt": "say two"})
    second = launched["session_id"]
    async with house.watching(first) as ones, house.watching(second) as twos:
        await agent_spoke(ones)
        await turns_over(twos)
        await twos.state("WAITING_FOR_INPUT")
        assert (await house.call("task.get", {"id": task_id}))["state"] == "IN_PROGRESS", "one still works"
        listed = (await house.call("task.session.list", {"task_id": task_id}))["sessions"]
        assert [s["id"] for s in listed] == [second, first], "newest first"
        assert [s["is_primary"] for s in listed] == [False, True]
        renamed = await house.call("session.rename", {"session_id": second, "name": "The reviewer"})
        assert renamed["name"] == "The reviewer"
        assert (await house.call("session.set_primary", {"session_id": second}))["is_primary"] is True
        assert (await get(house, first))["is_primary"] is False
        await house.call("agent.cancel", {"session_id": first})
        assert (await house.call("task.get", {"id": task_id}))["state"] == "REVIEW"
    assert await said(house, second) == ["two"]


@pytest.mark.proves("ACT-session.explain")
async def test_explain_says_in_one_sentence_what_a_session_does(house: Kandev) -> None:
    slow = await profile(house, env={"MOCK_AGENT_START": "slow 0.5"})
    task_id, session_id = await house.session("ask Touch a file\nsay done", agent_profile_id=slow)

    async def explained() -> dict[str, Any]:
        return await house.call("session.explain", {"session_id": session_id})

    assert (await explained())["sentence"].startswith("The agent is starting.")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        waiting = await explained()
        assert waiting["sentence"] == "The agent waits for your answer to a permission request."
        assert (waiting["state"], waiting["waiting_for"]) == ("RUNNING", "permission")
        assert waiting["phase"] == "running"
        await add(house, task_id, session_id, "say later")
        assert "1 message waits in the queue." in (await explained())["sentence"]
        answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": "allow_once"}
        await house.call("permission.respond", answer)
        await turns_over(events, 2)
        idle = await explained()
        assert idle["sentence"] == "The agent is up and waits for a message."
        assert idle["since"] == (await get(house, session_id))["since"]
        assert idle["phase"] == "waiting"

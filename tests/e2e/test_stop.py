"""Stops: answered at once, durable before the teardown, and nothing of the agent is left."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    get,
    marked,
    nothing_left,
    nth,
    profile,
    said,
    turns_over,
    until_true,
)


async def stop(house: Kandev, session_id: str, **more: Any) -> None:
    assert await house.call("session.stop", {"session_id": session_id, **more}) == {"success": True}


@pytest.mark.proves("ACT-session.stop", "INV-10")
@pytest.mark.field("A01", "E25")
async def test_a_running_session_is_cancelled_its_task_goes_to_review_and_nothing_is_left(
    house: Kandev,
) -> None:
    task_id, session_id = await house.session("spawn 600\nsay hello\nsleep 600")
    async with house.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
        child = int((await said(house, session_id))[0].removeprefix("pid "))
        assert alive(child) and len(marked(session_id)) == 2
        await stop(house, session_id, reason="had enough")
        session = await get(house, session_id)
        assert session["state"] == "CANCELLED"
        ended = await turns_over(events)
        assert (ended["cause"], ended["stop_reason"]) == ("stopped", "stopped")
        assert (await house.call("task.get", {"id": task_id}))["state"] == "REVIEW"
        await nothing_left(session_id)
        assert not alive(child)
    line = (await said(house, session_id, "system", "status"))[-1]
    assert "had enough" in line
    with pytest.raises(CallFailed) as again:
        await stop(house, session_id)
    assert (again.value.status, again.value.code, again.value.message) == (
        404,
        "NOT_FOUND",
        "execution not found",
    )


async def test_a_waiting_session_with_a_live_process_is_stopped_too(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello")
    async with house.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
        assert marked(session_id)
        await stop(house, session_id)
        await nothing_left(session_id)
        assert (await get(house, session_id))["state"] == "CANCELLED"
        await house.call("session.recover", {"session_id": session_id})
        await events.until("session.state_changed", lambda p: p["old_state"] == "CANCELLED")
        await add(house, task_id, session_id, "recall")
        await turns_over(events, 2)
    assert (await said(house, session_id))[-1] == "recall: say hello", "the conversation survived the stop"


@pytest.mark.proves("INV-5")
@pytest.mark.field("A31", "A41", "B27")
async def test_a_session_that_is_starting_is_stopped_and_its_launch_rolled_back(house: Kandev) -> None:
    slow = await profile(house, env={"MOCK_AGENT_START": "slow 600"})
    task_id, session_id = await house.session("say hello", agent_profile_id=slow)
    await until_true(lambda: marked(session_id), "the process is there")
    assert (await get(house, session_id))["state"] == "STARTING"
    await stop(house, session_id)
    assert (await get(house, session_id))["state"] == "CANCELLED"
    await nothing_left(session_id)
    assert (await house.call("task.get", {"id": task_id}))["state"] == "REVIEW"
    queue = await house.call("message.queue.get", {"session_id": session_id})
    assert [e["content"] for e in queue["entries"]] == ["say hello"], "it was never handed over"
    assert await said(house, session_id) == []


async def test_where_nothing_lives_a_stop_finds_no_execution_and_changes_nothing(house: Kandev) -> None:
    task_id = (await house.task())["task"]["id"]
    prepared = await house.call("session.launch", {"task_id": task_id, "intent": "prepare"})
    session_id = prepared["session_id"]
    before = await get(house, session_id)
    for action, payload in (
        ("session.stop", {"session_id": session_id}),
        ("orchestrator.stop", {"task_id": task_id}),
    ):
        with pytest.raises(CallFailed) as refused:
            await house.call(action, payload)
        assert (refused.value.code, refused.value.message) == ("NOT_FOUND", "execution not found")
    assert await get(house, session_id) == before
    nobody = (("session.stop", {"session_id": "nobody"}), ("orchestrator.stop", {"task_id": "nobody"}))
    for action, payload in nobody:
        with pytest.raises(CallFailed) as unknown:
            await house.call(action, payload)
        assert unknown.value.code == "NOT_FOUND"
        assert unknown.value.message in ("session not found", "task not found")


@pytest.mark.proves("INV-6")
@pytest.mark.field("A05", "A11")
async def test_a_stubborn_agent_delays_no_answer_and_is_gone_a_little_later(house: Kandev) -> None:
    _, session_id = await house.session("stubborn\nspawn 600\nsay hello\ndeaf 600")
    async with house.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
        loop = asyncio.get_running_loop()
        asked = loop.time()
        await stop(house, session_id)
        assert loop.time() - asked < 1
        await events.state("CANCELLED")
        assert marked(session_id), "the state was told before the teardown was over"
        await nothing_left(session_id)


@pytest.mark.field("A29", "A31", "A11")
@pytest.mark.parametrize("again", ["session.stop", "orchestrator.stop", "session.delete"])
async def test_an_end_that_is_under_way_is_hurried_by_force(tmp_path: Path, again: str) -> None:
    patient = {"KANDEV_TEARDOWN_STDIN_S": "60", "KANDEV_TEARDOWN_S": "90"}
    async with Kandev(tmp_path / "home", patient) as kandev:
        mock = (await kandev.call("agent.profile.list"))["profiles"][0]["command"]
        stays = await profile(kandev, ["sh", "-c", '"$@"; exec sleep 600', "sh", *mock])
        task_id, session_id = await kandev.session("say hello\nsleep 600", agent_profile_id=stays)
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
            await stop(kandev, session_id)
            assert (await get(kandev, session_id))["state"] == "CANCELLED"
            await until_true(lambda: len(marked(session_id)) == 1, "the wrapper is left")
            asked = {"task_id": task_id} if again == "orchestrator.stop" else {"session_id": session_id}
            forced = asked if again == "session.delete" else {**asked, "force": True}
            assert (await kandev.call(again, forced))["success"] is True
            await nothing_left(session_id)


@pytest.mark.proves("ACT-session.recover")
@pytest.mark.field("C07", "C29")
async def test_a_resume_drains_in_order_what_was_queued_before_the_stop(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        for word in ("one", "two", "three"):
            await add(house, task_id, session_id, f"say {word}")
        await stop(house, session_id)
        assert (await get(house, session_id))["queue"] == {"count": 3, "max": 10, "auto_run": True}
        answer = await house.call("session.recover", {"session_id": session_id})
        assert answer == {"success": True, "state": "STARTING", "queued": 3}
        await turns_over(events, 4)
    assert await said(house, session_id) == ["hello", "one", "two", "three"]


async def test_a_resume_releases_nothing_that_was_parked(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        await add(house, task_id, session_id, "say parked")
        await house.call("agent.cancel", {"session_id": session_id})
        await stop(house, session_id)
        answer = await house.call("session.recover", {"session_id": session_id})
        assert answer["queued"] == 1
        await nth(events, "session.agentctl_ready", 2)
        session = await get(house, session_id)
        assert (session["state"], session["queue"]["count"]) == ("WAITING_FOR_INPUT", 1)
        assert session["parked_reason"] == "cancelled by a person"
    assert await said(house, session_id) == ["hello"]


@pytest.mark.proves("ACT-session.recover")
@pytest.mark.field("D05")
async def test_what_is_running_cannot_be_resumed(house: Kandev) -> None:
    _, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        with pytest.raises(CallFailed) as refused:
            await house.call("session.recover", {"session_id": session_id})
        assert refused.value.code == "CONFLICT"
        assert "RUNNING" in refused.value.message


@pytest.mark.proves("ACT-orchestrator.stop")
async def test_the_operators_stop_ends_every_live_session_of_the_task(house: Kandev) -> None:
    task_id, first = await house.session("say one\nsleep 600")
    second = (await house.call("session.launch", {"task_id": task_id, "prompt": "say two"}))["session_id"]
    async with house.watching(first) as ones, house.watching(second) as twos:
        await agent_spoke(ones)
        await twos.state("WAITING_FOR_INPUT")
        answer = await house.call("orchestrator.stop", {"task_id": task_id})
        assert answer["success"] is True
        assert sorted(answer["stopped"]) == sorted([first, second])
        for session_id in (first, second):
            assert (await get(house, session_id))["state"] == "CANCELLED"
            assert "stopped via API" in (await said(house, session_id, "system", "status"))[-1]
            await nothing_left(session_id)
        assert (await house.call("task.get", {"id": task_id}))["state"] == "REVIEW"


@pytest.mark.proves("ACT-task.archive", "ACT-task.unarchive")
async def test_archiving_a_task_ends_its_sessions_and_keeps_what_was_said(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        assert (await house.call("task.archive", {"id": task_id}))["archived_at"]
        await nothing_left(session_id)
        assert (await get(house, session_id))["state"] == "CANCELLED"
        assert "task archived" in (await said(house, session_id, "system", "status"))[-1]
        with pytest.raises(CallFailed) as refused:
            await house.call("session.launch", {"task_id": task_id})
        assert refused.value.code == "CONFLICT"
    listed = (await house.call("task.list"))["tasks"]
    assert task_id not in [t["id"] for t in listed]
    back = await house.call("task.unarchive", {"id": task_id})
    assert "archived_at" not in back
    assert back["state"] == "REVIEW", "what it was working on ended while it was off the board"
    assert await said(house, session_id) == ["hello"]


@pytest.mark.proves("ACT-task.delete", "ACT-session.delete")
async def test_deleting_ends_the_process_first_and_then_nothing_is_known_any_more(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    other = (await house.call("session.launch", {"task_id": task_id, "prompt": "say two"}))["session_id"]
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        assert await house.call("session.delete", {"session_id": session_id}) == {"success": True}
        assert not marked(session_id)
        with pytest.raises(CallFailed) as gone:
            await get(house, session_id)
        assert gone.value.message == "session not found"
        assert (await get(house, other))["is_primary"] is True
        await house.call("task.delete", {"id": task_id})
        assert not marked(other)
        for action, payload in (("task.get", {"id": task_id}), ("session.get", {"session_id": other})):
            with pytest.raises(CallFailed) as unknown:
                await house.call(action, payload)
            assert unknown.value.code == "NOT_FOUND"

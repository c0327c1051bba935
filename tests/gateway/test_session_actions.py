"""The answers of the session's actions at the public doors, in the contract's shape."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.house import MOCK, WAIT_S, House


@pytest.mark.proves("ACT-session.launch")
async def test_a_launch_answers_session_state_execution_and_worktree(house: House) -> None:
    await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    task = await house.task()
    house.world.launch_s = 3600
    answer = await house.ok("session.launch", task_id=task["id"], prompt="say hello")
    assert set(answer) == {
        "success",
        "task_id",
        "session_id",
        "state",
        "agent_execution_id",
        "worktree_path",
    }
    assert (answer["success"], answer["task_id"], answer["state"]) == (True, task["id"], "STARTING")


@pytest.mark.proves("ACT-session.launch")
async def test_a_prepared_session_has_no_agent_and_is_started_later(house: House) -> None:
    await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    task = await house.task()
    prepared = await house.ok("session.launch", task_id=task["id"], intent="prepare")
    assert (prepared["state"], "agent_execution_id" in prepared) == ("CREATED", False)
    start = {"task_id": task["id"], "session_id": prepared["session_id"], "intent": "start_created"}
    await house.ok("session.launch", **start, prompt="say hello")
    await house.until(prepared["session_id"], "WAITING_FOR_INPUT")
    await house.refused("session.launch", "CONFLICT", **start)


@pytest.mark.proves("ACT-session.launch", "BAD-wrong-type")
async def test_members_of_a_launch_that_do_not_go_together_are_refused(house: House) -> None:
    task, session_id = await house.started("say hello")
    launch = {"task_id": task["id"]}
    await house.refused("session.launch", "VALIDATION_ERROR", **launch, session_id=session_id)
    assert "session_id" in await house.refused(
        "session.launch", "VALIDATION_ERROR", **launch, intent="resume"
    )
    assert "intent" in await house.refused("session.launch", "VALIDATION_ERROR", **launch, intent="restart")
    await house.refused("session.launch", "NOT_FOUND", **launch, agent_profile_id="x")
    await house.refused("session.launch", "VALIDATION_ERROR", **launch, intent="prepare", prompt="say hello")
    await house.refused("session.launch", "VALIDATION_ERROR", **launch, prompt=" ")
    again = {**launch, "intent": "resume", "session_id": session_id}
    await house.refused("session.launch", "NOT_FOUND", **again, agent_profile_id="x")
    other = await house.ok("agent.profile.create", name="Other", command=list(MOCK))
    await house.refused("session.launch", "VALIDATION_ERROR", **again, agent_profile_id=other["id"])
    sessions = (await house.ok("task.session.list", task_id=task["id"]))["sessions"]
    assert [s["id"] for s in sessions] == [session_id], "what was refused made no session"


@pytest.mark.proves("ACT-session.launch", "INV-7")
async def test_where_no_worktree_can_be_made_no_session_is_prepared(house: House) -> None:
    await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    workspace, workflow = await house.board()
    row = await house.ok("repository.create", workspace_id=workspace, local_path=str(house.repository()))
    chosen = [{"repository_id": row["id"], "base_branch": "nowhere"}]
    task = await house.task(workspace_id=workspace, workflow_id=workflow, repositories=chosen)
    launch = {"task_id": task["id"], "intent": "prepare"}
    assert "nowhere" in await house.refused("session.launch", "VALIDATION_ERROR", **launch)
    assert await house.ok("task.session.list", task_id=task["id"]) == {"sessions": []}


@pytest.mark.proves("ACT-session.get", "ACT-session.explain")
async def test_a_running_session_shows_execution_turn_and_queue(house: House) -> None:
    _, session_id = await house.started("sleep 30")
    session = await house.until(session_id, "RUNNING")
    assert session["id"] == session_id
    assert set(session["execution"]) == {"id", "status"}
    assert session["active_turn"]["execution_id"] == session["execution"]["id"]
    assert (session["cancellation_pending"], session["cancellation_revision"]) == (False, 0)
    assert session["queue"] == {"count": 0, "max": 10, "auto_run": True}
    explained = await house.ok("session.explain", session_id=session_id)
    assert explained["sentence"]
    assert (explained["state"], explained["since"]) == ("RUNNING", session["since"])


@pytest.mark.proves(
    "ACT-message.add",
    "ACT-message.status",
    "ACT-message.queue.get",
    "ACT-message.queue.remove",
    "NOTE-message.queue.status_changed",
)
async def test_a_message_to_a_busy_session_waits_and_can_be_taken_out(house: House) -> None:
    task, session_id = await house.started("sleep 30")
    await house.until(session_id, "RUNNING")
    content = {"task_id": task["id"], "session_id": session_id, "content": "say later"}
    added = await house.ok("message.add", **content, idempotency_key="k")
    assert set(added) == {"message_id", "entry_id", "status"}
    assert added["status"] == "queued"
    assert await house.ok("message.add", **content, idempotency_key="k") == added
    queue = await house.ok("message.queue.get", session_id=session_id)
    [entry] = queue["entries"]
    assert (entry["id"], entry["content"], entry["position"]) == (added["entry_id"], "say later", 0)
    assert (queue["count"], queue["max"], queue["auto_run"]) == (1, 10, True)
    assert (await house.ok("message.status", entry_id=added["entry_id"]))["state"] == "queued"
    await house.ok("message.queue.remove", session_id=session_id, entry_id=added["entry_id"])
    assert (await house.ok("message.status", entry_id=added["entry_id"]))["state"] == "removed"
    assert (await house.ok("message.queue.get", session_id=session_id))["entries"] == []
    assert house.heard.actions("session").count("message.queue.status_changed") >= 2


@pytest.mark.proves("ACT-agent.cancel", "NOTE-session.cancellation_changed", "CANCEL-layer-http")
async def test_a_cancel_answers_success_and_the_session(house: House) -> None:
    task, session_id = await house.started("sleep 30")
    await house.until(session_id, "RUNNING")
    answer = await house.ok("agent.cancel", task_id=task["id"], session_id=session_id)
    assert answer == {"success": True, "session_id": session_id}
    session = await house.until(session_id, "WAITING_FOR_INPUT")
    assert session["cancellation_revision"] == 2
    told = [n.payload for n in house.heard.all if n.action == "session.cancellation_changed"]
    assert {(p["cancellation_pending"], p["cancellation_revision"]) for p in told} == {(True, 1), (False, 2)}
    other = await house.task()
    message = await house.refused("agent.cancel", "NOT_FOUND", task_id=other["id"], session_id=session_id)
    assert message == "session not found"


@pytest.mark.proves("ACT-session.stop", "ACT-session.recover")
async def test_a_stopped_session_has_nothing_to_stop_and_can_be_recovered(house: House) -> None:
    _, session_id = await house.started("sleep 30")
    await house.until(session_id, "RUNNING")
    await house.refused("session.recover", "CONFLICT", session_id=session_id)
    assert await house.ok("session.stop", session_id=session_id, reason="enough") == {"success": True}
    await house.until(session_id, "CANCELLED")
    assert await house.ctx.sessions.gone(session_id, WAIT_S)
    message = await house.refused("session.stop", "NOT_FOUND", session_id=session_id)
    assert message == "execution not found"
    recovered = await house.ok("session.recover", session_id=session_id)
    assert set(recovered) == {"success", "state", "queued"}
    assert (recovered["success"], recovered["state"]) == (True, "STARTING")
    await house.until(session_id, "WAITING_FOR_INPUT")


@pytest.mark.proves("ACT-session.delete", "NOTE-session")
async def test_a_deleted_session_is_gone_and_the_task_stays(house: House) -> None:
    task, session_id = await house.started("sleep 30")
    await house.until(session_id, "RUNNING")
    assert await house.ok("session.delete", session_id=session_id) == {"success": True}
    await house.refused("session.get", "NOT_FOUND", session_id=session_id)
    assert await house.ok("task.session.list", task_id=task["id"]) == {"sessions": []}
    assert house.heard.actions().count("session.deleted") == 1
    assert house.heard.actions("session")[-1] == "session.deleted", "who follows it hears of its end"


@pytest.mark.proves("NOTE-session.agentctl", "NOTE-session.state_changed")
async def test_a_launch_that_fails_is_told_with_its_sentence(house: House) -> None:
    house.world.refuse_launch = "fox: command not found."
    _, session_id = await house.started("say hello")
    session = await house.until(session_id, "FAILED")
    assert "command not found" in session["error"]
    async with asyncio.timeout(WAIT_S):
        while "session.agentctl_error" not in house.heard.actions("session"):
            await asyncio.sleep(0.01)
    house.world.refuse_launch = None
    _, other = await house.started("say hello")
    await house.until(other, "WAITING_FOR_INPUT")
    assert "session.agentctl_ready" in house.heard.actions("session")
    [changed] = [
        n.payload
        for n in house.heard.all
        if n.action == "session.state_changed"
        and n.stream == "session"
        and n.payload["new_state"] == "FAILED"
    ]
    assert (changed["old_state"], changed["session_id"]) == ("STARTING", session_id)

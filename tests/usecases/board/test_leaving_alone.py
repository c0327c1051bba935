"""What the end of a session leaves alone: the tree of tasks, the work in a worktree; and what it does not."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.gateway.house import MOCK, House

ENDS = {
    "agent.cancel": "session_id",
    "session.stop": "session_id",
    "orchestrator.stop": "task_id",
    "task.archive": "id",
    "session.delete": "session_id",
}


async def with_repository(house: House) -> dict[str, object]:
    """What `House.started` takes for a task on a repository."""
    workspace, workflow = await house.board()
    row = await house.ok("repository.create", workspace_id=workspace, local_path=str(house.repository()))
    chosen = [{"repository_id": row["id"]}]
    return {"workspace_id": workspace, "workflow_id": workflow, "repositories": chosen}


@pytest.mark.field("D31")
@pytest.mark.parametrize("end", ENDS)
async def test_the_tree_of_tasks_is_as_it_was(house: House, end: str) -> None:
    workspace, workflow = await house.board()
    parent = await house.task("Parent", workspace_id=workspace, workflow_id=workflow)
    board = {"workspace_id": workspace, "workflow_id": workflow}
    child, session_id = await house.started("sleep 30", parent_id=parent["id"], **board)
    grandchild = await house.task("Below", parent_id=child["id"], **board)
    await house.until(session_id, "RUNNING")
    named = {"session_id": session_id, "task_id": child["id"], "id": child["id"]}[ENDS[end]]
    await house.ok(end, **{ENDS[end]: named})
    assert (await house.ok("task.get", id=child["id"]))["parent_id"] == parent["id"]
    assert (await house.ok("task.get", id=grandchild["id"]))["parent_id"] == child["id"]


@pytest.mark.field("E31")
async def test_a_worktree_goes_only_when_nobody_works_in_it_any_more(house: House) -> None:
    task, session_id = await house.started("sleep 30", **await with_repository(house))
    path = Path((await house.until(session_id, "RUNNING"))["worktree_path"])
    (execution,) = house.world.executions.values()
    execution.end_s = 0.3
    deleting = asyncio.create_task(house.ok("task.delete", id=task["id"]))
    while not deleting.done():
        assert path.exists() or execution.state == "ended", "it was taken from under its agent"
        await asyncio.sleep(0.005)
    assert (await deleting)["success"] and not path.exists()


@pytest.mark.field("E31")
async def test_the_end_of_one_session_leaves_the_worktree_to_the_others(house: House) -> None:
    task, first = await house.started("sleep 30", **await with_repository(house))
    second = (await house.ok("session.launch", task_id=task["id"], prompt="sleep 30"))["session_id"]
    path = Path((await house.until(first, "RUNNING"))["worktree_path"])
    assert (await house.until(second, "RUNNING"))["worktree_path"] == str(path)
    await house.ok("session.delete", session_id=first)
    assert path.is_dir() and (await house.ok("session.get", session_id=second))["state"] == "RUNNING"
    await house.ok("task.archive", id=task["id"])
    await house.until(second, "CANCELLED")
    assert path.is_dir(), "what is archived keeps its work"
    await house.refused("session.recover", "CONFLICT", session_id=second)
    await house.ok("task.unarchive", id=task["id"])
    await house.ok("session.recover", session_id=second)
    assert (await house.until(second, "WAITING_FOR_INPUT"))["worktree_path"] == str(path)


@pytest.mark.field("E03")
async def test_of_sessions_that_were_deleted_nothing_stays_in_memory(house: House) -> None:
    profile = await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    task = await house.task(agent_profile_id=profile["id"])
    for number in range(20):
        prompt = "say hello" if number % 2 else "sleep 30"
        launched = await house.ok("session.launch", task_id=task["id"], prompt=prompt)
        await house.until(launched["session_id"], "WAITING_FOR_INPUT" if number % 2 else "RUNNING")
        await house.ok("session.delete", session_id=launched["session_id"])
    sessions = house.ctx.sessions
    async with asyncio.timeout(10):
        while sessions._tasks or sessions._small or house.world.executions:
            await asyncio.sleep(0.01)
    kept = (sessions._actors, sessions._holds, sessions._loading, sessions._quiet)
    assert [bool(one) for one in kept] == [False] * 4

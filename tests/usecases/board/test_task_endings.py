"""How a task and its sessions end: completed, archived, deleted; and what sessions are asked besides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kandev.core.errors import NotFound
from kandev.core.inputs import Cancel
from kandev.usecases.first_start import add_found_profiles, first_start
from tests.gateway.house import MOCK, House, Socket, dial, serving


@pytest.mark.proves("ACT-task.state")
async def test_completing_a_task_finishes_its_sessions(house: House) -> None:
    task, session_id = await house.started("sleep 30")
    await house.until(session_id, "RUNNING")
    assert (await house.ok("task.state", id=task["id"], state="COMPLETED"))["state"] == "COMPLETED"
    await house.until(session_id, "COMPLETED")
    assert (await house.ok("task.get", id=task["id"]))["state"] == "COMPLETED"


@pytest.mark.proves("ACT-task.archive", "ACT-task.unarchive", "ACT-task.list")
async def test_an_archived_task_leaves_the_board_and_its_sessions_end(house: House) -> None:
    task, session_id = await house.started("sleep 30")
    await house.until(session_id, "RUNNING")
    archived = await house.ok("task.archive", id=task["id"])
    assert "archived_at" in archived
    await house.until(session_id, "CANCELLED")
    assert await house.ok("task.list", workspace_id=task["workspace_id"]) == {"tasks": []}
    everything = await house.ok("task.list", workspace_id=task["workspace_id"], include_archived=True)
    assert [t["id"] for t in everything["tasks"]] == [task["id"]]
    await house.refused("session.launch", "CONFLICT", task_id=task["id"])
    await house.refused("task.state", "CONFLICT", id=task["id"], state="TODO")
    assert "archived_at" not in await house.ok("task.unarchive", id=task["id"])
    await house.until(session_id, "CANCELLED")


@pytest.mark.proves("ACT-task.delete", "NOTE-task", "NOTE-session")
async def test_a_deleted_task_is_gone_with_its_sessions_and_its_clean_worktree(house: House) -> None:
    task, session_id, path = await in_a_worktree(house)
    child = await house.task(
        "child", parent_id=task["id"], workspace_id=task["workspace_id"], workflow_id=task["workflow_id"]
    )
    assert path.is_dir()
    assert await house.ok("task.delete", id=task["id"]) == {"success": True}
    assert not path.exists()
    await house.refused("task.get", "NOT_FOUND", id=task["id"])
    await house.refused("session.get", "NOT_FOUND", session_id=session_id)
    assert "parent_id" not in await house.ok("task.get", id=child["id"])
    assert {"task.deleted", "session.deleted", "session.created", "session.updated"} <= {
        *house.heard.actions()
    }


@pytest.mark.proves("ACT-task.delete")
@pytest.mark.field("E27", "E33")
async def test_a_worktree_with_work_in_it_stays_and_the_answer_says_so(house: House) -> None:
    task, _, path = await in_a_worktree(house)
    (path / "new.txt").write_text("precious\n")
    answer = await house.ok("task.delete", id=task["id"])
    assert (answer["success"], answer["worktree_kept"]) == (True, str(path))
    assert answer["reason"]
    assert (path / "new.txt").read_text() == "precious\n"
    await house.refused("task.get", "NOT_FOUND", id=task["id"])


@pytest.mark.proves("ACT-session.changes", "ACT-session.diff", "TREE-changes")
async def test_changes_and_diff_of_a_session_are_readable(house: House) -> None:
    _, session_id, path = await in_a_worktree(house)
    (path / "new.txt").write_text("one\ntwo\n")
    (path / "a.txt").write_text("changed\n")
    files = (await house.ok("session.changes", session_id=session_id))["files"]
    assert {(f["path"], f["additions"], f["deletions"]) for f in files} == {
        ("a.txt", 1, 1),
        ("new.txt", 2, 0),
    }
    diff = (await house.ok("session.diff", session_id=session_id, path="a.txt"))["diff"]
    assert "+changed" in diff
    assert "new.txt" not in diff
    for wrong in ("../a.txt", "/etc/passwd", "a\0b"):
        await house.refused("session.diff", "VALIDATION_ERROR", session_id=session_id, path=wrong)


@pytest.mark.proves("ACT-task.session.list", "ACT-session.rename", "ACT-session.set_primary", "DOOR-lists")
async def test_sessions_are_listed_newest_first_renamed_and_made_primary(house: House) -> None:
    task, first = await house.started("say hello")
    second = (await house.ok("session.launch", task_id=task["id"], intent="prepare"))["session_id"]
    listed = (await house.ok("task.session.list", task_id=task["id"]))["sessions"]
    assert [(s["id"], s["is_primary"]) for s in listed] == [(second, False), (first, True)]
    assert (await house.ok("session.rename", session_id=second, name=" Other "))["name"] == "Other"
    assert (await house.ok("session.set_primary", session_id=second))["is_primary"] is True
    listed = (await house.ok("task.session.list", task_id=task["id"]))["sessions"]
    assert [(s["id"], s["is_primary"], s["name"]) for s in listed] == [
        (second, True, "Other"),
        (first, False, listed[1]["name"]),
    ]
    assert "session.updated" in house.heard.actions("session")


@pytest.mark.proves("ACT-message.list", "DOOR-lists")
async def test_messages_are_paged_oldest_first(house: House) -> None:
    _, session_id = await house.started("say one\nsay two\nsay three")
    await house.until(session_id, "WAITING_FOR_INPUT")

    async def page(**payload: object) -> list[str]:
        found = await house.ok("message.list", session_id=session_id, **payload)
        return [m["content"] for m in found["messages"]]

    everything = (await house.ok("message.list", session_id=session_id))["messages"]
    assert [m["content"] for m in everything[1:]] == ["one", "two", "three"]
    assert [m["seq"] for m in everything] == sorted(m["seq"] for m in everything)
    assert await page(limit=2, after=everything[0]["id"]) == ["one", "two"]
    assert await page(limit=2, before=everything[3]["id"]) == ["one", "two"]
    both = {"session_id": session_id, "before": everything[0]["id"], "after": everything[0]["id"]}
    await house.refused("message.list", "VALIDATION_ERROR", **both)
    await house.refused("message.list", "NOT_FOUND", session_id=session_id, after="x")
    await house.refused("message.list", "VALIDATION_ERROR", session_id=session_id, limit=0)


@pytest.mark.parametrize(
    "answer", [{}, {"option_id": "a", "rejected": True}, {"cancelled": True, "rejected": True}]
)
async def test_a_permission_is_answered_in_exactly_one_way(house: House, answer: dict[str, object]) -> None:
    message = await house.refused(
        "permission.respond", "VALIDATION_ERROR", session_id="s", request_id="r", **answer
    )
    assert "exactly one" in message


@pytest.mark.proves("ACT-orchestrator.stop")
async def test_the_operator_stops_a_task(house: House) -> None:
    task, session_id = await house.started("sleep 30")
    answer = await house.ok("orchestrator.stop", task_id=task["id"], reason="enough")
    assert (answer["success"], answer["stopped"]) == (True, [session_id])
    await house.until(session_id, "CANCELLED")
    await house.refused("orchestrator.stop", "NOT_FOUND", task_id=task["id"])


@pytest.mark.proves("ACT-orchestrator.stop")
async def test_the_operators_stop_puts_an_idle_task_in_review(house: House) -> None:
    task, session_id = await idle(house)
    assert (await house.ok("task.get", id=task["id"]))["state"] == "TODO"
    assert (await house.ok("orchestrator.stop", task_id=task["id"]))["stopped"] == [session_id]
    assert (await house.ok("task.get", id=task["id"]))["state"] == "REVIEW"
    assert house.heard.actions().count("task.state_changed") == 3, "SCHEDULING, TODO, REVIEW"


@pytest.mark.proves("ACT-orchestrator.stop")
async def test_the_operators_stop_leaves_a_final_task_as_it_is(house: House) -> None:
    task, session_id = await idle(house)
    await house.ok("task.state", id=task["id"], state="CANCELLED")
    assert (await house.ok("orchestrator.stop", task_id=task["id"]))["stopped"] == [session_id]
    assert (await house.ok("task.get", id=task["id"]))["state"] == "CANCELLED"


async def idle(house: House) -> tuple[dict[str, object], str]:
    """A task whose agent was launched with nothing to say, and is up."""
    profile = await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    task = await house.task(agent_profile_id=profile["id"])
    session_id = (await house.ok("session.launch", task_id=task["id"]))["session_id"]
    await house.until(session_id, "WAITING_FOR_INPUT")
    return task, session_id


@pytest.mark.proves("ACT-task.archive")
async def test_nothing_starts_on_an_archived_task(house: House) -> None:
    task, stopped = await house.started("sleep 30")
    id = task["id"]
    prepared = (await house.ok("session.launch", task_id=id, intent="prepare"))["session_id"]
    await house.ok("task.archive", id=id)
    await house.until(stopped, "CANCELLED")
    await house.refused("session.recover", "CONFLICT", session_id=stopped)
    for session_id, intent in ((stopped, "resume"), (prepared, "start_created")):
        launch = {"task_id": id, "session_id": session_id, "intent": intent}
        assert "archived" in await house.refused("session.launch", "CONFLICT", **launch)
        added = {"task_id": id, "session_id": session_id, "content": "say more"}
        assert "archived" in await house.refused("message.add", "CONFLICT", **added)
    await house.until(prepared, "CANCELLED")


@pytest.mark.proves("CLI-first-start", "ACT-workspace.list", "ACT-workflow.list")
async def test_a_first_start_makes_the_default_things_once(house: House) -> None:
    assert await first_start(house.ctx, mock_command=MOCK) is True
    [workspace] = (await house.ok("workspace.list"))["workspaces"]
    [workflow] = (await house.ok("workflow.list", workspace_id=workspace["id"]))["workflows"]
    assert (workspace["name"], workflow["name"]) == ("Default", "Kanban")
    assert [s["name"] for s in workflow["steps"]] == ["Backlog", "In Progress", "Review", "Done"]
    found = await add_found_profiles(house.ctx)
    assert [p.name for p in found] == ["Fox"]
    profiles = (await house.ok("agent.profile.list"))["profiles"]
    assert [(p["name"], p["command"]) for p in profiles] == [
        ("Mock agent", list(MOCK)),
        ("Fox", ["fox", "acp"]),
    ]
    await house.ok("agent.profile.delete", id=profiles[1]["id"])
    assert await first_start(house.ctx, mock_command=MOCK) is False
    assert await add_found_profiles(house.ctx) == ()
    assert len((await house.ok("agent.profile.list"))["profiles"]) == 1


async def test_a_board_hears_of_sessions_of_its_workspace(house: House) -> None:
    async with serving(house.app) as address, dial(address) as socket:
        task, session_id = await house.started("sleep 30")
        await house.until(session_id, "RUNNING")
        snapshot = await socket.ok("workspace.subscribe", workspace_id=task["workspace_id"])
        assert [(s["id"], s["state"]) for s in snapshot["sessions"]] == [(session_id, "RUNNING")]
        await house.ok("session.stop", session_id=session_id)
        changed = await told(socket, session_id)
        assert changed == ("RUNNING", "CANCELLED")


async def told(socket: Socket, session_id: str) -> tuple[str, str]:
    """The states of the next change that the workspace hears of."""
    payload = await socket.heard("session.state_changed")
    assert payload["session_id"] == session_id
    return payload["old_state"], payload["new_state"]


async def in_a_worktree(house: House) -> tuple[dict[str, object], str, Path]:
    """A task on a repository whose agent has answered once: task, session id, worktree."""
    workspace, workflow = await house.board()
    row = await house.ok("repository.create", workspace_id=workspace, local_path=str(house.repository()))
    task, session_id = await house.started(
        "say hello",
        workspace_id=workspace,
        workflow_id=workflow,
        repositories=[{"repository_id": row["id"]}],
    )
    session = await house.until(session_id, "WAITING_FOR_INPUT")
    return task, session_id, Path(session["worktree_path"])


@pytest.mark.proves("ACT-session.rename")
async def test_a_session_at_work_is_renamed_without_harm_to_its_turn(house: House) -> None:
    task, session_id = await house.started("sleep 30")
    await house.until(session_id, "RUNNING")
    await house.ok("session.rename", session_id=session_id, name="Other")
    added = await house.ok("message.add", task_id=task["id"], session_id=session_id, content="say more")
    assert added["status"] == "queued"
    assert (await house.ok("agent.cancel", session_id=session_id))["success"] is True
    assert (await house.until(session_id, "WAITING_FOR_INPUT"))["name"] == "Other"


@pytest.mark.proves("ACT-session.delete")
async def test_whoever_waits_for_a_session_that_is_deleted_hears_that_it_is_gone(house: House) -> None:
    _, session_id = await house.started("deaf 30")
    await house.until(session_id, "RUNNING")
    sessions = house.ctx.sessions
    waiting = asyncio.create_task(sessions.ask(session_id, Cancel))
    async with asyncio.timeout(10):
        while not (await house.ok("session.get", session_id=session_id))["cancellation_pending"]:
            await asyncio.sleep(0.01)
    sessions.discard(session_id)
    with pytest.raises(NotFound, match="session not found"):
        await waiting

"""Long lists come in parts that fit, and the parts together are the whole."""

from __future__ import annotations

from typing import Any

import pytest

from kandev.gateway import actions_sessions, fitting
from kandev.usecases import tasks
from tests.gateway.house import House, Socket

pytestmark = pytest.mark.proves("DOOR-large-lists")


def test_as_many_as_fit_are_taken_and_at_least_one() -> None:
    things = [{"n": "x" * 10}] * 5
    one = fitting.weight(things[0])
    assert len(fitting.fitting(things, 3 * one)) == 3
    assert len(fitting.fitting(things, 3 * one - 1)) == 2
    assert len(fitting.fitting(things, 1)) == 1
    assert fitting.fitting([], 1) == []


async def many_tasks(house: House, count: int) -> tuple[str, list[str]]:
    """A workspace with so many tasks, a session on every second one; ids of the tasks by creation."""
    profile = await house.ok("agent.profile.create", name="Mock", command=["mock"])
    workspace, workflow = await house.board()
    ids = []
    for n in range(count):
        place = {"workspace_id": workspace, "workflow_id": workflow, "agent_profile_id": profile["id"]}
        ids.append((await house.task(f"Task {n}", description="x" * 1000, **place))["id"])
        if n % 2 == 0:
            await house.ok("session.launch", task_id=ids[-1], intent="prepare")
    return workspace, ids


@pytest.mark.proves("ACT-workspace.snapshot")
async def test_a_board_that_is_too_large_for_one_answer_is_read_part_by_part(
    house: House, client: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "ANSWER_BYTES", 10_000)
    monkeypatch.setattr(fitting, "READ_AT_ONCE", 3)
    workspace, ids = await many_tasks(house, 20)
    page = await client.ok("workspace.subscribe", workspace_id=workspace)
    assert page["workspace"]["id"] == workspace and page["workflows"]
    found, sessions, parts = list[str](), list[str](), 0
    while True:
        parts += 1
        here = [task["id"] for task in page["tasks"]]
        assert len(here) < 10 and page["seq"] > 0
        assert {session["task_id"] for session in page["sessions"]} <= set(here)
        found += here
        sessions += [session["task_id"] for session in page["sessions"]]
        if "next_cursor" not in page:
            break
        page = await house.ok("workspace.snapshot", workspace_id=workspace, cursor=page["next_cursor"])
    assert found == ids and sorted(sessions) == sorted(ids[::2]) and parts > 2


@pytest.mark.proves("ACT-workspace.snapshot")
async def test_a_board_that_fits_is_one_part_with_all_its_sessions_newest_first(
    house: House, client: Socket
) -> None:
    workspace, ids = await many_tasks(house, 6)
    await house.ok("task.archive", id=ids[0])
    followed = await client.ok("workspace.subscribe", workspace_id=workspace)
    read = await house.ok("workspace.snapshot", workspace_id=workspace)
    for page in (followed, read):
        assert "next_cursor" not in page
        assert [task["id"] for task in page["tasks"]] == ids[1:]
        assert [session["task_id"] for session in page["sessions"]] == [ids[4], ids[2]]
    sentence = await house.refused(
        "workspace.snapshot", "VALIDATION_ERROR", workspace_id=workspace, cursor="nonsense"
    )
    assert "cursor" in sentence
    await house.refused("workspace.snapshot", "NOT_FOUND", workspace_id="nonsense")


async def test_a_list_of_tasks_that_is_too_large_says_where_it_goes_on(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "PAGE_CHARACTERS", 5000)
    monkeypatch.setattr(tasks, "READ_AT_ONCE", 2)
    workspace, ids = await many_tasks(house, 11)
    page = await house.ok("task.list", workspace_id=workspace)
    found = [task["id"] for task in page["tasks"]]
    assert len(found) == 4
    while cursor := page.get("next_cursor"):
        page = await house.ok("task.list", workspace_id=workspace, cursor=cursor, limit=3)
        found += [task["id"] for task in page["tasks"]]
    assert found == ids


@pytest.mark.proves("ACT-message.list")
async def test_a_page_of_long_messages_is_short_and_begins_or_ends_where_it_was_asked_to(
    house: House, client: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "\n".join(f"say {n} {'x' * 1000}" for n in range(9))
    _, session_id = await house.started(script)
    await house.until(session_id, "WAITING_FOR_INPUT")
    whole = await messages(house, session_id)
    monkeypatch.setattr(fitting, "LATEST_BYTES", 5000)
    monkeypatch.setattr(actions_sessions, "fitting", lambda things: fitting.fitting(things, 5000))
    monkeypatch.setattr("kandev.gateway.streams.LATEST_BYTES", 5000)
    after, forwards = None, list[str]()
    while page := await messages(house, session_id, after=after):
        assert len(page) < 5 or not forwards
        forwards += page
        after = page[-1]
    assert forwards == whole
    before, backwards = whole[-1], [whole[-1]]
    while page := await messages(house, session_id, before=before):
        backwards = page + backwards
        before = page[0]
    assert backwards == whole
    shown = (await client.ok("session.subscribe", session_id=session_id))["messages"]
    assert [message["id"] for message in shown] == whole[-len(shown) :] and 1 < len(shown) < 5


async def messages(house: House, session_id: str, **place: Any) -> list[str]:
    """Ids."""
    listed = await house.ok("message.list", session_id=session_id, limit=100, **place)
    return [message["id"] for message in listed["messages"]]


async def test_of_very_many_changed_files_those_that_fit_are_listed_and_the_others_counted(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = await house.ok(
        "repository.create", workspace_id=(await house.board())[0], local_path=str(house.repository())
    )
    task = await house.task(
        workspace_id=repository["workspace_id"],
        workflow_id=(await house.ok("workflow.list", workspace_id=repository["workspace_id"]))["workflows"][
            0
        ]["id"],
        repositories=[{"repository_id": repository["id"]}],
        agent_profile_id=(await house.ok("agent.profile.create", name="Mock", command=["mock"]))["id"],
    )
    launched = await house.ok("session.launch", task_id=task["id"], intent="prepare")
    for n in range(10):
        (house.tmp / launched["worktree_path"] / f"file{n}.txt").write_text("x\n")
    session_id = launched["session_id"]
    assert len((await house.ok("session.changes", session_id=session_id))["files"]) == 10
    monkeypatch.setattr(actions_sessions, "fitting", lambda things: fitting.fitting(things, 300))
    changes = await house.ok("session.changes", session_id=session_id)
    assert len(changes["files"]) + changes["more"] == 10 and changes["more"] > 5


@pytest.mark.parametrize("action", ["workspace.snapshot", "task.list"])
async def test_the_cursor_of_another_board_is_no_cursor_of_this_one(house: House, action: str) -> None:
    """It would be answered as if there were nothing, or less than there is."""
    workspace, _ = await many_tasks(house, 1)
    other = await house.ok("workspace.create", name="Other")
    flow = await house.ok("workflow.create", workspace_id=other["id"], name="Flow")
    later = await house.task("Later", workspace_id=other["id"], workflow_id=flow["id"])
    sentence = await house.refused(action, "VALIDATION_ERROR", workspace_id=workspace, cursor=later["id"])
    assert "cursor" in sentence

"""Workspaces and repositories, asked for at the HTTP door."""

from __future__ import annotations

import re

import pytest

from tests.gateway.house import House

RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@pytest.mark.proves("ACT-workspace.create", "ACT-workspace.get", "DOOR-times-ids")
async def test_a_workspace_is_created_from_its_name_and_read(house: House) -> None:
    made = await house.ok("workspace.create", name=" Shop ")
    assert set(made) == {"id", "name", "created_at", "updated_at"}
    assert made["name"] == "Shop"
    assert RFC_3339.fullmatch(made["created_at"])
    assert await house.ok("workspace.get", id=made["id"]) == made


@pytest.mark.proves("ACT-workspace.list", "DOOR-lists")
async def test_workspaces_are_listed_by_creation(house: House) -> None:
    names = ["b", "a", "c"]
    for name in names:
        await house.ok("workspace.create", name=name)
    assert [w["name"] for w in (await house.ok("workspace.list"))["workspaces"]] == names


@pytest.mark.proves("ACT-workspace.update")
async def test_a_workspace_is_renamed(house: House) -> None:
    made = await house.ok("workspace.create", name="Shop")
    assert (await house.ok("workspace.update", id=made["id"], name="Store"))["name"] == "Store"
    assert (await house.ok("workspace.get", id=made["id"]))["name"] == "Store"


@pytest.mark.proves("ACT-workspace.delete")
async def test_a_workspace_is_deleted_unless_tasks_are_in_it(house: House) -> None:
    task = await house.task()
    message = await house.refused("workspace.delete", "CONFLICT", id=task["workspace_id"])
    assert "Shop" in message
    empty = await house.ok("workspace.create", name="Empty")
    assert await house.ok("workspace.delete", id=empty["id"]) == {"success": True}
    await house.refused("workspace.get", "NOT_FOUND", id=empty["id"])


@pytest.mark.proves("BAD-unknown-id")
@pytest.mark.parametrize(
    ("action", "payload", "kind"),
    [
        ("workspace.get", {"id": "x"}, "workspace"),
        ("workspace.update", {"id": "x", "name": "n"}, "workspace"),
        ("workspace.delete", {"id": "x"}, "workspace"),
        ("repository.list", {"workspace_id": "x"}, "workspace"),
        ("repository.create", {"workspace_id": "x", "local_path": "/"}, "workspace"),
        ("repository.get", {"id": "x"}, "repository"),
        ("repository.update", {"id": "x", "name": "n"}, "repository"),
        ("repository.delete", {"id": "x"}, "repository"),
        ("workflow.list", {"workspace_id": "x"}, "workspace"),
        ("workflow.create", {"workspace_id": "x", "name": "n"}, "workspace"),
        ("workflow.get", {"id": "x"}, "workflow"),
        ("workflow.update", {"id": "x", "name": "n"}, "workflow"),
        ("workflow.delete", {"id": "x"}, "workflow"),
        ("workflow.export", {"id": "x"}, "workflow"),
        ("workflow.step.create", {"workflow_id": "x", "name": "n"}, "workflow"),
        ("workflow.step.update", {"id": "x", "name": "n"}, "workflow step"),
        ("workflow.step.delete", {"id": "x"}, "workflow step"),
        ("workflow.step.reorder", {"workflow_id": "x", "step_ids": []}, "workflow"),
        ("agent.profile.get", {"id": "x"}, "agent profile"),
        ("agent.profile.update", {"id": "x", "name": "n"}, "agent profile"),
        ("agent.profile.delete", {"id": "x"}, "agent profile"),
        ("task.get", {"id": "x"}, "task"),
        ("task.update", {"id": "x", "title": "t"}, "task"),
        ("task.move", {"id": "x", "workflow_step_id": "s"}, "task"),
        ("task.state", {"id": "x", "state": "TODO"}, "task"),
        ("task.archive", {"id": "x"}, "task"),
        ("task.unarchive", {"id": "x"}, "task"),
        ("task.delete", {"id": "x"}, "task"),
        ("task.list", {"workspace_id": "x"}, "workspace"),
        ("task.list", {"workflow_id": "x"}, "workflow"),
        ("task.list", {"parent_id": "x"}, "task"),
        ("task.session.list", {"task_id": "x"}, "task"),
        ("session.launch", {"task_id": "x"}, "task"),
        ("session.get", {"session_id": "x"}, "session"),
        ("session.rename", {"session_id": "x", "name": "n"}, "session"),
        ("session.set_primary", {"session_id": "x"}, "session"),
        ("session.changes", {"session_id": "x"}, "session"),
        ("session.diff", {"session_id": "x"}, "session"),
        ("session.stop", {"session_id": "x"}, "session"),
        ("session.delete", {"session_id": "x"}, "session"),
        ("session.recover", {"session_id": "x"}, "session"),
        ("session.explain", {"session_id": "x"}, "session"),
        ("message.add", {"task_id": "x", "session_id": "x", "content": "c"}, "task"),
        ("message.list", {"session_id": "x"}, "session"),
        ("message.status", {"entry_id": "x"}, "entry"),
        ("message.queue.get", {"session_id": "x"}, "session"),
        ("message.queue.remove", {"session_id": "x", "entry_id": "e"}, "session"),
        ("agent.cancel", {"session_id": "x"}, "session"),
        ("orchestrator.stop", {"task_id": "x"}, "task"),
        ("permission.respond", {"session_id": "x", "request_id": "r", "rejected": True}, "session"),
    ],
)
async def test_an_unknown_id_is_not_found_and_the_kind_of_thing_is_named(
    house: House, action: str, payload: dict[str, object], kind: str
) -> None:
    assert f"{kind} not found" in await house.refused(action, "NOT_FOUND", **payload)


@pytest.mark.proves("ACT-repository.create", "ACT-repository.get", "ACT-repository.list", "NOTE-catalogue")
async def test_a_git_repository_is_added_by_its_path(house: House) -> None:
    path = house.repository()
    workspace, _ = await house.board()
    (path / "inside").mkdir()
    made = await house.ok("repository.create", workspace_id=workspace, local_path=str(path / "inside"))
    assert (made["local_path"], made["name"], made["default_branch"]) == (str(path), "shop", "main")
    assert await house.ok("repository.get", id=made["id"]) == made
    assert await house.ok("repository.list", workspace_id=workspace) == {"repositories": [made]}
    assert "repository.changed" in house.heard.actions()


@pytest.mark.proves("BAD-not-a-repository", "ACT-repository.create")
async def test_a_path_that_is_no_repository_is_refused_and_named(house: House) -> None:
    workspace, _ = await house.board()
    plain = house.tmp / "plain"
    plain.mkdir()
    for path in (str(plain), "/no/such/folder", "relative/path", "/a\0b", "~"):
        message = await house.refused(
            "repository.create", "VALIDATION_ERROR", workspace_id=workspace, local_path=path
        )
        assert path.strip("/").split("\0")[0] in message
    assert await house.ok("repository.list", workspace_id=workspace) == {"repositories": []}


async def test_a_repository_is_in_a_workspace_once(house: House) -> None:
    path = str(house.repository())
    workspace, _ = await house.board()
    await house.ok("repository.create", workspace_id=workspace, local_path=path)
    message = await house.refused("repository.create", "CONFLICT", workspace_id=workspace, local_path=path)
    assert path in message
    other = await house.ok("workspace.create", name="Other")
    await house.ok("repository.create", workspace_id=other["id"], local_path=path)


@pytest.mark.proves("ACT-repository.update", "ACT-repository.delete", "NOTE-catalogue")
async def test_a_repository_is_changed_and_taken_out_without_its_files(house: House) -> None:
    path = house.repository()
    workspace, workflow = await house.board()
    made = await house.ok("repository.create", workspace_id=workspace, local_path=str(path))
    changed = await house.ok("repository.update", id=made["id"], name="Store", default_branch="next")
    assert (changed["name"], changed["default_branch"]) == ("Store", "next")
    task = await house.task(
        workspace_id=workspace, workflow_id=workflow, repositories=[{"repository_id": made["id"]}]
    )
    assert task["repositories"] == [{"repository_id": made["id"]}]
    await house.refused("repository.delete", "CONFLICT", id=made["id"])
    await house.ok("task.delete", id=task["id"])
    assert await house.ok("repository.delete", id=made["id"]) == {"success": True}
    assert (path / "a.txt").exists()

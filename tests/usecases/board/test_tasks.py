"""Tasks on their board, asked for at the HTTP door."""

from __future__ import annotations

from typing import Any

import pytest

from kandev.core.errors import Conflict
from kandev.usecases import launch_session
from tests.gateway.house import MOCK, House


@pytest.mark.proves("ACT-task.create", "ACT-task.get", "NOTE-task")
async def test_a_task_begins_in_the_first_step_and_nothing_runs(house: House) -> None:
    workspace, workflow = await house.board()
    await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    answer = await house.ok("task.create", workspace_id=workspace, workflow_id=workflow, title=" Fix it ")
    task = answer["task"]
    assert set(answer) == {"task"}
    steps = (await house.ok("workflow.get", id=workflow))["steps"]
    assert (task["title"], task["state"], task["workflow_step_id"]) == ("Fix it", "TODO", steps[0]["id"])
    assert task["description"] == ""
    assert await house.ok("task.get", id=task["id"]) == task
    assert await house.ok("task.session.list", task_id=task["id"]) == {"sessions": []}
    assert house.heard.actions().count("task.created") == 1


@pytest.mark.proves("ACT-task.create")
async def test_with_start_agent_the_description_becomes_the_first_prompt(house: House) -> None:
    workspace, workflow = await house.board()
    profile = await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    answer = await house.ok(
        "task.create",
        workspace_id=workspace,
        workflow_id=workflow,
        title="Fix it",
        description="say hello",
        start_agent=True,
    )
    session = await house.until(answer["session_id"], "WAITING_FOR_INPUT")
    assert session["agent_profile_id"] == profile["id"]
    messages = (await house.ok("message.list", session_id=answer["session_id"]))["messages"]
    assert [m["content"] for m in messages[:2]] == ["say hello", "hello"]


@pytest.mark.proves("ACT-task.create")
async def test_a_task_that_was_made_but_could_not_be_started_is_answered_with_the_reason(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise Conflict("No agent today.")

    monkeypatch.setattr(launch_session, "launch_session", refuse)
    workspace, workflow = await house.board()
    await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    answer = await house.ok(
        "task.create", workspace_id=workspace, workflow_id=workflow, title="t", start_agent=True
    )
    assert (answer["start_error"], "session_id" in answer) == ("No agent today.", False)
    assert await house.ok("task.get", id=answer["task"]["id"]) == answer["task"]


@pytest.mark.proves("ACT-task.create")
async def test_a_start_without_any_profile_is_refused_and_makes_no_task(house: House) -> None:
    workspace, workflow = await house.board()
    await house.refused(
        "task.create", "CONFLICT", workspace_id=workspace, workflow_id=workflow, title="t", start_agent=True
    )
    assert await house.ok("task.list", workspace_id=workspace) == {"tasks": []}


@pytest.mark.proves("ACT-task.create", "BAD-unknown-id")
@pytest.mark.parametrize(
    ("member", "value", "kind"),
    [
        ("workspace_id", "x", "workspace"),
        ("workflow_id", "x", "workflow"),
        ("workflow_step_id", "x", "workflow step"),
        ("parent_id", "x", "task"),
        ("agent_profile_id", "x", "agent profile"),
        ("repositories", [{"repository_id": "x"}], "repository"),
    ],
)
async def test_what_a_new_task_names_must_be_there(house: House, member: str, value: Any, kind: str) -> None:
    workspace, workflow = await house.board()
    payload = {"workspace_id": workspace, "workflow_id": workflow, "title": "t", member: value}
    assert f"{kind} not found" in await house.refused("task.create", "NOT_FOUND", **payload)


@pytest.mark.proves("ACT-task.create")
async def test_what_a_new_task_names_must_belong_together(house: House) -> None:
    workspace, workflow = await house.board()
    other, other_flow = await house.board()
    other_task = await house.task(workspace_id=other, workflow_id=other_flow)
    repository = await house.ok("repository.create", workspace_id=other, local_path=str(house.repository()))
    other_step = (await house.ok("workflow.get", id=other_flow))["steps"][0]["id"]
    for member, value in (
        ("workflow_id", other_flow),
        ("workflow_step_id", other_step),
        ("parent_id", other_task["id"]),
        ("repositories", [{"repository_id": repository["id"]}]),
    ):
        payload = {"workspace_id": workspace, "workflow_id": workflow, "title": "t", member: value}
        assert "another" in await house.refused("task.create", "VALIDATION_ERROR", **payload)
    assert await house.ok("task.list", workspace_id=workspace) == {"tasks": []}


@pytest.mark.proves("ACT-task.create")
async def test_several_repositories_are_refused_with_a_sentence(house: House) -> None:
    workspace, workflow = await house.board()
    several = [{"repository_id": "a"}, {"repository_id": "b"}]
    message = await house.refused(
        "task.create",
        "VALIDATION_ERROR",
        workspace_id=workspace,
        workflow_id=workflow,
        title="t",
        repositories=several,
    )
    assert "one repository" in message


@pytest.mark.proves("ACT-task.create")
async def test_an_external_id_is_taken_once_and_the_task_that_has_it_is_named(house: House) -> None:
    first = await house.task(external_id="T-1")
    place = {"workspace_id": first["workspace_id"], "workflow_id": first["workflow_id"]}
    status, body = await house.post("task.create", {**place, "title": "again", "external_id": "T-1"})
    assert (status, body["code"], body["details"]) == (409, "CONFLICT", {"task_id": first["id"]})


@pytest.mark.proves("ACT-task.list", "DOOR-lists")
async def test_tasks_are_listed_by_workspace_workflow_parent_and_page(house: House) -> None:
    first = await house.task("a")
    place = {"workspace_id": first["workspace_id"], "workflow_id": first["workflow_id"]}
    child = await house.task("b", parent_id=first["id"], **place)
    third = await house.task("c", **place)
    await house.task("elsewhere")

    async def listed(**payload: Any) -> list[str]:
        return [t["title"] for t in (await house.ok("task.list", **payload))["tasks"]]

    assert await listed(workspace_id=first["workspace_id"]) == ["a", "b", "c"]
    assert await listed(workflow_id=first["workflow_id"]) == ["a", "b", "c"]
    assert await listed(parent_id=first["id"]) == ["b"]
    assert len(await listed()) == 4
    page = await house.ok("task.list", workspace_id=first["workspace_id"], limit=2)
    assert [t["id"] for t in page["tasks"]] == [first["id"], child["id"]]
    rest = await house.ok(
        "task.list", workspace_id=first["workspace_id"], limit=2, cursor=page["next_cursor"]
    )
    assert ([t["id"] for t in rest["tasks"]], "next_cursor" in rest) == ([third["id"]], False)
    assert "cursor" in await house.refused("task.list", "VALIDATION_ERROR", cursor="nope")


@pytest.mark.proves("ACT-task.update", "NOTE-task")
async def test_a_task_says_something_else(house: House) -> None:
    task = await house.task(priority="low")
    changed = await house.ok("task.update", id=task["id"], title="New", description="Words", priority="high")
    assert (changed["title"], changed["description"], changed["priority"]) == ("New", "Words", "high")
    assert house.heard.actions().count("task.updated") == 1
    await house.ok("task.update", id=task["id"], title="New")
    assert house.heard.actions().count("task.updated") == 1
    await house.refused("task.update", "VALIDATION_ERROR", id=task["id"], title=" ")
    await house.refused("task.update", "VALIDATION_ERROR", id=task["id"], title=None)


@pytest.mark.proves("ACT-task.update")
async def test_a_task_is_never_below_itself(house: House) -> None:
    top = await house.task("top")
    place = {"workspace_id": top["workspace_id"], "workflow_id": top["workflow_id"]}
    middle = await house.task("middle", parent_id=top["id"], **place)
    low = await house.task("low", parent_id=middle["id"], **place)
    for parent in (top, middle, low):
        await house.refused("task.update", "VALIDATION_ERROR", id=top["id"], parent_id=parent["id"])
    assert (await house.ok("task.update", id=low["id"], parent_id=top["id"]))["parent_id"] == top["id"]
    assert "parent_id" not in await house.ok("task.update", id=low["id"], parent_id=None)


class Board:
    """Three tasks in the first of four steps."""

    def __init__(self, house: House) -> None:
        self.house = house

    async def fill(self) -> tuple[list[str], list[str]]:
        workspace, workflow = await self.house.board()
        self.workflow = workflow
        steps = [s["id"] for s in (await self.house.ok("workflow.get", id=workflow))["steps"]]
        tasks = [
            (await self.house.task(t, workspace_id=workspace, workflow_id=workflow))["id"] for t in "abc"
        ]
        return steps, tasks

    async def columns(self) -> dict[str, list[str]]:
        tasks = (await self.house.ok("task.list", workflow_id=self.workflow))["tasks"]
        found: dict[str, list[str]] = {}
        for task in sorted(tasks, key=lambda t: t["position"]):
            column = found.setdefault(task["workflow_step_id"], [])
            assert task["position"] == len(column)
            column.append(task["title"])
        return found


@pytest.mark.proves("ACT-task.move", "NOTE-task")
async def test_a_task_moves_to_a_step_and_place_and_the_others_close_up(house: House) -> None:
    board = Board(house)
    steps, (a, b, c) = await board.fill()
    moved = await house.ok("task.move", id=a, workflow_step_id=steps[1])
    assert (moved["workflow_step_id"], moved["position"], moved["state"]) == (steps[1], 0, "TODO")
    assert await board.columns() == {steps[0]: ["b", "c"], steps[1]: ["a"]}
    await house.ok("task.move", id=c, workflow_step_id=steps[1], position=0)
    assert await board.columns() == {steps[0]: ["b"], steps[1]: ["c", "a"]}
    await house.ok("task.move", id=c, workflow_step_id=steps[1], position=99)
    assert await board.columns() == {steps[0]: ["b"], steps[1]: ["a", "c"]}
    told = len(house.heard.all)
    await house.ok("task.move", id=b, workflow_step_id=steps[0], position=0)
    assert len(house.heard.all) == told


@pytest.mark.proves("ACT-task.move")
async def test_a_final_step_completes_a_task_and_leaving_it_opens_it_again(house: House) -> None:
    task, session_id = await house.started("say hello")
    await house.until(session_id, "WAITING_FOR_INPUT")
    steps = (await house.ok("workflow.get", id=task["workflow_id"]))["steps"]
    done = await house.ok("task.move", id=task["id"], workflow_step_id=steps[-1]["id"])
    assert done["state"] == "COMPLETED"
    await house.until(session_id, "COMPLETED")
    assert (await house.ok("task.move", id=task["id"], workflow_step_id=steps[0]["id"]))["state"] == "TODO"


async def test_a_task_does_not_move_to_another_workspace(house: House) -> None:
    task = await house.task()
    _, other_flow = await house.board()
    step = (await house.ok("workflow.get", id=other_flow))["steps"][0]["id"]
    await house.refused("task.move", "VALIDATION_ERROR", id=task["id"], workflow_step_id=step)
    await house.refused("task.move", "NOT_FOUND", id=task["id"], workflow_step_id="x")


@pytest.mark.proves("ACT-task.state", "STATE-same-is-silent", "NOTE-task")
async def test_a_persons_state_is_told_once_and_the_same_again_is_silent(house: House) -> None:
    task = await house.task()
    assert (await house.ok("task.state", id=task["id"], state="BLOCKED"))["state"] == "BLOCKED"
    assert house.heard.actions().count("task.state_changed") == 1
    told = len(house.heard.all)
    await house.ok("task.state", id=task["id"], state="BLOCKED")
    assert len(house.heard.all) == told
    message = await house.refused("task.state", "VALIDATION_ERROR", id=task["id"], state="LOST")
    assert "BLOCKED" in message

"""Workflows and their steps, asked for at the HTTP door."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.house import House


async def workflow(house: House, **more: Any) -> dict[str, Any]:
    workspace = await house.ok("workspace.create", name="Shop")
    return await house.ok("workflow.create", workspace_id=workspace["id"], name="Flow", **more)


def names(flow: dict[str, Any]) -> list[str]:
    assert [s["position"] for s in flow["steps"]] == list(range(len(flow["steps"])))
    return [s["name"] for s in flow["steps"]]


@pytest.mark.proves("ACT-workflow.create", "ACT-workflow.get", "ACT-workflow.list", "NOTE-catalogue")
async def test_a_workflow_has_the_kanban_steps_unless_others_are_given(house: House) -> None:
    kanban = await workflow(house)
    assert names(kanban) == ["Backlog", "In Progress", "Review", "Done"]
    assert [s["final"] for s in kanban["steps"]] == [False, False, False, True]
    own = await house.ok(
        "workflow.create",
        workspace_id=kanban["workspace_id"],
        name="Own",
        style="office",
        steps=[{"name": "Only", "events": {"on_enter": [{"type": "auto_start_agent"}]}}],
    )
    assert names(own) == ["Only"]
    assert own["steps"][0]["events"] == {"on_enter": [{"type": "auto_start_agent"}]}
    assert await house.ok("workflow.get", id=own["id"]) == own
    listed = await house.ok("workflow.list", workspace_id=kanban["workspace_id"])
    assert listed == {"workflows": [kanban, own]}
    assert house.heard.actions().count("workflow.changed") == 2


@pytest.mark.proves("BAD-wrong-type")
async def test_a_style_that_is_none_is_refused(house: House) -> None:
    message = await house.refused(
        "workflow.create", "VALIDATION_ERROR", workspace_id="w", name="n", style="scrum"
    )
    assert "style" in message
    assert "scrum" in message


@pytest.mark.proves("ACT-workflow.update", "ACT-workflow.delete")
async def test_a_workflow_is_changed_and_deleted_unless_tasks_are_on_it(house: House) -> None:
    flow = await workflow(house)
    assert (await house.ok("workflow.update", id=flow["id"], name="Other"))["name"] == "Other"
    task = await house.task(workspace_id=flow["workspace_id"], workflow_id=flow["id"])
    await house.refused("workflow.update", "CONFLICT", id=flow["id"], style="office")
    await house.refused("workflow.delete", "CONFLICT", id=flow["id"])
    await house.ok("task.delete", id=task["id"])
    assert await house.ok("workflow.delete", id=flow["id"]) == {"success": True}
    await house.refused("workflow.get", "NOT_FOUND", id=flow["id"])


@pytest.mark.proves("ACT-workflow.step.create", "ACT-workflow.step.update")
async def test_a_step_is_added_in_its_place_and_changed(house: House) -> None:
    flow = await workflow(house, steps=[{"name": "A"}, {"name": "C"}])
    step = await house.ok("workflow.step.create", workflow_id=flow["id"], name="B", position=1)
    await house.ok("workflow.step.create", workflow_id=flow["id"], name="D")
    assert names(await house.ok("workflow.get", id=flow["id"])) == ["A", "B", "C", "D"]
    events: dict[str, Any] = {"on_turn_complete": []}
    changed = await house.ok("workflow.step.update", id=step["id"], name="b", events=events, final=True)
    assert (changed["name"], changed["events"], changed["final"], changed["position"]) == (
        "b",
        events,
        True,
        1,
    )


@pytest.mark.proves("ACT-workflow.step.delete")
async def test_a_step_is_deleted_unless_it_is_the_last_or_holds_tasks(house: House) -> None:
    flow = await workflow(house, steps=[{"name": "A"}, {"name": "B"}])
    first, second = (s["id"] for s in flow["steps"])
    task = await house.task(workspace_id=flow["workspace_id"], workflow_id=flow["id"])
    assert "'A'" in await house.refused("workflow.step.delete", "CONFLICT", id=first)
    await house.ok("workflow.step.delete", id=second)
    await house.ok("task.delete", id=task["id"])
    assert "last step" in await house.refused("workflow.step.delete", "CONFLICT", id=first)


@pytest.mark.proves("ACT-workflow.step.reorder")
async def test_steps_are_put_in_another_order_by_naming_each_once(house: House) -> None:
    flow = await workflow(house, steps=[{"name": "A"}, {"name": "B"}])
    first, second = (s["id"] for s in flow["steps"])
    turned = await house.ok("workflow.step.reorder", workflow_id=flow["id"], step_ids=[second, first])
    assert names(turned) == ["B", "A"]
    for wrong in ([first], [first, first], [first, second, "x"]):
        await house.refused(
            "workflow.step.reorder", "VALIDATION_ERROR", workflow_id=flow["id"], step_ids=wrong
        )


@pytest.mark.proves("ACT-workflow.export", "ACT-workflow.import")
async def test_an_exported_workflow_is_imported_the_same_with_its_events(house: House) -> None:
    back = [{"type": "move_to_step", "step_name": "A"}]
    start = [{"type": "auto_start_agent", "prompt": "Check {title}"}]
    steps = [
        {"name": "A", "events": {"on_turn_complete": [{"type": "move_to_next", "on_cancel": True}]}},
        {"name": "B", "events": {"on_enter": start, "on_turn_complete": back}},
        {"name": "C", "final": True},
    ]
    flow = await workflow(house, steps=steps)
    assert flow["steps"][1]["events"]["on_turn_complete"] == [
        {"type": "move_to_step", "step_id": flow["steps"][0]["id"]}
    ]
    document = (await house.ok("workflow.export", id=flow["id"]))["workflow"]
    assert "id" not in {key for step in document["steps"] for key in step}
    assert document["steps"][1]["events"]["on_turn_complete"] == back
    copy = await house.ok("workflow.import", workspace_id=flow["workspace_id"], workflow=document)
    assert copy["id"] != flow["id"]
    assert copy["steps"][1]["events"]["on_turn_complete"][0]["step_id"] == copy["steps"][0]["id"]
    assert (await house.ok("workflow.export", id=copy["id"]))["workflow"] == document
    await house.refused(
        "workflow.import",
        "VALIDATION_ERROR",
        workspace_id=flow["workspace_id"],
        workflow={**document, "version": 2},
    )


@pytest.mark.proves("ACT-workflow.step.update")
async def test_bad_events_are_refused_at_every_door_and_change_nothing(house: House) -> None:
    flow = await workflow(house)
    before, told = await house.ok("workflow.get", id=flow["id"]), len(house.heard.all)
    bad = {"on_turn_complete": [{"type": "move_to_step", "step_name": "Nowhere"}]}
    document = {"version": 1, "name": "X", "steps": [{"name": "Build", "events": bad}]}
    space, step = flow["workspace_id"], flow["steps"][0]["id"]
    for action, payload in (
        ("workflow.create", {"workspace_id": space, "name": "X", "steps": document["steps"]}),
        ("workflow.import", {"workspace_id": space, "workflow": document}),
        ("workflow.step.create", {"workflow_id": flow["id"], "name": "Build", "events": bad}),
        ("workflow.step.update", {"id": step, "name": "Build", "events": bad}),
    ):
        sentence = await house.refused(action, "VALIDATION_ERROR", **payload)
        assert sentence.startswith("Step 'Build': on_turn_complete: move_to_step"), sentence
    assert await house.ok("workflow.get", id=flow["id"]) == before
    assert len((await house.ok("workflow.list", workspace_id=space))["workflows"]) == 1
    assert len(house.heard.all) == told


async def test_a_step_that_others_move_tasks_to_is_not_deleted_under_them(house: House) -> None:
    there = {"on_turn_complete": [{"type": "move_to_step", "step_name": "B"}]}
    flow = await workflow(house, steps=[{"name": "A", "events": there}, {"name": "B"}])
    first, second = (s["id"] for s in flow["steps"])
    await house.ok("workflow.step.update", id=second, name="Beta")
    assert "'A'" in await house.refused("workflow.step.delete", "CONFLICT", id=second)
    await house.ok("workflow.step.update", id=first, events={})
    await house.ok("workflow.step.delete", id=second)

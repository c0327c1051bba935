"""A card on its board, with a real agent process: by itself from step to step, and over `kill -9`."""

from __future__ import annotations

import pytest

from tests.e2e.kandev import Events, Kandev
from tests.e2e.scenes import add, said, turns_over

PROMPT = "say built {title}"


async def follow(house: Kandev, desk: Events) -> None:
    answer = await desk.request("workspace.subscribe", {"workspace_id": await house.workspace()})
    assert answer["type"] == "response", answer


async def kanban(house: Kandev) -> dict[str, str]:
    """Step id → name."""
    workspace_id = await house.workspace()
    workflows = (await house.call("workflow.list", {"workspace_id": workspace_id}))["workflows"]
    return {step["id"]: step["name"] for step in workflows[0]["steps"]}


async def two_steps(house: Kandev) -> tuple[str, list[str]]:
    """A workflow of its own, whose second step starts an agent; its id and its steps' ids."""
    build = {"on_enter": [{"type": "auto_start_agent", "prompt": PROMPT}]}
    plan = {"on_turn_complete": [{"type": "move_to_step", "step_name": "Build"}]}
    steps = [{"name": "Plan", "events": plan}, {"name": "Build", "events": build}]
    workspace_id = await house.workspace()
    flow = await house.call("workflow.create", {"workspace_id": workspace_id, "name": "Own", "steps": steps})
    return flow["id"], [step["id"] for step in flow["steps"]]


@pytest.mark.proves("STATE-task")
async def test_a_card_goes_to_work_to_review_and_back(house: Kandev) -> None:
    names = await kanban(house)
    async with house.events() as desk:
        await follow(house, desk)
        started = await house.task("say one", start=True)
        task_id, session_id = started["task"]["id"], started["session_id"]

        def cards() -> list[tuple[str, str]]:
            told = [f["payload"]["task"] for f in desk.seen if f["action"] == "task.updated"]
            return [(names[t["workflow_step_id"]], t["state"]) for t in told if t["id"] == task_id]

        while ("Review", "REVIEW") not in cards():
            await desk.news()
        await add(house, task_id, session_id, "say two")
        while cards().count(("Review", "REVIEW")) < 2:
            await desk.news()
        assert cards() == [
            ("Backlog", "SCHEDULING"),
            ("In Progress", "IN_PROGRESS"),
            ("Review", "REVIEW"),
            ("In Progress", "IN_PROGRESS"),
            ("Review", "REVIEW"),
        ], "one event for each change, the step and the state together"


async def prompts(kandev: Kandev, task_id: str) -> list[str]:
    """Everything that agents of the task were told."""
    sessions = (await kandev.call("task.session.list", {"task_id": task_id}))["sessions"]
    return [text for s in reversed(sessions) for text in await said(kandev, s["id"], "user")]


@pytest.mark.proves("SURVIVE-backend-kill")
async def test_a_kill_behind_a_move_neither_loses_nor_doubles_the_steps_prompt(kandev: Kandev) -> None:
    workflow_id, (_, build) = await two_steps(kandev)
    task = (await kandev.task(workflow_id=workflow_id))["task"]
    await kandev.call("task.move", {"id": task["id"], "workflow_step_id": build})
    await kandev.kill()
    await kandev.start()
    async with kandev.events() as desk:
        await follow(kandev, desk)
        if (await kandev.call("task.get", {"id": task["id"]}))["state"] != "REVIEW":
            await desk.until("task.state_changed", lambda p: p["new_state"] == "REVIEW")
    assert await prompts(kandev, task["id"]) == ["say built A task"]
    assert len((await kandev.call("task.session.list", {"task_id": task["id"]}))["sessions"]) == 1
    await kandev.kill()
    await kandev.start()
    assert await prompts(kandev, task["id"]) == ["say built A task"]


@pytest.mark.proves("SURVIVE-backend-kill")
@pytest.mark.parametrize("moment", [4, 6, 8, 10])
async def test_a_kill_around_a_turns_end_neither_loses_nor_doubles_the_steps_prompt(
    kandev: Kandev, moment: int
) -> None:
    workflow_id, _ = await two_steps(kandev)
    task_id, session_id = await kandev.session("say plan", workflow_id=workflow_id)
    async with kandev.watching(session_id) as events:
        while len(events.seen) < moment:
            await events.news()
    await kandev.kill()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await turns_over(events, 2)
        await events.state("WAITING_FOR_INPUT")
    assert await prompts(kandev, task_id) == ["say plan", "say built A task"]

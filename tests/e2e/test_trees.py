"""Whole trees of processes: what an agent and its children started ends with it, and is looked for."""

from typing import Any

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.program import run
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    get,
    marked,
    nothing_left,
    profile,
    said,
    turns_over,
    until_true,
)

BREEDER = """
while :; do setsid sleep 600 & sleep 0.05; done &
"$@"
"""
"""A wrapper beside whose agent a loop starts process after process, each in a session of its own."""


async def wrapped(kandev: Kandev, script: str) -> str:
    """The profile of a shell that runs a script, whose arguments are the mock agent's command."""
    mock = (await kandev.call("agent.profile.list"))["profiles"][0]["command"]
    return await profile(kandev, ["sh", "-c", script, "sh", *mock])


@pytest.mark.field("A01", "A05", "E13", "E17", "E19", "E25")
async def test_a_stop_ends_the_wrapper_and_the_loop_that_starts_more_and_says_when_they_are_gone(
    house: Kandev,
) -> None:
    breeder = await wrapped(house, BREEDER)
    _, session_id = await house.session("stubborn\nsay hello\nsleep 600", agent_profile_id=breeder)
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        await until_true(lambda: len(marked(session_id)) > 6, "the loop breeds")
        await house.call("session.stop", {"session_id": session_id})
        ending = await get(house, session_id)
        assert (ending["state"], ending["execution"]["status"]) == ("CANCELLED", "ending")
        explained = await house.call("session.explain", {"session_id": session_id})
        assert "is being ended" in explained["sentence"]
        await events.until("session.updated", lambda p: "execution" not in p["session"])
        assert marked(session_id) == [], "it was told only when nothing was left"
    assert [line for line in await said(house, session_id, "system", "error") if "could not be" in line] == []


@pytest.mark.field("E23", "B41", "E09")
@pytest.mark.parametrize("way_out", ["exit 0", "exit 3", "crash"])
async def test_what_an_agent_started_ends_when_it_goes_by_itself(house: Kandev, way_out: str) -> None:
    _, session_id = await house.session(f"spawn 600\n{way_out}")
    async with house.watching(session_id) as events:
        ended = await turns_over(events)
        assert ended["cause"] == "process"
        child = int((await said(house, session_id))[0].removeprefix("pid "))
        assert not alive(child) and marked(session_id) == []


WAYS: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "session.stop": ("session", {}, "CANCELLED"),
    "session.stop, forced": ("session", {"force": True}, "CANCELLED"),
    "orchestrator.stop": ("task", {}, "CANCELLED"),
    "orchestrator.stop, forced": ("task", {"force": True}, "CANCELLED"),
    "task.archive": ("id", {}, "CANCELLED"),
    "task.state": ("id", {"state": "COMPLETED"}, "COMPLETED"),
    "task.move": ("id", {"workflow_step_id": "final"}, "COMPLETED"),
    "session.delete": ("session", {}, None),
    "task.delete": ("id", {}, None),
}
"""Every action that ends sessions: what names them, what else it takes, and what becomes of the session."""
COMMANDS = {
    "stop TASK": ("CANCELLED", "stop", "{task}"),
    "stop --session SESSION": ("CANCELLED", "stop", "--session", "{session}"),
    "session stop SESSION": ("CANCELLED", "session", "stop", "{session}"),
    "task state TASK COMPLETED": ("COMPLETED", "task", "state", "{task}", "COMPLETED"),
    "task archive TASK": ("CANCELLED", "task", "archive", "{task}"),
}


async def at_work(house: Kandev) -> tuple[str, str]:
    """A task and its session, whose agent has a child in a session of its own, and a message that waits."""
    task_id, session_id = await house.session("spawn 600\nsay hello\nsleep 600")
    async with house.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
    await add(house, task_id, session_id, "say never")
    assert len(marked(session_id)) == 2
    return task_id, session_id


async def ended_as(house: Kandev, session_id: str, state: str | None) -> None:
    """No process is left, nothing was said any more, and the session is what it should be."""
    await nothing_left(session_id)
    if state is None:
        with pytest.raises(CallFailed) as gone:
            await get(house, session_id)
        assert gone.value.code == "NOT_FOUND"
        return
    session = await get(house, session_id)
    assert (session["state"], session["queue"]["count"]) == (state, 1)
    assert (await said(house, session_id))[1:] == ["hello"]
    assert "stopped by user" in (await said(house, session_id, "system", "status"))[-1].lower()


async def final_step(house: Kandev, task_id: str) -> str:
    """The last column of the task's board."""
    task = await house.call("task.get", {"id": task_id})
    workflow = await house.call("workflow.get", {"id": task["workflow_id"]})
    return str(next(step["id"] for step in workflow["steps"] if step["final"]))


@pytest.mark.field("A47", "E13", "E19", "E25")
@pytest.mark.parametrize("way", WAYS)
async def test_every_action_that_ends_a_session_ends_its_whole_tree(house: Kandev, way: str) -> None:
    named, more, state = WAYS[way]
    task_id, session_id = await at_work(house)
    key, value = {
        "session": ("session_id", session_id),
        "task": ("task_id", task_id),
        "id": ("id", task_id),
    }[named]
    if "workflow_step_id" in more:
        more = {"workflow_step_id": await final_step(house, task_id)}
    await house.call(way.partition(",")[0], {key: value, **more})
    await ended_as(house, session_id, state)


@pytest.mark.field("A47", "A03")
@pytest.mark.parametrize("words", COMMANDS)
async def test_every_command_that_ends_a_session_goes_the_same_way(house: Kandev, words: str) -> None:
    state, *command = COMMANDS[words]
    task_id, session_id = await at_work(house)
    ran = await run(house, *(word.format(task=task_id, session=session_id) for word in command))
    assert ran.code == 0, ran
    await ended_as(house, session_id, state)

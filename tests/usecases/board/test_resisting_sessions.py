"""The end of a task when one of its sessions cannot be ended: the others end, and the answer names the one.

Not here: ends without such a fault (`test_task_endings`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from kandev.core.effects import Reply
from kandev.core.errors import StoreFault
from kandev.core.inputs import Ask
from tests.gateway.house import House

BUSY = "The database is busy."


@contextmanager
def resisting(house: House, *sessions: str) -> Iterator[None]:
    """Meanwhile nothing can be decided about these sessions."""
    asked = house.ctx.sessions.ask

    async def ask(session_id: str, make: Callable[[str], Ask]) -> Reply:
        if session_id in sessions:
            raise StoreFault(BUSY)
        return await asked(session_id, make)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house.ctx.sessions, "ask", ask)
        yield


async def two_at_work(house: House) -> tuple[str, str, str]:
    """A task's id and its two sessions', both with a turn under way."""
    task, first = await house.started("sleep 30")
    second = (await house.ok("session.launch", task_id=task["id"], prompt="sleep 30"))["session_id"]
    for session_id in (first, second):
        await house.until(session_id, "RUNNING")
    return str(task["id"]), first, str(second)


async def state(house: House, session_id: str) -> str:
    return str((await house.ok("session.get", session_id=session_id))["state"])


@pytest.mark.proves("ACT-orchestrator.stop")
async def test_a_stop_that_one_session_resists_is_a_success_with_the_failure_beside_it(house: House) -> None:
    task_id, first, second = await two_at_work(house)
    with resisting(house, first):
        assert await house.ok("orchestrator.stop", task_id=task_id) == {
            "success": True,
            "stopped": [second],
            "details": {"failures": {first: BUSY}},
        }
    assert await state(house, first) == "RUNNING"
    assert (await house.ok("task.get", id=task_id))["state"] == "IN_PROGRESS", "one still works"


@pytest.mark.proves("ACT-orchestrator.stop")
async def test_a_stop_that_every_session_resists_is_the_first_failure(house: House) -> None:
    task_id, first, second = await two_at_work(house)
    with resisting(house, first, second):
        await house.refused("orchestrator.stop", "INTERNAL_ERROR", task_id=task_id)
    assert [await state(house, s) for s in (first, second)] == ["RUNNING", "RUNNING"]
    assert (await house.ok("task.get", id=task_id))["state"] == "IN_PROGRESS"


@pytest.mark.proves("ACT-task.archive")
async def test_archiving_names_the_session_that_goes_on_and_the_second_time_ends_it(house: House) -> None:
    task_id, first, second = await two_at_work(house)
    with resisting(house, first):
        status, body = await house.post("task.archive", {"id": task_id})
    assert (status, body["code"]) == (409, "CONFLICT")
    assert body["message"] == f"The task is archived, but a session of it could not be stopped: {BUSY}"
    assert body["details"] == {"failures": {first: BUSY}}
    assert (await state(house, first), await state(house, second)) == ("RUNNING", "CANCELLED")
    await house.refused("session.launch", "CONFLICT", task_id=task_id)
    archived_at = (await house.ok("task.get", id=task_id))["archived_at"]
    assert (await house.ok("task.archive", id=task_id))["archived_at"] == archived_at
    assert await state(house, first) == "CANCELLED"


@pytest.mark.proves("ACT-task.archive")
async def test_an_archive_that_every_session_resists_is_told_alike(house: House) -> None:
    task_id, first, second = await two_at_work(house)
    with resisting(house, first, second):
        status, body = await house.post("task.archive", {"id": task_id})
    assert (status, body["details"]) == (409, {"failures": {first: BUSY, second: BUSY}})


@pytest.mark.proves("ACT-task.delete")
async def test_a_task_whose_session_cannot_be_ended_is_not_deleted(house: House) -> None:
    task_id, first, _ = await two_at_work(house)
    with resisting(house, first):
        status, body = await house.post("task.delete", {"id": task_id})
    assert (status, body["code"], body["details"]) == (409, "CONFLICT", {"failures": {first: BUSY}})
    assert await state(house, first) == "RUNNING"
    assert await house.ok("task.delete", id=task_id) == {"success": True}
    await house.refused("session.get", "NOT_FOUND", session_id=first)


@pytest.mark.proves("ACT-task.state")
async def test_a_completed_task_is_completed_and_the_answer_names_the_session_that_goes_on(
    house: House,
) -> None:
    task_id, first, second = await two_at_work(house)
    with resisting(house, first):
        answer = await house.ok("task.state", id=task_id, state="COMPLETED")
    assert (answer["state"], answer["details"]) == ("COMPLETED", {"failures": {first: BUSY}})
    assert (await state(house, first), await state(house, second)) == ("RUNNING", "COMPLETED")
    assert (await house.ok("task.get", id=task_id))["state"] == "COMPLETED"


@pytest.mark.proves("ACT-task.state")
async def test_an_end_that_every_session_resists_is_still_the_persons_word(house: House) -> None:
    task_id, first, second = await two_at_work(house)
    with resisting(house, first, second):
        answer = await house.ok("task.state", id=task_id, state="COMPLETED")
    assert (answer["state"], answer["details"]) == ("COMPLETED", {"failures": {first: BUSY, second: BUSY}})


@pytest.mark.proves("ACT-task.move")
async def test_a_move_to_the_final_step_names_the_session_that_goes_on(house: House) -> None:
    task_id, first, second = await two_at_work(house)
    workflow_id = (await house.ok("task.get", id=task_id))["workflow_id"]
    steps = (await house.ok("workflow.get", id=workflow_id))["steps"]
    [final] = [step["id"] for step in steps if step["final"]]
    with resisting(house, first):
        answer = await house.ok("task.move", id=task_id, workflow_step_id=final)
    assert (answer["workflow_step_id"], answer["state"]) == (final, "COMPLETED")
    assert answer["details"] == {"failures": {first: BUSY}}
    assert (await state(house, first), await state(house, second)) == ("RUNNING", "COMPLETED")


async def test_a_session_that_resisted_the_archive_is_stopped_without_a_change_of_the_card(
    house: House,
) -> None:
    task_id, first, second = await two_at_work(house)
    with resisting(house, first):
        await house.refused("task.archive", "CONFLICT", id=task_id)
    before = (await house.ok("task.get", id=task_id))["state"]
    assert (await house.ok("orchestrator.stop", task_id=task_id))["stopped"] == [first]
    assert (await house.ok("task.get", id=task_id))["state"] == before
    assert await state(house, second) == "CANCELLED"

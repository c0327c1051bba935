"""Nothing starts on an archived task, also when it was archived after the asker had looked.

Not here: what is asked of a task that was archived before (`test_message_refusals`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kandev.core.errors import Conflict
from kandev.core.inputs import Ask
from tests.gateway.house import House
from tests.usecases.family import WORKING, Family, Member, family

ARCHIVED = "The task is archived"


async def over(kin: Family, parent: Member, *, waiting: int) -> Member:
    """A child whose task was completed, while so many messages waited."""
    child = await kin.member(parent=parent)
    for number in range(waiting):
        await kin.house.ok("message.queue.add", session_id=child.session_id, content=f"say {number}")
    await kin.house.ok("task.state", id=child.id, state="COMPLETED")
    await kin.gone(child.session_id)
    return child


async def nothing_started(house: House, child: Member) -> None:
    session = await house.ok("session.get", session_id=child.session_id)
    assert session["state"] == "COMPLETED"
    assert "execution" not in session
    listed = await house.ok("message.list", session_id=child.session_id)
    assert [m["content"] for m in listed["messages"] if m["author_type"] == "user"] == [WORKING]


async def by_tool(kin: Family, parent: Member, child: Member) -> None:
    await kin.call(parent, "message_task", task_id=child.id, prompt="say x")


async def by_interrupt(kin: Family, parent: Member, child: Member) -> None:
    await kin.call(parent, "message_task", task_id=child.id, prompt="say x", delivery_mode="interrupt")


async def by_person(kin: Family, _: Member, child: Member) -> None:
    given = {"task_id": child.id, "session_id": child.session_id, "content": "say x"}
    await kin.house.refused("message.add", "CONFLICT", **given)
    raise Conflict(ARCHIVED)


async def by_resume(kin: Family, _: Member, child: Member) -> None:
    await kin.house.refused("session.recover", "CONFLICT", session_id=child.session_id)
    raise Conflict(ARCHIVED)


@pytest.mark.proves("RACE-I12")
@pytest.mark.parametrize("asks", [by_tool, by_interrupt, by_person, by_resume])
async def test_i12_a_task_that_is_archived_between_look_and_insert_starts_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch, asks: Callable[[Family, Member, Member], Awaitable[None]]
) -> None:
    kin = await family(house)
    parent = await kin.member()
    child = await over(kin, parent, waiting=0)
    ask = house.ctx.sessions.ask

    async def archived_first(session_id: str, make: Callable[[str], Ask]) -> Any:
        await house.ok("task.archive", id=child.id)
        return await ask(session_id, make)

    monkeypatch.setattr(house.ctx.sessions, "ask", archived_first)
    with pytest.raises(Conflict, match=ARCHIVED):
        await asks(kin, parent, child)
    await nothing_started(house, child)


async def test_a_parked_queue_of_an_archived_task_cannot_be_let_go(house: House) -> None:
    kin = await family(house)
    child = await over(kin, await kin.member(), waiting=2)
    queue = await house.ok("message.queue.get", session_id=child.session_id)
    assert queue["parked_reason"]
    await house.ok("task.archive", id=child.id)
    first = {"session_id": child.session_id, "entry_id": queue["entries"][0]["id"]}
    await house.refused("message.queue.auto_run.set", "CONFLICT", session_id=child.session_id, auto_run=True)
    await house.refused("message.queue.send_now", "CONFLICT", **first)
    assert await house.ok("message.queue.get", session_id=child.session_id) == queue
    await nothing_started(house, child)
    await house.ok("message.queue.remove", **first)

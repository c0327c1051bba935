"""A message between tasks that is refused: each row of the contract's table of errors. Each call is made by
the tool and in this process alike, and leaves database and processes as they were (`Family.refused`).

Not here: what becomes of a message that is accepted (`test_message_task`).
"""

from __future__ import annotations

import json

import pytest

from kandev.core.errors import StoreFault
from kandev.mcp.actions import dispatch_mcp
from kandev.mcp.failures import told
from kandev.wire.gateway import BadPayload, Malformed
from tests.gateway.house import House
from tests.usecases.family import WORKING, Member, family, turns

pytestmark = pytest.mark.proves("MCP-message-task")


@pytest.mark.parametrize("who", ["sibling", "stranger", "own child", "grandparent", "itself"])
async def test_an_interrupt_by_anybody_else_is_refused_and_nothing_happens(house: House, who: str) -> None:
    kin = await family(house)
    grandparent = await kin.member()
    parent = await kin.member(parent=grandparent)
    child = await kin.member(parent=parent)
    above = {"sibling": parent, "own child": child}
    named = {"grandparent": grandparent, "itself": child}
    by = named.get(who) or await kin.member(parent=above.get(who))
    said = await kin.refused(by, "message_task", task_id=child.id, prompt="stop", delivery_mode="interrupt")
    assert said.startswith("FORBIDDEN ")
    assert "direct parent" in said
    assert by.id not in said
    assert await turns(house, child) == ["active"]


async def test_an_unknown_delivery_mode_is_refused_before_anything_is_looked_up(house: House) -> None:
    kin = await family(house)
    parent = await kin.member()
    for target in (parent.id, "nobody"):
        said = await kin.refused(
            parent, "message_task", task_id=target, prompt="x", delivery_mode="immediately"
        )
        assert said.startswith("VALIDATION_ERROR ")
        assert "`delivery_mode`" in said


@pytest.mark.parametrize("missing", ["task_id", "prompt"])
async def test_a_missing_field_is_refused_by_name(house: House, missing: str) -> None:
    kin = await family(house)
    parent = await kin.member()
    given = {"task_id": "nobody", "prompt": "x", "delivery_mode": "immediately"}
    given.pop(missing)
    assert await kin.refused(parent, "message_task", **given) == (
        f"VALIDATION_ERROR The field `{missing}` is missing."
    )


async def test_the_action_demands_its_sender_and_the_tool_takes_none(house: House) -> None:
    kin = await family(house)
    parent = await kin.member()
    with pytest.raises(BadPayload, match="`sender_task_id` is missing"):
        await dispatch_mcp(
            house.ctx, parent.calling(), "mcp.message_task", {"task_id": parent.id, "prompt": "x"}
        )
    for argument in ("sender_task_id", "sender_session_id"):
        with pytest.raises(BadPayload, match=f"Unknown field `{argument}`"):
            await kin.call(parent, "message_task", task_id=parent.id, prompt="x", **{argument: "y"})


async def test_what_is_not_json_is_a_bad_request(house: House) -> None:
    kin = await family(house)
    parent = await kin.member()
    for text in (b'{"task_id": ', "[]", "nonsense"):
        with pytest.raises(Malformed):
            await dispatch_mcp(house.ctx, parent.calling(), "mcp.message_task", text)
    payload = {"task_id": parent.id, "prompt": "x", "sender_task_id": parent.id}
    with pytest.raises(Exception, match="session_id"):
        await dispatch_mcp(house.ctx, parent.calling(), "mcp.message_task", json.dumps(payload))


async def test_a_sender_that_is_not_there_is_not_found_and_its_id_not_repeated(house: House) -> None:
    kin = await family(house)
    parent = await kin.member()
    nobody = Member({"id": "task_nobody"}, "session_nobody")
    said = await kin.refused(nobody, "message_task", task_id=parent.id, prompt="x")
    assert said == "NOT_FOUND sender task not found"


async def test_a_target_that_is_not_there_is_not_found(house: House) -> None:
    kin = await family(house)
    parent, child = await kin.member(), await kin.member()
    said = await kin.refused(parent, "message_task", task_id="nobody", prompt="x", delivery_mode="interrupt")
    assert said.startswith("NOT_FOUND task not found")
    assert parent.id not in said
    named = {"task_id": child.id, "prompt": "x", "session_id": parent.session_id}
    assert (await kin.refused(parent, "message_task", **named)).startswith("NOT_FOUND session not found")


@pytest.mark.field("D33")
async def test_a_task_without_a_session_is_not_found_and_the_tool_that_helps_is_named(house: House) -> None:
    kin = await family(house)
    parent = await kin.member()
    empty = await house.task("Empty", **kin.board)
    said = await kin.refused(parent, "message_task", task_id=empty["id"], prompt="x")
    assert said.startswith("NOT_FOUND")
    assert "spawn_session_kandev" in said


async def test_another_failure_is_internal_and_leaks_nothing(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    kin = await family(house)
    parent, child = await kin.member(), await kin.member()

    async def broken(*_: object) -> None:
        raise StoreFault(f"secret of the driver about {parent.id}")

    monkeypatch.setattr(house.ctx.sessions, "ask", broken)
    with pytest.raises(StoreFault) as caught:
        await kin.call(parent, "message_task", task_id=child.id, prompt="x")
    text = told(caught.value, "mcp.message_task")
    assert text.startswith("[INTERNAL_ERROR] ")
    assert "secret" not in text
    assert parent.id not in text


@pytest.mark.field("D33")
@pytest.mark.parametrize("mode", ["queued", "interrupt"])
@pytest.mark.parametrize("state", ["CANCELLED", "FAILED"])
async def test_a_session_that_is_over_takes_no_message_and_the_way_out_is_named(
    house: House, state: str, mode: str
) -> None:
    kin = await family(house)
    parent = await kin.member()
    if state == "FAILED":
        house.world.refuse_launch = "It cannot be started."
        task = await house.task("Child", **kin.board, parent_id=parent.id)
        launched = await house.ok("session.launch", task_id=task["id"], prompt=WORKING)
        child = Member(task, launched["session_id"])
        await house.until(child.session_id, "FAILED")
    else:
        child = await kin.member(parent=parent)
        await house.ok("session.stop", session_id=child.session_id)
        await kin.gone(child.session_id)
    said = await kin.refused(parent, "message_task", task_id=child.id, prompt="x", delivery_mode=mode)
    assert said.startswith(f"INTERNAL_ERROR The session is {state} ")
    assert "spawn_session_kandev" in said
    assert parent.id not in said


@pytest.mark.parametrize("mode", ["queued", "interrupt"])
async def test_a_full_queue_is_a_conflict_and_nothing_is_cancelled(house: House, mode: str) -> None:
    kin = await family(house)
    parent = await kin.member()
    child = await kin.member(parent=parent)
    for number in range(house.ctx.deadlines.queue_max):
        await kin.call(parent, "message_task", task_id=child.id, prompt=f"say {number}")
    said = await kin.refused(parent, "message_task", task_id=child.id, prompt="x", delivery_mode=mode)
    assert said.startswith("CONFLICT ")
    assert said.endswith("{'error': 'queue_full', 'queue_size': 10, 'max': 10}")
    assert await turns(house, child) == ["active"]


async def test_an_archived_task_takes_no_message(house: House) -> None:
    kin = await family(house)
    parent = await kin.member()
    child = await kin.member("say hello", parent=parent)
    await house.ok("task.archive", id=child.id)
    await kin.gone(child.session_id)
    for mode in ("queued", "interrupt"):
        said = await kin.refused(parent, "message_task", task_id=child.id, prompt="x", delivery_mode=mode)
        assert said.startswith("CONFLICT The task is archived")
        assert "create another task" in said


async def test_another_workspace_is_out_of_reach(house: House) -> None:
    kin, elsewhere = await family(house), await family(house)
    parent, stranger = await kin.member(), await elsewhere.member()
    said = await kin.refused(parent, "message_task", task_id=stranger.id, prompt="x")
    assert said.startswith("FORBIDDEN")
    assert "another workspace" in said

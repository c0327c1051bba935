"""What agents see by their tools: their family, their workspace, conversations; never without bounds."""

from __future__ import annotations

import msgspec
import pytest

from kandev.core.transcript import Message, MessageType
from kandev.mcp import actions_looking, pictures
from tests.gateway.house import House
from tests.usecases.family import WORKING, Family, Member, family, turns

pytestmark = pytest.mark.proves("MCP-task-mode")


async def test_a_task_sees_parent_children_and_siblings_with_their_sessions(house: House) -> None:
    kin = await family(house)
    parent = await kin.member()
    own = await kin.member(parent=parent)
    sibling = await kin.member("say hello", parent=parent)
    child = await house.task("Child", **kin.board, parent_id=own.id)
    await kin.member()
    answer = await kin.call(own, "list_related_tasks")
    assert (answer["task"]["task_id"], answer["parent"]["task_id"]) == (own.id, parent.id)
    assert [t["task_id"] for t in answer["children"]] == [child["id"]]
    assert [t["task_id"] for t in answer["siblings"]] == [sibling.id]
    assert "more" not in answer
    states = {t["task_id"]: [s["state"] for s in t["sessions"]] for t in answer["siblings"]}
    assert states == {sibling.id: ["WAITING_FOR_INPUT"]}
    assert answer["children"][0]["sessions"] == []
    above = await kin.call(own, "list_related_tasks", task_id=parent.id)
    assert {t["task_id"] for t in above["children"]} == {own.id, sibling.id}
    assert "parent" not in above


async def test_of_many_relatives_the_first_are_shown_and_more_is_said(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions_looking, "RELATED_MAX", 2)
    kin = await family(house)
    parent = await kin.member()
    children = [await house.task(f"Child {n}", **kin.board, parent_id=parent.id) for n in range(3)]
    answer = await kin.call(parent, "list_related_tasks")
    assert [t["task_id"] for t in answer["children"]] == [t["id"] for t in children[:2]]
    assert answer["more"] == ["children"]
    youngest = Member(children[2], "none")
    answer = await kin.call(youngest, "list_related_tasks")
    assert [t["task_id"] for t in answer["siblings"]] == [t["id"] for t in children[:2]]
    assert "more" not in answer
    await house.task("Child 3", **kin.board, parent_id=parent.id)
    assert (await kin.call(youngest, "list_related_tasks"))["more"] == ["siblings"]


async def test_tasks_are_listed_page_by_page_within_the_workspace(house: House) -> None:
    kin, elsewhere = await family(house), await family(house)
    own = await kin.member()
    await elsewhere.member()
    made = [(await house.task(f"T{n}", **kin.board, parent_id=own.id))["id"] for n in range(3)]
    seen, cursor = list[str](), dict[str, str]()
    while True:
        page = await kin.call(own, "list_tasks", limit=2, **cursor)
        seen += [t["task_id"] for t in page["tasks"]]
        if "next_cursor" not in page:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == [own.id, *made]
    children = await kin.call(own, "list_tasks", parent_id="self")
    assert [t["task_id"] for t in children["tasks"]] == made
    await house.ok("task.archive", id=made[0])
    for archived, listed in ((False, made[1:]), (True, made)):
        page = await kin.call(own, "list_tasks", parent_id="self", include_archived=archived)
        assert [t["task_id"] for t in page["tasks"]] == listed
    assert "`cursor`" in await kin.refused(own, "list_tasks", cursor="nothing")


async def test_the_sessions_of_a_task_are_listed_newest_first(house: House) -> None:
    kin = await family(house)
    own = await kin.member()
    second = (await house.ok("session.launch", task_id=own.id, prompt="say hi"))["session_id"]
    await house.until(second, "WAITING_FOR_INPUT")
    answer = await kin.call(own, "list_task_sessions")
    assert [s["session_id"] for s in answer["sessions"]] == [second, own.session_id]
    assert [s["is_primary"] for s in answer["sessions"]] == [False, True]
    assert "more" not in answer


async def test_only_the_own_workspace_is_listed(house: House) -> None:
    kin, elsewhere = await family(house), await family(house)
    own = await kin.member()
    await elsewhere.member()
    workspaces = (await kin.call(own, "list_workspaces"))["workspaces"]
    assert [w["workspace_id"] for w in workspaces] == [kin.board["workspace_id"]]
    workflows = (await kin.call(own, "list_workflows"))["workflows"]
    assert [w["workflow_id"] for w in workflows] == [kin.board["workflow_id"]]
    steps = (await kin.call(own, "list_workflow_steps"))["steps"]
    assert [s["position"] for s in steps] == list(range(len(steps)))
    assert sum(s["final"] for s in steps) == 1


async def test_agents_are_listed_without_their_secrets(house: House) -> None:
    kin = await family(house)
    own = await kin.member()
    profile = await house.ok(
        "agent.profile.create", name="Fox", command=["fox"], env={"FOX_TOKEN": "hush"}, model="m"
    )
    agents = (await kin.call(own, "list_agents"))["agents"]
    assert {"agent_profile_id": profile["id"], "name": "Fox", "model": "m"} in agents
    assert "hush" not in str(agents)


async def filled(kin: Family, who: Member, contents: list[str], type: MessageType = "message") -> None:
    """Lines of its conversation."""
    at = "2026-01-01T00:00:00.000Z"
    rows = [
        Message(f"m{n:03}", who.session_id, None, "agent", type, text, {}, 0, at)
        for n, text in enumerate(contents)
    ]
    await kin.house.ctx.store.write(lambda tx: [tx.messages.add(row) for row in rows])


async def test_a_conversation_is_read_from_its_end_page_by_page(house: House) -> None:
    kin = await family(house)
    own = await kin.member("say hello")
    await filled(kin, own, [f"line {n}" for n in range(7)])
    seen, before = list[str](), dict[str, str]()
    while True:
        page = await kin.call(own, "get_task_conversation", task_id="self", limit=3, **before)
        assert len(page["messages"]) <= 3
        seen = [m["content"] for m in page["messages"]] + seen
        if "next_before" not in page:
            break
        before = {"before": page["next_before"]}
    assert seen == ["say hello", "hello", *(f"line {n}" for n in range(7))]
    assert (page["session_id"], page["state"]) == (own.session_id, "WAITING_FOR_INPUT")


async def test_long_messages_and_thoughts_are_cut_and_the_answer_is_bounded(house: House) -> None:
    kin = await family(house)
    own = await kin.member("say hello")
    long = "x" * 100_000
    await filled(kin, own, [long] * 40)
    page = await kin.call(own, "get_task_conversation", task_id="self", limit=100)
    assert len(msgspec.json.encode(page)) < 2 * actions_looking.CONVERSATION_MAX
    assert all(m["content"] == long[: pictures.MESSAGE_MAX] for m in page["messages"])
    assert all(m["cut"] == 100_000 - pictures.MESSAGE_MAX for m in page["messages"])
    assert page["messages"][-1]["message_id"] == "m039"
    assert page["next_before"] == page["messages"][0]["message_id"]


async def test_thoughts_and_tool_calls_are_told_in_a_few_words(house: House) -> None:
    kin = await family(house)
    own = await kin.member("say hello")
    await filled(kin, own, ["y" * 5_000], "thought")
    page = await kin.call(own, "get_task_conversation", task_id="self", limit=1)
    assert page["messages"][0]["cut"] == 5_000 - pictures.ASIDE_MAX


async def test_of_a_long_description_the_beginning_is_listed(house: House) -> None:
    kin = await family(house)
    own = await kin.member()
    await house.task("Long", description="z" * 100_000, **kin.board)
    page = await kin.call(own, "list_tasks")
    assert len(page["tasks"][-1]["description"]) == pictures.DESCRIPTION_MAX


async def test_a_conversation_that_is_not_there_is_not_found(house: House) -> None:
    kin = await family(house)
    own, other = await kin.member(), await kin.member()
    empty = await house.task("Empty", **kin.board)
    for given in (
        {"task_id": empty["id"]},
        {"task_id": own.id, "session_id": other.session_id},
        {"task_id": own.id, "before": "nothing"},
    ):
        assert (await kin.refused(own, "get_task_conversation", **given)).startswith("NOT_FOUND")


@pytest.mark.field("C51")
async def test_work_that_a_persons_message_cut_short_shows_what_replaced_it_and_no_failure(
    house: House,
) -> None:
    kin = await family(house)
    parent = await kin.member()
    child = await kin.member(parent=parent)
    queue = {"session_id": child.session_id}
    added = await house.ok("message.queue.add", **queue, content="say this instead")
    await house.ok("message.queue.send_now", **queue, entry_id=added["entry_id"])
    await house.until(child.session_id, "WAITING_FOR_INPUT")
    assert await turns(house, child) == ["interrupted", "agent"]
    page = await kin.call(parent, "get_task_conversation", task_id=child.id)
    assert [m["content"] for m in page["messages"]] == [WORKING, "say this instead", "this instead"]
    assert page["state"] == "WAITING_FOR_INPUT"

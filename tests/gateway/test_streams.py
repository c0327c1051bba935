"""Subscriptions over a real socket: snapshot, then notifications, without a gap or a double."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kandev.core.records import Notification
from kandev.gateway.hub import Hub
from kandev.gateway.outbox import Stream
from tests.gateway.house import MOCK, House, Socket, dial, open_house, serving


@pytest.mark.proves("ACT-workspace.subscribe", "NOTE-task")
async def test_a_workspace_is_followed_from_its_snapshot_on(house: House, client: Socket) -> None:
    workspace, workflow = await house.board()
    first = await house.task("First", workspace_id=workspace, workflow_id=workflow)
    snapshot = await client.ok("workspace.subscribe", workspace_id=workspace)
    assert snapshot["workspace"]["id"] == workspace
    assert [w["id"] for w in snapshot["workflows"]] == [workflow]
    assert [t["id"] for t in snapshot["tasks"]] == [first["id"]]
    assert snapshot["sessions"] == []
    second = await client.ok("task.create", workspace_id=workspace, workflow_id=workflow, title="Second")
    told = await client.heard("task.created")
    assert told["task"] == second["task"]
    assert told["workspace_id"] == workspace
    assert told["seq"] == snapshot["seq"] + 1


@pytest.mark.proves("ACT-workspace.unsubscribe", "ACT-session.unsubscribe")
async def test_after_the_end_of_a_subscription_nothing_is_told(house: House, client: Socket) -> None:
    workspace, workflow = await house.board()
    await client.ok("workspace.subscribe", workspace_id=workspace)
    assert await client.ok("workspace.unsubscribe", workspace_id=workspace) == {"success": True}
    assert await client.ok("session.unsubscribe", session_id="whatever") == {"success": True}
    await house.task(workspace_id=workspace, workflow_id=workflow)
    await client.ok("health.check")
    assert client.notifications == []


@pytest.mark.proves("BAD-unknown-id")
@pytest.mark.parametrize("since", [{}, {"since_seq": 0}])
async def test_an_unknown_stream_is_not_found(client: Socket, since: dict[str, int]) -> None:
    session = await client.ask("session.subscribe", {"session_id": "nope", **since})
    workspace = await client.ask("workspace.subscribe", {"workspace_id": "nope", **since})
    assert (session["payload"]["code"], session["payload"]["message"]) == ("NOT_FOUND", "session not found")
    assert (workspace["payload"]["code"], workspace["payload"]["message"]) == (
        "NOT_FOUND",
        "workspace not found",
    )


@pytest.mark.proves("BAD-unknown-field", "BAD-wrong-type")
async def test_a_subscription_of_the_wrong_shape_names_the_member(client: Socket) -> None:
    frame = await client.ask("session.subscribe", {"session_id": "s", "since_seq": -1})
    assert (frame["type"], frame["payload"]["code"]) == ("error", "VALIDATION_ERROR")
    assert "since_seq" in frame["payload"]["message"]


@pytest.mark.proves("ACT-session.subscribe", "NOTE-session.turn", "NOTE-session.state_changed")
async def test_a_session_is_followed_to_its_turns_end(house: House, client: Socket) -> None:
    task, session_id = await house.started("sleep 30")
    await house.until(session_id, "RUNNING")
    snapshot = await client.ok("session.subscribe", session_id=session_id)
    assert snapshot["session"]["state"] == "RUNNING"
    assert [m["content"] for m in snapshot["messages"]] == ["sleep 30"]
    assert (snapshot["queue"]["count"], snapshot["permissions"]) == (0, [])
    await client.ok("message.add", task_id=task["id"], session_id=session_id, content="say later")
    await client.ok("agent.cancel", session_id=session_id)
    completed = await client.heard("session.turn.completed")
    assert completed["cause"] == "user"
    changed = await client.heard("session.state_changed")
    assert changed["new_state"] == "WAITING_FOR_INPUT"
    assert changed["seq"] > completed["seq"] > snapshot["seq"]


@pytest.mark.proves("DOOR-growing-message", "NOTE-session.message", "NOTE-session.turn", "ACT-message.list")
async def test_what_a_follower_hears_adds_up_to_the_transcript(house: House, client: Socket) -> None:
    task = await house.task()
    await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    session_id = (await house.ok("session.launch", task_id=task["id"], intent="prepare"))["session_id"]
    seq = (await client.ok("session.subscribe", session_id=session_id))["seq"]
    start = {"task_id": task["id"], "session_id": session_id, "intent": "start_created"}
    await client.ok("session.launch", **start, prompt="stream 20 1")
    frames = [*client.notifications]
    while not frames or frames[-1]["action"] != "session.turn.completed":
        frames.append(await client.frame())
    texts: dict[str, str] = {}
    for action, payload in ((f["action"], f["payload"]) for f in frames):
        assert payload["seq"] > seq
        seq = payload["seq"]
        if action == "session.message.added":
            texts[payload["message"]["id"]] = payload["message"]["content"]
        elif action == "session.message.updated" and "append" in payload:
            assert payload["offset"] == len(texts[payload["message_id"]])
            texts[payload["message_id"]] += payload["append"]
    messages = (await house.ok("message.list", session_id=session_id))["messages"]
    assert texts == {m["id"]: m["content"] for m in messages}
    assert [m["author_type"] for m in messages] == ["user", "agent"]
    assert messages[1]["content"].count("chunk") == 20
    [started] = [f["payload"] for f in frames if f["action"] == "session.turn.started"]
    completed = frames[-1]["payload"]
    assert (completed["turn_id"], completed["stop_reason"]) == (started["turn_id"], "end_turn")
    assert completed["cause"] == "agent"


@pytest.mark.proves("ACT-session.subscribe", "NOTE-session.permission_requested")
async def test_an_open_permission_request_is_in_the_snapshot(house: House, client: Socket) -> None:
    _, session_id = await house.started("ask Remove everything")
    async with asyncio.timeout(10):
        while (await house.ok("session.get", session_id=session_id)).get("waiting_for") is None:
            await asyncio.sleep(0.01)
    [asked] = (await client.ok("session.subscribe", session_id=session_id))["permissions"]
    assert asked["title"] == "Remove everything"
    assert {o["kind"] for o in asked["options"]} >= {"allow_once", "reject_once"}
    await client.ok(
        "permission.respond", session_id=session_id, request_id=asked["request_id"], rejected=True
    )
    await house.until(session_id, "WAITING_FOR_INPUT")


@pytest.mark.proves("DOOR-replay")
async def test_what_was_missed_is_replayed_in_order_and_once(house: House, address: str) -> None:
    workspace, workflow = await house.board()
    async with dial(address) as socket:
        seen = (await socket.ok("workspace.subscribe", workspace_id=workspace))["seq"]
    for title in "abc":
        await house.task(title, workspace_id=workspace, workflow_id=workflow)
    async with dial(address) as socket:
        answer = await socket.ok("workspace.subscribe", workspace_id=workspace, since_seq=seen)
        assert answer == {"workspace_id": workspace, "seq": seen + 3, "reload": False}
        told = [await socket.heard("task.created") for _ in range(3)]
        assert [(t["task"]["title"], t["seq"]) for t in told] == [
            ("a", seen + 1),
            ("b", seen + 2),
            ("c", seen + 3),
        ]
        await house.task("d", workspace_id=workspace, workflow_id=workflow)
        assert (await socket.heard("task.created"))["seq"] == seen + 4


@pytest.mark.proves("DOOR-replay")
@pytest.mark.parametrize("since", ["too old", "ahead"])
async def test_a_gap_that_is_not_kept_says_reload_with_a_snapshot(
    house: House, client: Socket, since: str
) -> None:
    workspace, workflow = await house.board()
    for title in "abcdef":
        await house.task(title, workspace_id=workspace, workflow_id=workflow)
    await house.ctx.store.write(lambda tx: tx.notifications.prune(2))
    number = 1 if since == "too old" else 10_000
    answer = await client.ok("workspace.subscribe", workspace_id=workspace, since_seq=number)
    assert answer["reload"] is True
    assert len(answer["tasks"]) == 6


@pytest.mark.proves("DOOR-slow-client", "DOOR-replay")
async def test_what_happens_while_the_snapshot_is_read_is_told_once_behind_the_answer() -> None:
    hub = Hub()
    client = hub.connect()
    stream: Stream = ("workspace", "w1")
    subscription = hub.follow(client, stream)
    hub.publish([note(4), note(5)])
    client.outbox.answer(b'{"action":"answer","payload":{"seq":4}}', lambda: None)
    hub.start(client, subscription, 4, ())
    hub.publish([note(5), note(6)])
    frames = [(await client.outbox.next()).encoded() for _ in range(3)]
    assert [b'"seq":%d' % seq in frame for seq, frame in zip((4, 5, 6), frames, strict=True)] == [True] * 3
    hub.disconnect(client)


@pytest.mark.proves("DOOR-slow-client")
async def test_a_slow_client_is_told_to_reload_and_the_others_hear_everything(tmp_path: Any) -> None:
    hub = Hub(most_frames=20)
    async with open_house(tmp_path, hub=hub) as house, serving(house.app) as address:
        workspace, workflow = await house.board()
        async with dial(address, compression=None) as slow, dial(address) as quick:
            await slow.ok("workspace.subscribe", workspace_id=workspace)
            await quick.ok("workspace.subscribe", workspace_id=workspace)
            slow.connection.transport.pause_reading()
            big = "x" * 500_000
            for number in range(60):
                await house.ok(
                    "task.create",
                    workspace_id=workspace,
                    workflow_id=workflow,
                    title=str(number),
                    description=big,
                )
                assert (await quick.heard("task.created"))["task"]["title"] == str(number)
            slow.connection.transport.resume_reading()
            reload = await slow.heard("workspace.reload")
            assert (reload["reload"], reload["workspace_id"]) == (True, workspace)
            page = await slow.ok("workspace.subscribe", workspace_id=workspace)
            found = page["tasks"]
            while cursor := page.get("next_cursor"):
                page = await slow.ok("workspace.snapshot", workspace_id=workspace, cursor=cursor)
                found += page["tasks"]
            assert [task["title"] for task in found] == [str(number) for number in range(60)]


def note(seq: int) -> Notification:
    return Notification("workspace", "w1", seq, "task.created", {"task": {"id": "t"}}, "2026-01-31T09:15:00Z")

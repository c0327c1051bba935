"""The two streams: what is told, replayed and reloaded, and that a client that does not read slows nobody."""

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect

from tests.e2e.kandev import Events, Kandev
from tests.e2e.scenes import add, agent_spoke, profile, repository, repository_id, turns_over


async def subscribe(events: Events, session_id: str, since: int | None = None) -> dict[str, Any]:
    asked = {"session_id": session_id} | ({} if since is None else {"since_seq": since})
    answer = await events.request("session.subscribe", asked)
    assert answer["type"] == "response", answer
    return dict(answer["payload"])


def numbers(events: Events) -> list[int]:
    return [f["payload"]["seq"] for f in events.seen]


@pytest.mark.proves("DOOR-replay", "ACT-session.subscribe")
async def test_who_was_away_is_told_exactly_what_it_missed(house: Kandev) -> None:
    task_id, session_id = await house.session("say one")
    async with house.watching(session_id) as present:
        async with house.watching(session_id) as leaving:
            await turns_over(leaving)
            await leaving.state("WAITING_FOR_INPUT")
            last = numbers(leaving)[-1]
        await add(house, task_id, session_id, "stream 30 1")
        await turns_over(present, 2)
        async with house.events() as back:
            answer = await subscribe(back, session_id, last)
            assert answer["reload"] is False
            await back.until("session.turn.completed")
            missed = numbers(back)
            assert missed == sorted(set(missed)) and missed[0] > last
            told = {f["payload"]["message"]["content"] for f in back.seen if "message" in f["payload"]}
            assert "say one" not in told, "what it had seen is not told again"
            assert "stream 30 1" in told


async def test_the_snapshot_and_what_follows_it_have_neither_gap_nor_double(house: Kandev) -> None:
    task_id, session_id = await house.session("stream 300 1\nsay end")
    async with house.watching(session_id) as first:
        await agent_spoke(first)
        async with house.events() as late:
            snapshot = await subscribe(late, session_id)
            text = {m["id"]: m["content"] for m in snapshot["messages"]}
            await late.until("session.turn.completed")
            for frame in late.seen:
                payload = frame["payload"]
                assert payload["seq"] > snapshot["seq"]
                if frame["action"] == "session.message.added":
                    assert payload["message"]["id"] not in text
                    text[payload["message"]["id"]] = payload["message"]["content"]
                elif "append" in payload:
                    assert payload["offset"] == len(text[payload["message_id"]])
                    text[payload["message_id"]] += payload["append"]
    assert "".join(f"chunk {n} " for n in range(1, 301)) in text.values()
    assert task_id == snapshot["session"]["task_id"]


@pytest.mark.proves("ACT-session.unsubscribe")
async def test_who_unsubscribed_hears_nothing_more(house: Kandev) -> None:
    task_id, session_id = await house.session("say one")
    async with house.watching(session_id) as events, house.watching(session_id) as other:
        await turns_over(events)
        await events.state("WAITING_FOR_INPUT")
        await other.state("WAITING_FOR_INPUT")
        answer = await events.request("session.unsubscribe", {"session_id": session_id})
        assert answer["type"] == "response"
        heard = len(events.seen)
        await add(house, task_id, session_id, "say two")
        await turns_over(other, 2)
        await events.request("health.check", {})
        assert len(events.seen) == heard


@pytest.mark.proves("NOTE-task", "NOTE-session", "NOTE-catalogue", "ACT-workspace.subscribe")
async def test_the_workspaces_stream_tells_of_everything_on_the_board(house: Kandev, tmp_path: Path) -> None:
    workspace_id = await house.workspace()
    async with house.events() as desk:
        answer = await desk.request("workspace.subscribe", {"workspace_id": workspace_id})
        assert {"workspace", "workflows", "tasks", "sessions", "seq"} <= answer["payload"].keys()
        task_id = (await house.task(title="On the board"))["task"]["id"]
        created = await desk.until("task.created")
        assert (created["task"]["id"], created["task"]["title"]) == (task_id, "On the board")
        await house.call("task.update", {"id": task_id, "title": "Renamed"})
        await desk.until("task.updated", lambda p: p["task"]["title"] == "Renamed")
        session_id = (await house.call("session.launch", {"task_id": task_id, "prompt": "say x"}))[
            "session_id"
        ]
        made = await desk.until("session.created")
        assert (made["session_id"], made["session"]["state"]) == (session_id, "CREATED")
        await desk.until("session.state_changed", lambda p: p["new_state"] == "WAITING_FOR_INPUT")
        await desk.until("task.state_changed", lambda p: p["new_state"] == "REVIEW")
        await house.call("session.rename", {"session_id": session_id, "name": "Other"})
        await desk.until("session.updated", lambda p: p["session"]["name"] == "Other")
        await house.call("session.delete", {"session_id": session_id})
        assert (await desk.until("session.deleted"))["session_id"] == session_id
        await house.call("task.delete", {"id": task_id})
        assert (await desk.until("task.deleted"))["task_id"] == task_id
        mine = await profile(house)
        changed = await desk.until("agent.profile.changed", lambda p: p["profile"]["id"] == mine)
        assert changed["deleted"] is False
        await house.call("agent.profile.delete", {"id": mine})
        await desk.until("agent.profile.changed", lambda p: p["deleted"])
        known = await repository_id(house, repository(tmp_path / "repo"))
        await desk.until("repository.changed", lambda p: p["repository"]["id"] == known)
        assert numbers(desk) == sorted(set(numbers(desk)))
        left = await desk.request("workspace.unsubscribe", {"workspace_id": workspace_id})
        assert left["type"] == "response"


@pytest.mark.proves("NOTE-session.turn", "NOTE-session.agentctl", "DOOR-times-ids")
async def test_a_turn_is_told_from_its_start_to_its_end(house: Kandev) -> None:
    _, session_id = await house.session("say hello")
    async with house.watching(session_id) as events:
        ready = await events.until("session.agentctl_ready")
        started = await events.until("session.turn.started")
        ended = await turns_over(events)
        same = ("turn_id", "execution_id", "prompt_generation", "session_id")
        assert {k: started[k] for k in same} == {k: ended[k] for k in same}
        assert ready["execution_id"] == started["execution_id"]
        assert (ended["stop_reason"], ended["cause"]) == ("end_turn", "agent")
    assert all(frame["timestamp"].endswith("Z") for frame in events.seen)
    assert all(isinstance(frame["payload"]["session_id"], str) for frame in events.seen)


@pytest.mark.proves("DOOR-slow-client")
async def test_a_client_that_does_not_read_slows_nobody_and_is_told_to_reload(house: Kandev) -> None:
    _, session_id = await house.session("ask Begin\n" + "flood 1000000\n" * 24 + "say through")
    place = urlsplit(house.url)
    address = f"ws://{place.netloc}/ws"
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        narrow = socket.create_connection((place.hostname, place.port))
        narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        async with connect(
            address, proxy=None, sock=narrow, max_size=None, max_queue=1, close_timeout=0.2
        ) as slow:
            request = {"id": "1", "type": "request", "action": "session.subscribe"}
            await slow.send(json.dumps({**request, "payload": {"session_id": session_id}}))
            assert json.loads(await slow.recv())["type"] == "response"
            answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": "allow_once"}
            await house.call("permission.respond", answer)
            await turns_over(events)
            narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            actions = []
            while "session.reload" not in actions:
                actions.append(json.loads(await slow.recv())["action"])
    page = messages = await house.messages(session_id)
    while page:  # long messages come in several pages
        behind = {"session_id": session_id, "limit": 500, "after": messages[-1]["id"]}
        page = (await house.call("message.list", behind))["messages"]
        messages += page
    assert messages[-1]["content"] == "through"

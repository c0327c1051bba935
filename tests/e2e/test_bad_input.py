"""What bad input gets: one sentence that names it, the right code, and nothing changed."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.e2e.kandev import Kandev

TASK = {"workspace_id": "w", "workflow_id": "f", "title": "t"}


def clean(error: dict[str, Any]) -> None:
    """One sentence for a person."""
    assert set(error) <= {"code", "message", "details"}
    assert "Traceback" not in error["message"] and "\n" not in error["message"]
    assert error["message"]


async def raw(house: Kandev, *frames: str | bytes) -> list[dict[str, Any]]:
    """Frames as they are, and the answer to each."""
    address = house.url.replace("http", "ws", 1) + "/ws"
    async with connect(address, proxy=None) as socket:
        answers = []
        for frame in frames:
            await socket.send(frame)
            answers.append(json.loads(await socket.recv()))
        return answers


def plain(house: Kandev, body: bytes, action: str = "health.check", **headers: str) -> tuple[int, Any]:
    """A request by hand."""
    place = urlsplit(house.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    try:
        given = {"Content-Type": "application/json", **headers}
        connection.request("POST", f"/api/v1/actions/{action}", body, given)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.mark.proves("BAD-unknown-action", "DOOR-http")
async def test_an_unknown_action_is_named_at_both_doors(house: Kandev) -> None:
    answer = await house.post("task.explode")
    assert answer.status_code == 404
    assert answer.json()["code"] == "UNKNOWN_ACTION" and "task.explode" in answer.json()["message"]
    clean(answer.json())
    frame: dict[str, Any] = {"id": "7", "type": "request", "action": "task.explode", "payload": {}}
    (told,) = await raw(house, json.dumps(frame))
    assert (told["type"], told["id"], told["action"]) == ("error", "7", "task.explode")
    assert told["payload"] == answer.json()


@pytest.mark.proves("DOOR-mcp-refused")
async def test_both_doors_refuse_everything_that_is_the_agents_own(house: Kandev) -> None:
    before = await house.call("task.list")
    for action in ("mcp.stop_task", "mcp.message_task", "mcp.", "mcp.never_heard_of"):
        answer = await house.post(action, {"task_id": "x"})
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")
        clean(answer.json())
        frame: dict[str, Any] = {"id": "1", "type": "request", "action": action, "payload": {}}
        (told,) = await raw(house, json.dumps(frame))
        assert (told["type"], told["payload"]["code"]) == ("error", "FORBIDDEN")
    assert await house.call("task.list") == before


@pytest.mark.proves("BAD-malformed-frame")
async def test_a_frame_that_is_no_request_is_answered_and_the_connection_lives(house: Kandev) -> None:
    good = json.dumps({"id": "9", "type": "request", "action": "health.check", "payload": {}})
    bad = ["{", "[]", "7", '"x"', "null", "\ud83d", ""]
    answers = await raw(house, *[frame.encode(errors="replace").decode() for frame in bad], good)
    for told in answers[:-1]:
        assert (told["type"], told["id"], told["action"]) == ("error", "", "")
        assert told["payload"]["code"] == "BAD_REQUEST"
        clean(told["payload"])
    assert answers[-1]["payload"]["status"] == "ok"
    half = {"id": "3", "type": "request", "action": "health.check", "payload": []}
    (told,) = await raw(house, json.dumps(half))
    assert (told["id"], told["type"]) == ("3", "error")
    for body in (b"{", b"[]", b"7", b"\xff\xfe"):
        status, error = plain(house, body)
        assert (status, error["code"]) == (400, "BAD_REQUEST")
        clean(error)


@pytest.mark.proves("BAD-unknown-field", "BAD-wrong-type", "INV-7")
@pytest.mark.parametrize(
    ("action", "payload", "named"),
    [
        ("workspace.create", {"name": "X", "colour": "red"}, "colour"),
        ("workspace.create", {"name": 7}, "name"),
        ("workspace.create", {}, "name"),
        ("workspace.create", {"name": ""}, "name"),
        (
            "task.create",
            {"workspace_id": "w", "workflow_id": "f", "title": "t", "start_agent": "yes"},
            "start",
        ),
        ("task.create", {**TASK, "repos": []}, "repos"),
        ("session.launch", {"task_id": "t", "intent": "fly"}, "intent"),
        ("message.add", {"task_id": "t", "session_id": "s", "content": None}, "content"),
        ("message.list", {"session_id": "s", "limit": 0}, "limit"),
        ("agent.cancel", {"session_id": "s", "force": True}, "force"),
        ("agent.profile.create", {"name": "n", "protocol": "telepathy", "command": ["x"]}, "protocol"),
        ("agent.profile.create", {"name": "n", "protocol": "acp", "command": []}, "command"),
        ("permission.respond", {"session_id": "s", "request_id": 3}, "request_id"),
    ],
)
async def test_a_payload_that_does_not_fit_is_refused_with_the_fields_name(
    house: Kandev, action: str, payload: dict[str, Any], named: str
) -> None:
    before = await house.call("workspace.list"), await house.call("agent.profile.list")
    answer = await house.post(action, payload)
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_ERROR")
    assert named in answer.json()["message"]
    clean(answer.json())
    assert (await house.call("workspace.list"), await house.call("agent.profile.list")) == before


@pytest.mark.proves("BAD-unknown-id")
@pytest.mark.parametrize(
    ("action", "payload", "kind"),
    [
        ("workspace.get", {"id": "nobody"}, "workspace"),
        ("repository.get", {"id": "nobody"}, "repository"),
        ("workflow.get", {"id": "nobody"}, "workflow"),
        ("agent.profile.get", {"id": "nobody"}, "profile"),
        ("task.get", {"id": "nobody"}, "task"),
        ("task.delete", {"id": "nobody"}, "task"),
        ("session.get", {"session_id": "nobody"}, "session"),
        ("session.launch", {"task_id": "nobody"}, "task"),
        ("session.recover", {"session_id": "nobody"}, "session"),
        ("session.changes", {"session_id": "nobody"}, "session"),
        ("message.add", {"task_id": "nobody", "session_id": "nobody", "content": "x"}, "task"),
        ("message.list", {"session_id": "nobody"}, "session"),
        ("task.session.list", {"task_id": "nobody"}, "task"),
    ],
)
async def test_an_unknown_id_is_not_found_and_says_what_was_looked_for(
    house: Kandev, action: str, payload: dict[str, Any], kind: str
) -> None:
    answer = await house.post(action, payload)
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
    assert kind in answer.json()["message"] and "not found" in answer.json()["message"]
    clean(answer.json())


@pytest.mark.proves("CLI-host-origin")
async def test_foreign_names_and_pages_are_refused_at_both_doors(house: Kandev) -> None:
    own = urlsplit(house.url).netloc
    for headers in ({"Host": "evil.example"}, {"Host": own, "Origin": "http://evil.example"}):
        status, error = plain(house, b"{}", **headers)
        assert (status, error["code"]) == (403, "FORBIDDEN")
        clean(error)
    assert plain(house, b"{}", Host=own, Origin=f"http://{own}")[0] == 200
    address = house.url.replace("http", "ws", 1) + "/ws"
    with pytest.raises(InvalidStatus) as refused:
        async with connect(address, proxy=None, origin="http://evil.example"):  # type: ignore[arg-type]
            pass
    assert refused.value.response.status_code == 403


async def test_unknown_pages_are_not_found(house: Kandev) -> None:
    assert (await house.get("/no/such/page")).status_code == 404
    assert (await house.get("/openapi.json")).json()["openapi"].startswith("3.")
    assert "Kandev" in (await house.get("/")).text
    assert (await house.get("/health")).status_code == 200

"""The HTTP door: paths, bodies, codes, and what browsers and probes get."""

from __future__ import annotations

import re

import pytest
from structlog.testing import capture_logs

from kandev.core.errors import Internal, StoreFault
from kandev.gateway import http as door
from kandev.gateway.catalogue import ACTIONS
from kandev.storage.sql.inline import InlineStore
from kandev.usecases import list_agents, workspaces
from tests.gateway.house import House


@pytest.mark.proves("DOOR-http", "ACT-health.check", "DOOR-health")
async def test_an_action_answers_its_payload(house: House) -> None:
    assert await house.post("health.check") == (200, {"status": "ok", "version": "0.1.0"})


@pytest.mark.proves("STORE-damaged-running")
async def test_a_damaged_database_is_no_health(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (await house.http.get("/health")).json() == {"status": "ok", "version": "0.1.0"}
    monkeypatch.setattr(InlineStore, "damage", "The database is damaged.")
    answer = await house.http.get("/health")
    assert answer.status_code == 503
    assert answer.json() == {"status": "damaged", "version": "0.1.0", "error": "The database is damaged."}


async def test_an_empty_body_is_an_empty_payload(house: House) -> None:
    response = await house.http.post("/api/v1/actions/health.check")
    assert response.status_code == 200


@pytest.mark.proves("DOOR-http", "BAD-unknown-action", "BAD-no-traceback")
@pytest.mark.parametrize("action", ["no.such", "no/such", "", "message.queue.shuffle", "clarification.ask"])
async def test_an_unknown_action_is_404_and_is_named(house: House, action: str) -> None:
    status, body = await house.post(action)
    assert (status, body["code"]) == (404, "UNKNOWN_ACTION")
    assert action in body["message"]
    assert set(body) == {"code", "message"}


@pytest.mark.proves("DOOR-mcp-refused")
@pytest.mark.parametrize("action", ["mcp.stop_task", "mcp.no_such_thing", "mcp.", "%6dcp.stop_task"])
async def test_actions_of_agents_are_forbidden_before_the_body_is_read(house: House, action: str) -> None:
    response = await house.http.post(
        f"/api/v1/actions/{action}", content=b"not json", headers={"content-type": "text/plain"}
    )
    assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")


@pytest.mark.proves("DOOR-http")
@pytest.mark.parametrize("body", [b"{", b"nonsense", b"[]", b'"text"', b"null", b"[" * 100_000, b"\xff\xfe"])
async def test_a_body_that_is_no_json_object_is_400(house: House, body: bytes) -> None:
    response = await house.http.post("/api/v1/actions/health.check", content=body)
    assert (response.status_code, response.json()["code"]) == (400, "BAD_REQUEST")


async def test_a_body_that_is_too_large_is_400(house: House) -> None:
    body = b'{"name":"' + b"x" * door.LARGEST_BODY + b'"}'
    response = await house.http.post("/api/v1/actions/workspace.create", content=body)
    assert (response.status_code, response.json()["code"]) == (400, "BAD_REQUEST")


async def test_a_form_is_refused_for_a_foreign_page_could_send_one(house: House) -> None:
    response = await house.http.post("/api/v1/actions/workspace.create", data={"name": "x"})
    assert response.status_code == 400
    assert "application/json" in response.json()["message"]


@pytest.mark.proves("BAD-unknown-field", "BAD-wrong-type", "DOOR-http")
@pytest.mark.parametrize(
    ("payload", "named"),
    [
        ({"name": "x", "colour": "red"}, "Unknown field `colour`."),
        ({"name": 5}, "The field `name` must be a string, not an integer."),
        ({"name": None}, "The field `name` must be a string, not null."),
        ({}, "The field `name` is missing."),
        ({"name": ""}, "The field `name` must have at least 1 characters."),
        ({"name": "  "}, "The field `name` is blank; write something in it."),
    ],
)
async def test_a_payload_of_the_wrong_shape_is_422_and_names_the_member(
    house: House, payload: dict[str, object], named: str
) -> None:
    status, body = await house.post("workspace.create", payload)
    assert (status, body["code"], body["message"]) == (422, "VALIDATION_ERROR", named)
    assert await house.ok("workspace.list") == {"workspaces": []}


@pytest.mark.proves("BAD-unknown-field")
async def test_a_wrong_member_inside_a_list_is_named_with_its_place(house: House) -> None:
    step = [{"name": "A"}, {"name": "B", "colour": 1}]
    message = await house.refused(
        "workflow.create", "VALIDATION_ERROR", workspace_id="w", name="n", steps=step
    )
    assert message == "Unknown field `colour` in `steps[1]`."


@pytest.mark.proves("DOOR-errors", "BAD-no-traceback")
@pytest.mark.parametrize("fault", [RuntimeError("insides"), StoreFault("insides")])
async def test_an_internal_error_tells_an_id_that_is_in_the_log_and_nothing_else(
    house: House, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    async def broken(ctx: object) -> None:
        raise fault

    monkeypatch.setattr(workspaces, "list_workspaces", broken)
    with capture_logs() as logged:
        status, body = await house.post("workspace.list")
    assert (status, body["code"]) == (500, "INTERNAL_ERROR")
    assert "insides" not in str(body)
    [error_id] = re.findall(r"\b[0-9a-f]{12}\b", body["message"])
    assert [line["error_id"] for line in logged if line["log_level"] == "error"] == [error_id]
    assert [line["exc_info"] for line in logged if line["log_level"] == "error"] == [fault]


@pytest.mark.proves("DOOR-errors")
async def test_the_internal_errors_that_the_contract_names_keep_their_sentence(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(ctx: object, *, versions: bool) -> None:
        raise Internal("the delivery is unknown", {"error": "delivery_unknown", "entry_id": "e1"})

    monkeypatch.setattr(list_agents, "list_agents", unknown)
    status, body = await house.post("agent.list")
    assert (status, body["message"]) == (500, "the delivery is unknown")
    assert body["details"] == {"error": "delivery_unknown", "entry_id": "e1"}


async def test_a_subscription_belongs_to_the_websocket(house: House) -> None:
    message = await house.refused("session.subscribe", "BAD_REQUEST", session_id="s")
    assert "/ws" in message


@pytest.mark.proves("DOOR-health")
async def test_health_and_metrics_answer(house: House) -> None:
    health = await house.http.get("/health")
    assert (health.status_code, health.json()["status"]) == (200, "ok")
    await house.started("sleep 30")
    text = (await house.http.get("/metrics")).text
    assert 'kandev_requests_total{action="session.launch",code="ok",door="http"} 1.0' in text
    assert re.search(r'kandev_sessions\{state="(STARTING|RUNNING)"\} 1\.0', text)
    assert "kandev_clients 0.0" in text


async def test_a_path_that_is_not_there_is_an_error_object_too(house: House) -> None:
    missing = await house.http.get("/nowhere")
    wrong_method = await house.http.get("/api/v1/actions/health.check")
    assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND")
    assert (wrong_method.status_code, wrong_method.json()["code"]) == (405, "BAD_REQUEST")


@pytest.mark.proves("DOOR-front-page")
async def test_the_front_page_says_what_runs_where(house: House) -> None:
    await house.task()
    page = await house.http.get("/")
    assert page.status_code == 200
    for part in ("0.1.0", "http://127.0.0.1:1", str(house.tmp / "home"), "<dd>1</dd>", "kandev task create"):
        assert part in page.text
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert not re.search(r'(src|href)="(https?:)?//', page.text)
    assert 'name="viewport"' in page.text
    assert "light dark" in page.text


@pytest.mark.proves("DOOR-openapi")
async def test_the_openapi_document_describes_every_action_and_resolves(house: House) -> None:
    document = (await house.http.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    assert {"title", "version"} <= document["info"].keys()
    actions = {path.removeprefix("/api/v1/actions/") for path in document["paths"]} - {"/health"}
    assert actions == set(ACTIONS)
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))
    for reference in re.findall(r'"\$ref":\s*"([^"]+)"', (await house.http.get("/openapi.json")).text):
        found = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        assert isinstance(found, dict)
    create = document["paths"]["/api/v1/actions/task.create"]["post"]
    assert {"200", "400", "401", "403", "404", "409", "422", "500"} == create["responses"].keys()
    schema = document["components"]["schemas"]["TaskCreate"]
    assert schema["required"] == ["workspace_id", "workflow_id", "title"]
    assert schema["additionalProperties"] is False

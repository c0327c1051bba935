"""The WebSocket door: frames, errors, order of answers, and what happens when a client goes away."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import msgspec
import pytest

from kandev.gateway import websocket as door
from kandev.gateway.accepted import Accepted
from kandev.usecases import workspaces
from tests.gateway.house import WAIT_S, House, Socket, dial, open_house, serving

RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class Gate:
    """A use case that waits until it is let through."""

    def __init__(self) -> None:
        self.entered, self.open = asyncio.Event(), asyncio.Event()
        self.cancelled = False

    async def pass_through(self) -> None:
        self.entered.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


@pytest.fixture
def slow_create(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """`workspace.create` waits at a gate."""
    gate, create = Gate(), workspaces.create_workspace

    async def slow(ctx: Any, *, name: str) -> Any:
        await gate.pass_through()
        return await create(ctx, name=name)

    monkeypatch.setattr(workspaces, "create_workspace", slow)
    return gate


@pytest.fixture
def slow_list(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """`workspace.list` waits at a gate."""
    gate, look = Gate(), workspaces.list_workspaces

    async def slow(ctx: Any) -> Any:
        await gate.pass_through()
        return await look(ctx)

    monkeypatch.setattr(workspaces, "list_workspaces", slow)
    return gate


@pytest.mark.proves("DOOR-frame", "DOOR-times-ids", "ACT-health.check")
async def test_a_response_is_a_frame_with_the_requests_id(client: Socket) -> None:
    frame = await client.ask("health.check")
    assert set(frame) == {"id", "type", "action", "payload", "timestamp"}
    assert (frame["id"], frame["type"], frame["action"]) == ("q1", "response", "health.check")
    assert frame["payload"] == {"status": "ok", "version": "0.1.0"}
    assert RFC_3339.fullmatch(frame["timestamp"])


@pytest.mark.proves("DOOR-frame", "BAD-unknown-id")
async def test_an_error_is_a_frame_with_code_and_message(client: Socket) -> None:
    frame = await client.ask("task.get", {"id": "nope"})
    assert (frame["id"], frame["type"], frame["action"]) == ("q1", "error", "task.get")
    assert frame["payload"] == {
        "code": "NOT_FOUND",
        "message": "task not found",
        "details": {"kind": "task", "id": "nope"},
    }


@pytest.mark.proves("BAD-malformed-frame", "DOOR-frame")
@pytest.mark.parametrize("text", ["", "{", "nonsense", "[]", "5", "null", '"x"', b"\x00\x01", b"{}"])
async def test_what_is_no_object_is_a_bad_request_with_empty_id_and_action(
    client: Socket, text: str | bytes
) -> None:
    await client.send(text)
    frame = await client.frame()
    assert (frame["type"], frame["id"], frame["action"]) == ("error", "", "")
    assert frame["payload"]["code"] == "BAD_REQUEST"
    assert (await client.ok("health.check"))["status"] == "ok"


@pytest.mark.proves("BAD-malformed-frame")
@pytest.mark.parametrize(
    ("frame", "id", "action"),
    [
        ({"type": "request", "action": "health.check"}, "", "health.check"),
        ({"id": 5, "type": "request", "action": "health.check"}, "", "health.check"),
        ({"id": "a", "action": "health.check"}, "a", "health.check"),
        ({"id": "a", "type": "response", "action": "health.check"}, "a", "health.check"),
        ({"id": "a", "type": "notification", "action": "health.check"}, "a", "health.check"),
        ({"id": "a", "type": "request"}, "a", ""),
        ({"id": "a", "type": "request", "action": ["x"]}, "a", ""),
        ({"id": "a", "type": "request", "action": "health.check", "payload": []}, "a", "health.check"),
    ],
)
async def test_an_object_that_is_no_request_is_a_bad_request(
    client: Socket, frame: dict[str, object], id: str, action: str
) -> None:
    await client.send(msgspec.json.encode(frame).decode())
    answer = await client.frame()
    assert (answer["type"], answer["id"], answer["action"]) == ("error", id, action)
    assert answer["payload"]["code"] == "BAD_REQUEST"


@pytest.mark.proves("BAD-unknown-action")
async def test_an_unknown_action_is_named(client: Socket) -> None:
    frame = await client.ask("message.queue.shuffle", {"x": 1})
    assert frame["payload"]["code"] == "UNKNOWN_ACTION"
    assert "message.queue.shuffle" in frame["payload"]["message"]


@pytest.mark.proves("DOOR-mcp-refused")
@pytest.mark.parametrize(
    "frame",
    [
        {"id": "a", "type": "request", "action": "mcp.stop_task", "payload": {}},
        {"id": "a", "type": "request", "action": "mcp.no_such_thing", "payload": "not an object"},
        {"id": "a", "type": "nonsense", "action": "mcp.message_task"},
    ],
)
async def test_actions_of_agents_are_forbidden_whatever_else_is_wrong(
    client: Socket, frame: dict[str, object]
) -> None:
    await client.send(msgspec.json.encode(frame).decode())
    answer = await client.frame()
    assert (answer["id"], answer["action"]) == ("a", frame["action"])
    assert answer["payload"]["code"] == "FORBIDDEN"


async def test_a_frame_that_is_too_large_is_a_bad_request(
    client: Socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door, "LARGEST_FRAME", 100)
    await client.send('{"id":"a","type":"request","action":"' + "x" * 100 + '"}')
    assert (await client.frame())["payload"]["code"] == "BAD_REQUEST"


@pytest.mark.proves("DOOR-frame")
async def test_a_slow_request_does_not_hold_up_the_ones_behind_it(client: Socket, slow_list: Gate) -> None:
    slow = await client.request("workspace.list")
    await slow_list.entered.wait()
    quick = await client.request("health.check")
    assert (await client.frame())["id"] == quick
    slow_list.open.set()
    assert (await client.frame())["id"] == slow


async def test_requests_beyond_the_bound_wait_for_an_answer(
    client: Socket, slow_list: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(door.IN_FLIGHT):
        await client.request("workspace.list")
    last = await client.request("health.check")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await client.connection.recv()
    slow_list.open.set()
    ids = [(await client.frame())["id"] for _ in range(door.IN_FLIGHT + 1)]
    assert last in ids


@pytest.mark.proves("DOOR-mutation-goes-on", "TURN-caller-gone")
async def test_an_accepted_mutation_goes_on_when_the_socket_goes_away(
    house: House, address: str, slow_create: Gate
) -> None:
    async with dial(address) as socket:
        await socket.request("workspace.create", {"name": "Shop"})
        await slow_create.entered.wait()
    await disconnected(house)
    slow_create.open.set()
    async with asyncio.timeout(WAIT_S):
        while not (await house.ok("workspace.list"))["workspaces"]:
            await asyncio.sleep(0.01)
    assert not slow_create.cancelled


@pytest.mark.proves("DOOR-mutation-goes-on")
async def test_an_accepted_mutation_goes_on_when_the_http_client_goes_away(
    house: House, slow_create: Gate
) -> None:
    asking = asyncio.create_task(house.post("workspace.create", {"name": "Shop"}))
    await slow_create.entered.wait()
    asking.cancel()
    await asyncio.wait([asking])
    slow_create.open.set()
    async with asyncio.timeout(WAIT_S):
        while not (await house.ok("workspace.list"))["workspaces"]:
            await asyncio.sleep(0.01)
    assert not slow_create.cancelled


@pytest.mark.proves("DOOR-mutation-goes-on")
@pytest.mark.parametrize("mutates", [True, False])
async def test_over_http_a_mutation_goes_on_and_a_read_is_given_up_when_the_client_goes_away(
    house: House, address: str, slow_create: Gate, slow_list: Gate, mutates: bool
) -> None:
    action, payload, gate = (
        ("workspace.create", '{"name":"Shop"}', slow_create)
        if mutates
        else ("workspace.list", "{}", slow_list)
    )
    head = (
        f"POST /api/v1/actions/{action} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(payload)}\r\n\r\n"
    )
    host, port = address.split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    writer.write((head + payload).encode())
    await gate.entered.wait()
    writer.transport.abort()
    async with asyncio.timeout(WAIT_S):
        while not gate.cancelled and not mutates:
            await asyncio.sleep(0.01)
    if mutates:
        slow_list.open.set()
        gate.open.set()
        async with asyncio.timeout(WAIT_S):
            while not (await house.ok("workspace.list"))["workspaces"]:
                await asyncio.sleep(0.01)
        assert not gate.cancelled


async def test_a_request_that_only_reads_is_given_up_when_the_socket_goes_away(
    house: House, address: str, slow_list: Gate
) -> None:
    async with dial(address) as socket:
        await socket.request("workspace.list")
        await slow_list.entered.wait()
    async with asyncio.timeout(WAIT_S):
        while not slow_list.cancelled:
            await asyncio.sleep(0.01)


@pytest.mark.proves("DOOR-mutation-goes-on")
async def test_the_end_of_the_server_waits_for_an_accepted_mutation(
    tmp_path: Any, slow_create: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_them = Accepted.close

    async def close(accepted: Accepted, deadline: float) -> None:
        slow_create.open.set()
        await wait_for_them(accepted, deadline)

    monkeypatch.setattr(Accepted, "close", close)
    async with open_house(tmp_path) as house:
        async with serving(house.app) as address, dial(address) as socket:
            await socket.request("workspace.create", {"name": "Shop"})
            await slow_create.entered.wait()
        assert len((await house.ok("workspace.list"))["workspaces"]) == 1
        assert not slow_create.cancelled


@pytest.mark.proves("DOOR-http", "DOOR-frame")
async def test_both_doors_answer_the_same(house: House, client: Socket) -> None:
    await house.board()
    for action, payload in (("workspace.list", {}), ("task.list", {}), ("task.get", {"id": "x"})):
        frame = await client.ask(action, payload)
        assert frame["payload"] == (await house.post(action, payload))[1]


async def disconnected(house: House) -> None:
    """Wait until the backend noticed that nobody is connected."""
    async with asyncio.timeout(WAIT_S):
        while "kandev_clients 0.0" not in (await house.http.get("/metrics")).text:
            await asyncio.sleep(0.01)

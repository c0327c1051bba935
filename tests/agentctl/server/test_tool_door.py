"""Who may speak to an instance's MCP server, and what is no message: refused before anything is carried."""

import pytest

from tests.agentctl.server.hosts import TOKEN, Host
from tests.agentctl.server.lanes import Client, request

pytestmark = pytest.mark.proves("CTL-mcp")


@pytest.fixture
async def client(host: Host) -> Client:
    await host.create(mcp_mode="task")
    return Client(host)


def untouched(host: Host) -> bool:
    return not host.instances.get("e1").tunnel._count


async def test_only_the_instances_own_token_opens_its_door(host: Host, client: Client) -> None:
    await host.create("e2", mcp_mode="task")
    foreign = Client(host, "e2").token
    for token in ("x", "t\xf6ken", foreign, TOKEN):
        answer = await client.send(request(), Authorization=f"Bearer {token}".encode("latin-1"))
        assert answer.status_code == 401, token
    assert (await client.send(request(), Authorization=f"Basic {client.token}")).status_code == 401
    assert untouched(host)


async def test_the_token_opens_nothing_else(host: Host, client: Client) -> None:
    bearer = {"Authorization": f"Bearer {client.token}"}
    assert (await host.ask("GET", "/api/v1/instances", **bearer)).status == 401
    assert (await host.prompt(1)).status == 202
    answer = await host.of("e1", "POST", "acp/cancel", {"prompt_generation": 1}, **bearer)
    assert answer.status == 401


async def test_foreign_hosts_and_pages_are_refused(host: Host, client: Client) -> None:
    assert (await client.send(request(), Host="evil.example")).status_code == 403
    assert (await client.send(request(), Origin="https://evil.example")).status_code == 403
    assert (await client.send(request(), Origin="null")).status_code == 403
    assert untouched(host)


async def test_there_is_no_stream_of_the_servers_own(client: Client) -> None:
    answer = await client.send(b"", "GET")
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST, DELETE")
    assert (await client.send(b"", "PUT")).status_code == 405
    assert (await client.send(b"", "DELETE")).status_code == 204


async def test_notifications_and_answers_are_taken_without_a_word(host: Host, client: Client) -> None:
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]},
        {"jsonrpc": "2.0", "id": 3, "result": {}},
    ):
        answer = await client.send(message)
        assert (answer.status_code, answer.content) == (202, b"")
    assert untouched(host)


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"[]", 400, "A batch of messages is not taken"),
        (b" \n[{}]", 400, "A batch of messages is not taken"),
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"\xff{}", 400, "not JSON"),
        (b'{"method":"x","id":1,"params":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 400, "not JSON"),
        (b'"text"', 400, "does not fit JSON-RPC"),
        (b'{"id":1,"method":7}', 400, "does not fit JSON-RPC"),
        (b'{"id":null,"method":"tools/call"}', 400, "id is a string or a number"),
        (b'{"id":{},"method":"tools/call"}', 400, "id is a string or a number"),
    ],
)
async def test_what_is_no_message_is_refused_in_words(
    host: Host, client: Client, body: bytes, status: int, sentence: str
) -> None:
    answer = await client.send(body)
    assert answer.status_code == status
    assert sentence in answer.json()["error"]["message"]
    assert untouched(host)


async def test_an_argument_of_ten_mebibytes_is_refused(host: Host, client: Client) -> None:
    answer = await client.send(request(1, text="x" * 10 * 1024 * 1024))
    assert answer.status_code == 413
    assert "at most 4194304 bytes" in answer.json()["error"]["message"]
    assert untouched(host)


async def test_an_unknown_instance_has_no_door(client: Client) -> None:
    client.execution = "e9"
    assert (await client.send(request())).status_code == 404


async def test_an_instance_without_a_mode_serves_no_tools(host: Host, client: Client) -> None:
    await host.create("e2")
    assert host.instances.get("e2").tunnel.over

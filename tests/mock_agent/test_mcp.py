"""The `mcp` line: tools of an HTTP server and of a stdio server, their errors, and a cancelled call."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from tests.mock_agent import mcp_server
from tests.mock_agent.driver import DEADLINE_S, Json, Peer
from tests.mock_agent.mcp_server import HttpServer, serving_http

pytestmark = pytest.mark.proves("MOCK-mcp")


def _http(server: HttpServer) -> Json:
    return {"type": "http", "name": "kandev", "url": server.url, "headers": server.headers}


def _stdio(log: Path) -> Json:
    arguments = [mcp_server.__file__, str(log)]
    env = [{"name": "MCP_TEST", "value": "from the client"}]
    return {"name": "kandev", "command": sys.executable, "args": arguments, "env": env}


async def _results(peer: Peer, session: str, text: str) -> list[Json]:
    assert await peer.prompt(session, text).end() == {"stopReason": "end_turn"}
    messages = peer.messages(session)
    assert all(message.startswith("mcp-result ") and "\n" not in message for message in messages)
    return [json.loads(message.removeprefix("mcp-result ")) for message in messages]


SUM = {"content": [{"type": "text", "text": "sum\n5"}], "structuredContent": {"sum": 5}}
CALLS = 'mcp add {"a": 2, "b": 3}\nmcp add_kandev {"a":2,"b":3}\nmcp plain_kandev {"text":"x"}'


@pytest.mark.parametrize("style", ["json", "sse"])
async def test_a_tool_of_an_http_server_is_called_with_or_without_its_suffix(
    peer: Peer, work: Path, style: str
) -> None:
    async with serving_http(style) as server:
        session = await peer.new(work, [_http(server)])
        first, second, third = await _results(peer, session, CALLS)
        assert first == second == SUM
        assert third == {"content": [{"type": "text", "text": "x"}]}
        methods = [frame["method"] for frame in server.received if "method" in frame]
        assert methods[:2] == ["initialize", "notifications/initialized"]
        assert methods.count("initialize") == 1
        pongs = [frame for frame in server.received if frame.get("id") == "p-1"]
        assert bool(pongs) == (style == "sse")


async def test_a_tool_of_a_stdio_server_is_called(peer: Peer, work: Path, tmp_path: Path) -> None:
    log = tmp_path / "mcp.jsonl"
    session = await peer.new(work, [_stdio(log)])
    first, second, third = await _results(peer, session, CALLS)
    assert first == second == SUM
    assert third["content"][0]["text"] == "x from the client"
    received = [json.loads(line) for line in log.read_text().splitlines()]
    assert received[-1]["params"] == {"name": "plain", "arguments": {"text": "x"}}
    assert {"jsonrpc": "2.0", "id": "p-1", "result": {}} in received


async def test_what_a_server_refuses_is_said(peer: Peer, work: Path) -> None:
    async with serving_http("json") as server:
        session = await peer.new(work, [_http(server)])
        refused, unknown, malformed = await _results(
            peer, session, "mcp refuse\nmcp nothing {}\nmcp add {broken"
        )
    assert refused == {"error": {"code": -32601, "message": "no tools/call"}}
    assert unknown["isError"] is True
    assert "not JSON" in malformed["error"]["message"]


async def test_a_server_that_cannot_be_used_is_said(peer: Peer, work: Path) -> None:
    servers: list[tuple[list[Json], str]] = [
        ([], "no tool server"),
        (
            [{"type": "http", "name": "x", "url": "https://127.0.0.1/", "headers": []}],
            "http:// addresses only",
        ),
        ([{"type": "http", "name": "x", "url": "http://127.0.0.1:1/", "headers": []}], "initialize failed"),
        ([{"type": "sse", "name": "x", "url": "http://127.0.0.1:1/", "headers": []}], "not 'sse'"),
        ([{"name": "x", "command": "/no/such/program", "args": [], "env": []}], "No such file"),
        ([{"name": "x", "command": "true", "args": [], "env": []}], ""),
    ]
    for given, said in servers:
        session = await peer.new(work, given)
        (result,) = await _results(peer, session, "mcp add {}")
        assert said in result["error"]["message"]


async def test_a_server_that_has_ended_is_started_again_by_the_next_call(
    peer: Peer, work: Path, tmp_path: Path
) -> None:
    session = await peer.new(work, [_stdio(tmp_path / "mcp.jsonl")])
    ended, again = await _results(peer, session, 'mcp add {"a": 1}\nmcp add {"a": 2, "b": 3}')
    assert "has ended" in ended["error"]["message"]
    assert again == SUM


async def test_a_token_that_the_server_does_not_take_is_said(peer: Peer, work: Path) -> None:
    async with serving_http("json") as server:
        session = await peer.new(work, [{**_http(server), "headers": []}])
        (result,) = await _results(peer, session, "mcp add {}")
    assert result["error"]["code"] == 400
    assert "no token" in result["error"]["message"]


async def test_a_cancel_ends_a_call_and_reaches_the_server(peer: Peer, work: Path) -> None:
    async with serving_http("sse") as server:
        session = await peer.new(work, [_http(server)])
        turn = peer.prompt(session, "mcp wait\nsay never")
        await asyncio.wait_for(server.waiting.wait(), DEADLINE_S)
        peer.cancel(session)
        assert await turn.end() == {"stopReason": "cancelled"}
        assert peer.updates(session) == []
        calls = [frame["id"] for frame in server.received if frame.get("method") == "tools/call"]
        cancels = [frame for frame in server.received if frame.get("method") == "notifications/cancelled"]
        assert [frame["params"]["requestId"] for frame in cancels] == calls


async def test_a_cancelled_call_of_a_stdio_server_leaves_it_usable(
    peer: Peer, work: Path, tmp_path: Path
) -> None:
    log = tmp_path / "mcp.jsonl"
    session = await peer.new(work, [_stdio(log)])
    await peer.prompt(session, 'mcp add {"a": 2, "b": 3}').end()
    turn = peer.prompt(session, "mcp wait")
    await peer.round_trip(session)
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}
    assert (await _results(peer, session, 'mcp add {"a": 2, "b": 3}'))[-1] == SUM
    assert "notifications/cancelled" in log.read_text()


async def test_the_end_of_the_agent_ends_its_stdio_server(peer: Peer, work: Path, tmp_path: Path) -> None:
    log = tmp_path / "mcp.jsonl"
    session = await peer.new(work, [_stdio(log)])
    await _results(peer, session, 'mcp plain {"text":"x"}')
    children = Path(f"/proc/{peer.process.pid}/task/{peer.process.pid}/children").read_text().split()
    (child,) = children
    peer.close_stdin()
    assert await peer.exit_code() == 0
    assert not Path(f"/proc/{child}").exists()

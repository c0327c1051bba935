"""MCP servers of a profile reach the agent, by HTTP and by stdio, and their secrets stay secret."""

import json
import sys
from pathlib import Path
from typing import Any

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import profile, said, turns_over
from tests.mock_agent import mcp_server
from tests.mock_agent.mcp_server import serving_http

SUM = {"content": [{"type": "text", "text": "sum\n5"}], "structuredContent": {"sum": 5}}


async def results(house: Kandev, server: dict[str, Any], script: str) -> list[dict[str, Any]]:
    """What the agent got from the tools of this server."""
    mine = await profile(house, mcp_servers=[server])
    _, session_id = await house.session(script, agent_profile_id=mine)
    async with house.watching(session_id) as events:
        await turns_over(events)
    return [json.loads(line.removeprefix("mcp-result ")) for line in await said(house, session_id)]


async def test_an_agent_calls_a_tool_of_an_http_server(house: Kandev) -> None:
    async with serving_http("sse") as server:
        headers = {h["name"]: h["value"] for h in server.headers}
        about = {"type": "http", "name": "sums", "url": server.url, "headers": headers}
        calls = 'mcp add {"a": 2, "b": 3}\nmcp refuse {}'
        first, second = await results(house, about, calls)
    assert first == SUM
    assert "no tools/call" in second["error"]["message"]


async def test_an_agent_calls_a_tool_of_a_stdio_server_which_ends_with_it(
    house: Kandev, tmp_path: Path
) -> None:
    about = {
        "name": "sums",
        "command": sys.executable,
        "args": [mcp_server.__file__, str(tmp_path / "mcp.jsonl")],
        "env": {"MCP_TEST": "a secret of the server"},
    }
    first, second = await results(house, about, 'mcp add {"a": 2, "b": 3}\nmcp plain {"text": "x"}')
    assert first == SUM
    assert second["content"][0]["text"] == "x a secret of the server"
    listed = (await house.call("agent.profile.list"))["profiles"][-1]
    assert "a secret of the server" not in json.dumps(listed)
    assert listed["mcp_servers"][0]["env"] == {"MCP_TEST": "***"}


async def test_a_tool_server_that_is_not_there_is_the_agents_to_report(house: Kandev) -> None:
    about = {"name": "sums", "command": "/nowhere/server", "args": []}
    (result,) = await results(house, about, "mcp add {}")
    assert result["error"]["message"]

"""The official SDK's client, in each of its ways to begin, uses Kandev's tools through agentctl's door."""

import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.agentctl.server.hosts import Host
from tests.mcp.clients import door_of

pytestmark = pytest.mark.proves("MCP-task-mode", "CTL-mcp")


def over_http(host: Host) -> Any:
    tunnel = host.instances.get("e1").tunnel
    http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {tunnel.token}"}, trust_env=False)
    return streamable_http_client(tunnel.url, http_client=http)


def over_the_bridge(host: Host) -> Any:
    tunnel = host.instances.get("e1").tunnel
    environment = {"KANDEV_MCP_URL": tunnel.url, "KANDEV_MCP_TOKEN": tunnel.token}
    arguments = ["-P", "-m", "kandev", "agentctl", "mcp-bridge"]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment)


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
@pytest.mark.parametrize("way", [over_http, over_the_bridge])
async def test_the_official_client_lists_and_calls_tools(tmp_path: Path, way: Any, mode: Any) -> None:
    async with door_of(tmp_path) as host, Client(way(host), mode=mode) as client:
        listed = await client.list_tools()
        called = await client.call_tool("list_workspaces_kandev", {})
        wrong = await client.call_tool("list_workspaces_kandev", {"task_id": "t1"})
    (tool,) = [tool for tool in listed.tools if tool.name == "list_workspaces_kandev"]
    assert tool.input_schema["additionalProperties"] is False
    assert tool.annotations is not None and tool.annotations.read_only_hint
    assert [one["name"] for one in called.structured_content["workspaces"]] == ["Default"]
    assert wrong.is_error

"""Agents use Kandev's tools: a call goes from the agent through agentctl to the backend and back."""

import json
from typing import Any

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import said, turns_over

pytestmark = pytest.mark.proves("MCP-task-mode", "CTL-mcp")

WORKSPACES = "mcp list_workspaces {}"


async def results(house: Kandev, session_id: str) -> list[dict[str, Any]]:
    """What the agent got from its tools."""
    lines = await said(house, session_id)
    return [json.loads(line.removeprefix("mcp-result ")) for line in lines if line.startswith("mcp-result")]


async def test_an_agent_lists_the_workspaces_by_its_tools(house: Kandev) -> None:
    _, session_id = await house.session(WORKSPACES)
    async with house.watching(session_id) as events:
        await turns_over(events)
    (result,) = await results(house, session_id)
    names = [one["name"] for one in result["structuredContent"]["workspaces"]]
    assert names == ["Default"]

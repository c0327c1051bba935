"""Real agents call Kandev's tools by their own MCP clients."""

import pytest

from tests.e2e.kandev import Kandev

from .bed import Bed, BedAgent
from .working import begin


@pytest.mark.proves("MCP-task-mode")
async def test_a_real_agent_lists_the_workspaces_by_its_own_mcp_client(
    kandev: Kandev, bed: Bed, real_agent: BedAgent
) -> None:
    work = await begin(kandev, bed, real_agent, "[mcp list_workspaces_kandev {}]")
    async with kandev.watching(work.session_id) as events:
        await work.turn_over(events, 1)
    text = await work.agent_text()
    assert "done:" in text and "Default" in text, text

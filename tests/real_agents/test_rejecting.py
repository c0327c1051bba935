"""A person rejects what a real agent asks for: the agent hears it, and nobody calls it a cancel."""

from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import said

from .bed import Bed, BedAgent
from .working import HONEST, begin

ASKING = ("gemini", "opencode")
"""The agents that ask their client; behind its adapter Codex asks a reviewer of its own."""


@pytest.mark.field("B47")
@pytest.mark.parametrize("real_agent", ASKING, indirect=True)
async def test_a_rejected_edit_is_not_made_and_ends_no_session(
    tmp_path: Path, bed: Bed, real_agent: BedAgent
) -> None:
    async with Kandev(tmp_path / "home", HONEST) as kandev:
        work = await begin(kandev, bed, real_agent, "[write made.txt by-the-agent]", auto_approve=False)
        async with kandev.watching(work.session_id) as events:
            asked = await events.until("session.permission_requested")
            answer = {"session_id": work.session_id, "request_id": asked["request_id"]}
            await kandev.call("permission.respond", {**answer, "rejected": True})
            ended = await work.turn_over(events, 1)
            assert ended["cause"] == "agent", "whatever the agent calls it"
            await work.say("go on")
            await work.turn_over(events, 2)
        assert "echo: go on" in await work.agent_text()
        changes = await kandev.call("session.changes", {"session_id": work.session_id})
        assert changes["files"] == []
        lines = await said(kandev, work.session_id, "system", "status")
        assert [line for line in lines if "cancelled by" in line] == []

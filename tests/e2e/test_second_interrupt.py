"""A second Ctrl-C, while the backend still ends its idle agents, ends running turns too."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.scenes import agent_spoke, marked, turns_over, until_true

SLOW_LADDER = {"KANDEV_TEARDOWN_STDIN_S": "1", "KANDEV_TEARDOWN_TERM_S": "2"}


@pytest.mark.proves("CLI-second-interrupt")
@pytest.mark.field("A03")
async def test_it_ends_running_turns_too(tmp_path: Path) -> None:
    async with Kandev(tmp_path / "home", SLOW_LADDER) as kandev:
        idle = [(await kandev.session(prompt))[1] for prompt in ("say hello", "stubborn")]
        for session_id in idle:
            async with kandev.watching(session_id) as events:
                await turns_over(events)
        _, busy = await kandev.session("spawn 600\nsleep 600")
        async with kandev.watching(busy) as events:
            await agent_spoke(events)
        assert kandev.process is not None and len(marked(busy)) == 2
        os.kill(kandev.process.pid, signal.SIGINT)
        await until_true(lambda: not marked(idle[0]), "the first idle agent is ended")
        assert marked(idle[1]), "and the backend waits for the other one"
        assert await asyncio.wait_for(kandev.stop(signal.SIGINT), 30) == 0
        assert not marked(busy)
        assert "under agentctl" not in (kandev.home / "backend.err").read_text()

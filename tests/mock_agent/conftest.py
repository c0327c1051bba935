"""Fixtures of the mock agent's tests: a working directory, a running agent, a session in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.mock_agent.driver import Peer


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """An empty working directory whose parent is the test's own."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
async def peer(work: Path) -> AsyncIterator[Peer]:
    """A running mock agent that has been initialized."""
    async with Peer.start(work) as peer:
        await peer.initialize()
        yield peer


@pytest.fixture
async def session(peer: Peer, work: Path) -> str:
    """The id of a new session of that agent."""
    return await peer.new(work)

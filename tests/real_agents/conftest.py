"""Fixtures of the real agents' bed: the scripted model, the bed, and the check that nothing is left."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev

from . import processes
from .bed import Bed, BedAgent, NotInstalledError
from .launch import LAUNCHES
from .model import ScriptedModel
from .working import HONEST


@pytest.fixture
async def model(tmp_path: Path) -> AsyncIterator[ScriptedModel]:
    """A scripted model server; its request log is requests.jsonl in the test's folder."""
    async with ScriptedModel(tmp_path / "requests.jsonl") as server:
        yield server


@pytest.fixture
def bed(tmp_path: Path, model: ScriptedModel) -> Iterator[Bed]:
    """A bed below the test's folder. Fails the test when a process of one of its agents is left behind."""
    bed = Bed(tmp_path / "agents", model.base_url)
    yield bed
    left = [process for agent in bed.agents for process in processes.kill_marked(agent.mark)]
    assert not left, f"The test left processes of its agents behind: {left}"


@pytest.fixture(params=sorted(LAUNCHES))
def real_agent(request: pytest.FixtureRequest, bed: Bed) -> BedAgent:
    """Each real agent in turn, ready to start; skips the test where it is not installed."""
    try:
        return bed.agent(str(request.param))
    except NotInstalledError as missing:
        pytest.skip(str(missing))


@pytest.fixture
async def kandev(tmp_path: Path, bed: Bed) -> AsyncIterator[Kandev]:
    """With the deadlines that real agents need. Ended before the bed looks for what is left."""
    async with Kandev(tmp_path / "home", HONEST) as running:
        yield running

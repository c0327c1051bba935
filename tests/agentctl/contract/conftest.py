"""The contract suite's world: every test runs on the simulated agentctl and on the real one."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agentctl.contract.worlds import World, world_of


@pytest.fixture(params=["simulated", "real"])
async def world(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    async with world_of(request.param, tmp_path) as one:
        yield one

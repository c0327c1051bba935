"""One agentctl per test, in this event loop."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.agentctl.server.hosts import Host, host_in


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with host_in(tmp_path / "home") as one:
        yield one

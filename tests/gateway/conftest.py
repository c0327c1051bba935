"""A backend for the tests of the doors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.house import House, Socket, dial, open_house, serving
from tests.gateway.queue_line import Line


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as opened:
        yield opened


@pytest.fixture
async def address(house: House) -> AsyncIterator[str]:
    """Host and port of a real server in front of the house."""
    async with serving(house.app) as served:
        yield served


@pytest.fixture
async def client(address: str) -> AsyncIterator[Socket]:
    async with dial(address) as socket:
        yield socket


@pytest.fixture
async def busy(house: House) -> Line:
    """A session whose agent works for long."""
    task, session = await house.started("sleep 30")
    await house.until(session, "RUNNING")
    return Line(house, task["id"], session)


@pytest.fixture
async def idle(house: House) -> Line:
    """A session whose agent has nothing to do."""
    task, session = await house.started("say hello")
    await house.until(session, "WAITING_FOR_INPUT")
    return Line(house, task["id"], session)

"""A backend for the tests of the doors."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.house import House, Socket, dial, open_house, serving


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

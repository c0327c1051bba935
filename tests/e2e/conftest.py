"""A running Kandev: one for each test that asks for `kandev`, one for a whole module behind `house`."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev


@pytest.fixture
async def kandev(tmp_path: Path) -> AsyncIterator[Kandev]:
    """Backend, agentctl on demand, mock agent profile; a home of its own."""
    async with Kandev(tmp_path / "home") as running:
        yield running


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kandev]:
    """One Kandev for a module's independent tests, with agentctl up before the first of them."""
    folder = tmp_path_factory.mktemp("standing")
    (folder / "user").mkdir()
    running = Kandev(folder / "home", {"HOME": str(folder / "user")})

    async def begin() -> None:
        await running.start()
        guest = Kandev.guest(running)
        await guest.session()
        await guest.tidy()

    asyncio.run(begin())
    yield running
    asyncio.run(running.end())


@pytest.fixture
async def house(standing: Kandev) -> AsyncIterator[Kandev]:
    """The module's Kandev with an empty board: whatever the test makes is taken away behind it."""
    guest = Kandev.guest(standing)
    yield guest
    await guest.tidy()

"""A running Kandev: one for each attack that asks for `kandev`, one for a whole module behind `house`."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.attacks.steps import QUICK
from tests.e2e.conftest import house, kandev
from tests.e2e.kandev import Kandev

__all__ = ["house", "kandev"]


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kandev]:
    """One Kandev for a module's independent tests, which waits for no agent for long."""
    running = Kandev(tmp_path_factory.mktemp("standing") / "home", QUICK)

    async def begin() -> None:
        await running.start()
        guest = Kandev.guest(running)
        await guest.session()
        await guest.tidy()

    asyncio.run(begin())
    yield running
    asyncio.run(running.end())

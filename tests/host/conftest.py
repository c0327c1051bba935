"""Disks for the tests of this folder, and Kandevs whose home lies on them."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.e2e.kandev import Kandev
from tests.host import disks


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[disks.Disk]:
    """A tmpfs."""
    with disks.memory(tmp_path / "disk") as mounted:
        yield mounted


@pytest.fixture
def medium(tmp_path: Path) -> Iterator[disks.Image]:
    """An ext4 that can be frozen, and fail."""
    with disks.image(tmp_path / "disk") as mounted:
        yield mounted


@pytest.fixture
async def kandev(disk: disks.Disk, tmp_path: Path) -> AsyncIterator[Kandev]:
    """Its home is all that lies on the disk."""
    async with on(disk, tmp_path) as running:
        yield running


def on(disk: disks.Disk, beside: Path, environment: dict[str, str] | None = None) -> Kandev:
    """Not started yet. What it logs lies `beside` the disk."""
    shrunk = {"KANDEV_COMMIT_S": "2", **(environment or {})}
    return Kandev(disk.path / "home", shrunk, errors=beside / "backend.err")

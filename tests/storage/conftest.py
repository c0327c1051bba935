"""The stores under test: on a file with threads, and in memory inline."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kandev.ports.store import Store
from kandev.storage.opening import open_inline, open_store
from tests.storage.rows import Listener, board


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
async def on_file(tmp_path: Path, listener: Listener) -> AsyncIterator[Store]:
    store = await open_store(str(tmp_path / "kandev.db"), publisher=listener, commit_s=20)
    yield store
    await store.close()


@pytest.fixture
async def in_memory(listener: Listener) -> AsyncIterator[Store]:
    store = open_inline(listener)
    yield store
    await store.close()


@pytest.fixture(params=["on_file", "in_memory"])
def empty(request: pytest.FixtureRequest) -> Store:
    """A store without rows."""
    store: Store = request.getfixturevalue(request.param)
    return store


@pytest.fixture
async def store(empty: Store) -> Store:
    """A store with a board, a task and a session."""
    await empty.write(board)
    return empty

"""Files beside a database under names that mean something to whoever opens it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kandev.storage.copies import CopyFailed, copy
from kandev.storage.faults import DatabaseRefused
from kandev.storage.opening import open_store
from kandev.storage.restoring import plan_of
from kandev.storage.schema import HEAD
from tests.storage.rows import Listener
from tests.storage.schemas import lay


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return lay(HEAD, tmp_path / "home" / "kandev.db")


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal", ".restore", ".restore.begun"])
def test_a_copy_is_not_made_under_a_name_that_belongs_to_the_database(path: Path, suffix: str) -> None:
    target = path.with_name(path.name + suffix)
    with pytest.raises(CopyFailed, match="belongs to the database"):
        copy(path, target, busy_s=1)
    assert not target.exists()


@pytest.mark.parametrize("plan", [b"", b"\xff\xfe", b"[]", b'{"kept": 1}', b'{"kept": "../../elsewhere.db"}'])
async def test_a_plan_of_a_restore_that_is_none_is_one_sentence(path: Path, plan: bytes) -> None:
    plan_of(path).write_bytes(plan)
    before = path.read_bytes()
    with pytest.raises(DatabaseRefused, match=r"kandev\.db\.restore"):
        await open_store(str(path), publisher=Listener(), commit_s=5)
    assert path.read_bytes() == before

"""A copy that does more than hold rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kandev.storage.copies import copy
from kandev.storage.examination import check
from kandev.storage.faults import DatabaseRefused
from kandev.storage.opening import open_store
from kandev.storage.restoring import restore
from kandev.storage.schema import HEAD
from tests.storage.rows import Listener
from tests.storage.schemas import lay


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return lay(HEAD, tmp_path / "home" / "kandev.db")


@pytest.mark.parametrize(
    "trigger",
    [
        "CREATE TRIGGER twice AFTER INSERT ON notes BEGIN DELETE FROM messages; END",
        "CREATE TRIGGER never BEFORE INSERT ON Messages BEGIN SELECT RAISE(IGNORE); END",
    ],
)
def test_a_copy_with_a_trigger_on_our_tables_is_not_sound_and_not_taken(
    path: Path, tmp_path: Path, trigger: str
) -> None:
    made = tmp_path / "copy.db"
    copy(path, made, busy_s=1)
    with closing(sqlite3.connect(made)) as database:
        database.execute(trigger)
    assert any("trigger" in problem for problem in check(made, busy_s=1).problems)
    before = path.read_bytes()
    with pytest.raises(DatabaseRefused, match="trigger"):
        restore(made, path, busy_s=1)
    assert path.read_bytes() == before


async def test_a_start_on_a_database_with_a_trigger_is_refused(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TRIGGER x AFTER INSERT ON notes BEGIN DELETE FROM messages; END")
    with pytest.raises(DatabaseRefused, match="trigger"):
        await open_store(str(path), publisher=Listener(), commit_s=5)

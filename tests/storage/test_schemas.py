"""A database of any version that was ever released becomes one of the newest, with all that was in it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kandev.storage import schema
from kandev.storage.copies import copies_of
from kandev.storage.opening import open_store
from kandev.storage.sql.engine import look
from tests.storage.rows import Listener
from tests.storage.schemas import FOLDER, dump, lay, revisions
from tests.storage.schemas.reading import everything, missing


async def _read(path: Path) -> dict[str, Any]:
    store = await open_store(str(path), publisher=Listener(), commit_s=20)
    try:
        return await store.read(everything)
    finally:
        await store.close()


def test_every_version_has_a_fixture() -> None:
    assert revisions() == sorted(schema.REVISIONS), "python -m tests.storage.schemas writes the newest one"
    assert [r for r in revisions() if not (FOLDER / f"{r}.json").is_file()] == []


@pytest.mark.parametrize("revision", revisions())
def test_a_fixture_is_what_its_version_says(revision: str, tmp_path: Path) -> None:
    path = lay(revision, tmp_path / "kandev.db")
    with look(path, busy_s=1) as connection:
        assert schema.version(connection, "it") == revision
        assert schema.mismatches(connection, revision) == []
        assert schema.dangling(connection) == []


@pytest.mark.parametrize("revision", revisions())
def test_a_fixture_has_rows_of_every_kind(revision: str, tmp_path: Path) -> None:
    path = lay(revision, tmp_path / "kandev.db")
    with closing(sqlite3.connect(path)) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        counts = {name: database.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables}
    assert [name for name, count in counts.items() if not count] == []


@pytest.mark.proves("SURVIVE-upgrade", "STORE-upgrade-every-version")
@pytest.mark.parametrize("revision", revisions())
async def test_a_database_of_an_earlier_version_is_upgraded_with_all_that_was_in_it(
    revision: str, tmp_path: Path
) -> None:
    path = lay(revision, tmp_path / "kandev.db")
    was = json.loads((FOLDER / f"{revision}.json").read_text(encoding="utf-8"))
    assert missing(was, await _read(path)) == []
    with look(path, busy_s=1) as connection:
        assert schema.version(connection, "it") == schema.HEAD
        assert schema.mismatches(connection, schema.HEAD) == []
        assert schema.dangling(connection) == []
    (tmp_path / "again").mkdir()
    earlier = [dump(copy) for copy in copies_of(path)]
    assert earlier == ([] if revision == schema.HEAD else [dump(lay(revision, tmp_path / "again" / "k.db"))])
    assert missing(was, await _read(path)) == [], "and a second start changes nothing"
    assert len(copies_of(path)) == len(earlier)


def test_what_is_no_longer_read_as_it_was_is_told_by_its_place() -> None:
    was = {"tasks": [{"id": "t1", "title": "a"}], "epoch": 1}
    assert missing(was, {"tasks": [{"id": "t1", "title": "a", "later": 0}], "epoch": 1}) == []
    assert missing(was, {"tasks": [{"id": "t1", "title": "b"}]}) == [
        "/epoch is gone",
        "/tasks/0/title was 'a' and is 'b'",
    ]
    assert len(missing(was, {"tasks": [], "epoch": 1})) == 1

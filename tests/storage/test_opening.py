"""A database that cannot be ours is refused with one sentence, and nothing in it is changed."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from kandev.core.errors import StoreFault
from kandev.storage.examination import check
from kandev.storage.faults import DatabaseRefused, DatabaseTooNew
from kandev.storage.opening import database_path, open_store
from tests.storage.killing import killed_at_every_step
from tests.storage.rows import Listener


async def _opened(path: Path | str) -> None:
    store = await open_store(str(path), publisher=Listener(), commit_s=0.2)
    await store.close()


async def _refused(path: Path | str) -> str:
    with pytest.raises(StoreFault) as caught:
        await _opened(path)
    sentence = caught.value.message
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def _content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


async def _made(path: Path) -> None:
    await _opened(path)


def _as_newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()


@pytest.mark.proves("BAD-newer-database")
async def test_a_database_newer_than_the_program_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "kandev.db"
    await _made(path)
    _as_newer(path)
    before = _content(tmp_path)
    sentence = await _refused(path)
    assert str(path) in sentence
    assert "newer Kandev" in sentence
    assert _content(tmp_path)["kandev.db"] == before["kandev.db"]
    with pytest.raises(DatabaseTooNew):
        await _opened(path)


async def test_what_a_killed_newer_program_left_in_its_log_is_seen_and_unchanged(tmp_path: Path) -> None:
    made = tmp_path / "made.db"
    await _made(made)
    newer = sqlite3.connect(made, isolation_level=None)
    newer.execute("UPDATE alembic_version SET version_num = '9999'")
    killed = tmp_path / "killed"
    killed.mkdir()
    for suffix in ("", "-wal"):
        (killed / f"kandev.db{suffix}").write_bytes((tmp_path / f"made.db{suffix}").read_bytes())
    newer.close()
    before = _content(killed)
    assert before["kandev.db-wal"]
    assert "newer Kandev" in await _refused(killed / "kandev.db")
    after = _content(killed)
    assert {name: after[name] for name in before} == before


def _other_database(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE recipes (name TEXT)")
    database.close()


def _text(path: Path) -> None:
    path.write_text("These are my notes.\n" * 100)


def _short(path: Path) -> None:
    path.write_bytes(b"SQL")


def _broken(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096)


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (_other_database, "another program"),
        (_text, "no SQLite database"),
        (_short, "no SQLite database"),
        (_broken, "damaged"),
        (_folder, "folder"),
        (_pipe, "no ordinary file"),
    ],
)
async def test_what_is_no_database_of_ours_is_refused_and_untouched(
    tmp_path: Path, make: Callable[[Path], None], word: str
) -> None:
    path = tmp_path / "thing"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    sentence = await _refused(path)
    assert str(path) in sentence
    assert word in sentence
    assert [file.name for file in tmp_path.iterdir()] == ["thing"]
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize("place", ["missing/kandev.db", "file/kandev.db"])
async def test_a_folder_that_is_none_is_named(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / place) in await _refused(tmp_path / place)


async def test_a_place_where_nobody_may_write_is_named() -> None:
    assert "/proc/kandev.db cannot be opened" in await _refused("/proc/kandev.db")


async def test_a_file_that_may_not_be_written_is_named_and_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kandev.db"
    await _made(path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert "cannot be written" in await _refused(path)
    assert path.read_bytes() == before


async def test_a_locked_database_is_refused_and_named(tmp_path: Path) -> None:
    path = tmp_path / "kandev.db"
    await _made(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    sentence = await _refused(path)
    other.close()
    assert str(path) in sentence
    assert "locked" in sentence


async def test_a_new_database_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    await _made(tmp_path / "kandev.db")
    assert stat.S_IMODE((tmp_path / "kandev.db").stat().st_mode) == 0o600


async def test_a_strange_name_is_fine(tmp_path: Path) -> None:
    path = tmp_path / "50% of it? é#.db"
    await _made(path)
    await _made(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


async def test_behind_a_link_the_database_lies_where_the_link_leads(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "kandev.db").symlink_to(tmp_path / "disk" / "real.db")
    await _made(tmp_path / "kandev.db")
    await _made(tmp_path / "kandev.db")
    assert [file.name for file in (tmp_path / "disk").iterdir()] == ["real.db"]
    assert (tmp_path / "kandev.db").is_symlink()


def test_a_kill_at_any_step_of_a_first_start_leaves_a_whole_database_or_none(tmp_path: Path) -> None:
    path = tmp_path / "home" / "kandev.db"

    def lay() -> None:
        shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir()

    def look() -> None:
        assert not path.exists() or check(path, busy_s=1).problems == []

    def make() -> None:
        asyncio.run(_made(path))

    assert killed_at_every_step(make, lay, look) > 10
    lay()
    make()
    assert [file.name for file in path.parent.iterdir()] == ["kandev.db"]


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("postgresql://localhost/kandev", "PostgreSQL is not built yet"),
        ("postgres+psycopg://localhost/kandev", "PostgreSQL is not built yet"),
        ("mysql://localhost/kandev", "mysql://"),
        ("sqlite://", "names no file"),
        (":memory:", "names no file"),
        ("", "names no file"),
    ],
)
async def test_what_names_no_file_for_sqlite_is_refused(url: str, word: str) -> None:
    assert word in await _refused(url)


def test_a_sqlite_url_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert database_path("sqlite:////var/a%20b.db") == Path("/var/a b.db")
    assert database_path("sqlite:///b.db") == tmp_path / "b.db" == database_path("b.db")
    with pytest.raises(DatabaseRefused):
        database_path("sqlite://host/b.db")

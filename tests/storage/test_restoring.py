"""Going back to a copy loses nothing: neither the copy, nor the database of before, nor both to a kill."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kandev.runtime.restored import NOTE
from kandev.storage import restoring
from kandev.storage.copies import copies_of, copy
from kandev.storage.examination import check
from kandev.storage.faults import DatabaseRefused
from kandev.storage.files import beside
from kandev.storage.opening import open_store
from kandev.storage.restoring import finish, plan_of, restore
from kandev.storage.schema import HEAD
from tests.storage import damaging
from tests.storage.chain import BEFORE, chained, lay_before, workspaces
from tests.storage.killing import killed_at_every_step
from tests.storage.rows import Listener
from tests.storage.schemas import lay


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database whose last commits are in its log, as a killed program leaves it."""
    (tmp_path / "home").mkdir()
    return killed(tmp_path, tmp_path / "home" / "kandev.db")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A copy that knows less."""
    lay(HEAD, tmp_path / "early.db")
    copy(tmp_path / "early.db", tmp_path / "copy.db", busy_s=1)
    (tmp_path / "early.db").unlink()
    return tmp_path / "copy.db"


def killed(folder: Path, path: Path) -> Path:
    made = lay(HEAD, folder / "made.db")
    writing = sqlite3.connect(made, isolation_level=None)
    writing.execute("INSERT INTO notes VALUES ('late', 'x')")
    for suffix in ("", "-wal"):
        shutil.copyfile(beside(made, suffix), beside(path, suffix))
    writing.close()
    made.unlink()
    return path


def notes(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as database:
        return dict(database.execute("SELECT key, value FROM notes"))


def is_early(path: Path) -> bool:
    """Whether it is the copy, marked as such."""
    found = notes(path)
    return "late" not in found and bool(found[NOTE])


def _content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.mark.proves("STORE-restore")
async def test_the_copy_takes_the_place_and_what_was_there_is_kept_with_its_log(
    path: Path, saved: Path
) -> None:
    before, copied = _content(path.parent), saved.read_bytes()
    restored = restore(saved, path, busy_s=1)
    assert restored.kept is not None
    assert restored.kept.name.startswith("kandev-replaced-2")
    kept = {"": before["kandev.db"], "-wal": before["kandev.db-wal"]}
    assert {suffix: beside(restored.kept, suffix).read_bytes() for suffix in kept} == kept
    assert is_early(path)
    assert notes(restored.kept)["late"] == "x"
    assert saved.read_bytes() == copied
    assert (restored.revision, path.stat().st_mode & 0o777) == (HEAD, 0o600)
    store = await open_store(str(path), publisher=Listener(), commit_s=5)
    await store.close()
    assert check(path, busy_s=1).problems == []


@pytest.mark.proves("STORE-restore")
def test_the_database_of_before_is_a_copy_that_one_can_go_back_to(path: Path, saved: Path) -> None:
    kept = restore(saved, path, busy_s=1).kept
    assert kept is not None
    again = restore(kept, path, busy_s=1)
    assert notes(path)["late"] == "x"
    assert again.kept is not None
    assert is_early(again.kept)


def test_where_there_was_none_the_copy_becomes_the_database(tmp_path: Path, saved: Path) -> None:
    (tmp_path / "new").mkdir()
    path = tmp_path / "new" / "kandev.db"
    assert restore(saved, path, busy_s=1).kept is None
    assert is_early(path)
    assert [file.name for file in path.parent.iterdir() if not file.name.startswith("kandev.db")] == []


@pytest.mark.proves("STORE-restore")
def test_a_damaged_database_is_put_aside_bit_for_bit(path: Path, saved: Path) -> None:
    damaging.bad_beginning(path)
    before = path.read_bytes()
    kept = restore(saved, path, busy_s=1).kept
    assert kept is not None
    assert kept.read_bytes() == before
    assert is_early(path)


def _newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")


def _of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE recipes (name TEXT)")


def _empty(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 1")


def _dangling(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE repositories SET workspace_id = 'nobody'")


def _no_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE turns")


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.proves("STORE-restore")
@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (damaging.damage, "damaged"),
        (damaging.cut, "damaged"),
        (damaging.index_without_a_row, "damaged"),
        (damaging.bad_beginning, "no SQLite database"),
        (damaging.cut_to_nothing, "is empty"),
        (_newer, "newer Kandev"),
        (_of_another_program, "another program"),
        (_empty, "it holds no tables"),
        (_dangling, "that is gone"),
        (_no_table, "the table turns is missing"),
        (_folder, "is a folder"),
    ],
)
def test_what_is_no_sound_copy_is_refused_and_nothing_changes(
    path: Path, saved: Path, spoil: Callable[[Path], None], word: str
) -> None:
    spoil(saved)
    before = _content(path.parent)
    with pytest.raises(DatabaseRefused, match=word) as refused:
        restore(saved, path, busy_s=1)
    assert str(saved) in refused.value.message
    assert "\n" not in refused.value.message
    assert _content(path.parent) == before


def test_the_present_database_is_no_copy_of_itself(path: Path) -> None:
    before = _content(path.parent)
    with pytest.raises(DatabaseRefused, match="is the present database"):
        restore(path, path, busy_s=1)
    assert _content(path.parent) == before


async def test_a_copy_of_an_earlier_version_is_taken_and_upgraded_by_the_next_start(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chained(monkeypatch, tmp_path / "migrations")
    early = lay_before(tmp_path / "early.db")
    assert restore(early, path, busy_s=1).revision == BEFORE
    store = await open_store(str(path), publisher=Listener(), commit_s=5)
    await store.close()
    assert workspaces(path) == ["w1", "w2"]
    assert check(path, busy_s=1).revision == HEAD
    assert len(copies_of(path)) == 1


HOLDS_IT = """
import sqlite3, sys
database = sqlite3.connect(sys.argv[1])
database.execute("SELECT count(*) FROM tasks").fetchall()
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.mark.proves("STORE-restore-alone")
def test_a_database_that_another_program_has_open_is_left_alone(path: Path, saved: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS_IT, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdin is not None
        assert other.stdout.readline() == "ready\n"
        before = _content(path.parent)
        with pytest.raises(DatabaseRefused, match=f"in use by process {other.pid}"):
            restore(saved, path, busy_s=1)
        assert _content(path.parent) == before
        other.stdin.close()
    restore(saved, path, busy_s=1)
    assert is_early(path)


@pytest.mark.proves("STORE-restore-killed")
@pytest.mark.parametrize("links", ["with second names", "without second names"])
def test_a_restore_that_is_killed_at_any_step_is_done_or_not_begun(
    path: Path, saved: Path, tmp_path: Path, links: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pristine = _content(path.parent)
    if links == "without second names":
        monkeypatch.setattr(os, "link", lambda *_, **__: os.close(-1))
        monkeypatch.setattr("kandev.storage.files.CANNOT_LINK", {9})
    seen = {"before": 0, "behind": 0}

    def lay() -> None:
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        for name, data in pristine.items():
            (path.parent / name).write_bytes(data)

    def look() -> None:
        if links == "with second names":
            assert path.exists(), "at no moment is there no database"
        finish(path)
        assert not plan_of(path).exists()
        kept = list(path.parent.glob("kandev-replaced-*.db"))
        if NOTE in notes(path):
            assert is_early(path)
            seen["behind"] += 1
            assert [notes(file)["late"] for file in kept] == ["x"]
        else:
            seen["before"] += 1
            assert (notes(path)["late"], kept) == ("x", [])
        assert check(path, busy_s=1).problems == []
        assert check(saved, busy_s=1).problems == []

    assert killed_at_every_step(lambda: _restored(saved, path), lay, look) > 20
    assert min(seen.values()) > 5


def _restored(saved: Path, path: Path) -> None:
    restore(saved, path, busy_s=1)


@pytest.mark.proves("STORE-restore-killed")
async def test_the_next_start_finishes_a_restore_that_was_killed(
    path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(restoring, "finish", lambda database: None)
        restore(saved, path, busy_s=1)
    assert plan_of(path).exists()
    assert notes(path)["late"] == "x"
    store = await open_store(str(path), publisher=Listener(), commit_s=5)
    assert await store.read(lambda tx: (tx.note("late"), bool(tx.note(NOTE)))) == (None, True)
    await store.close()
    (kept,) = path.parent.glob("kandev-replaced-*.db")
    assert notes(kept)["late"] == "x"


def test_a_copy_on_a_disk_that_cannot_be_written_is_taken(path: Path, saved: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(saved)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    (tmp_path / "medium").mkdir()
    shutil.move(saved, tmp_path / "medium" / "copy.db")
    before = _content(tmp_path / "medium")
    restore(tmp_path / "medium" / "copy.db", path, busy_s=1)
    assert _content(tmp_path / "medium") == before, "not even a file beside it is made"
    assert is_early(path)


def test_who_opens_the_database_while_the_copy_is_read_is_not_robbed_of_it(
    path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backend of another home that has its database here: this home's lock does not keep it out."""
    open_in_another = (
        "import sqlite3, sys\n"
        "held = sqlite3.connect(sys.argv[1])\n"
        "held.execute('SELECT count(*) FROM notes').fetchall()\n"
        "print('open', flush=True)\n"
        "sys.stdin.read()\n"
    )
    others: list[subprocess.Popen[str]] = []
    sound = restoring._sound

    def opened_meanwhile(partial: Path, copied: Path) -> str:
        command = [sys.executable, "-c", open_in_another, str(path)]
        others.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        assert others[0].stdout is not None
        assert others[0].stdout.readline() == "open\n"
        return sound(partial, copied)

    monkeypatch.setattr(restoring, "_sound", opened_meanwhile)
    try:
        with pytest.raises(DatabaseRefused, match="is in use by process"):
            restore(saved, path, busy_s=1)
    finally:
        others[0].communicate()
    assert (notes(path)["late"], plan_of(path).exists()) == ("x", False)

"""A copy of a database is whole, sound and one file, whatever happens to the database meanwhile."""

from __future__ import annotations

import itertools
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kandev.storage import copies
from kandev.storage.copies import CopyFailed, copies_of, copy, drop_stale, free_name, ready_folder
from kandev.storage.examination import check
from kandev.storage.schema import HEAD
from tests.storage.damaging import damage
from tests.storage.schemas import dump, dump_of_copy, lay


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return lay(HEAD, tmp_path / "home" / "kandev.db")


@contextmanager
def writing(path: Path) -> Iterator[threading.Semaphore]:
    """Somebody writes pairs of rows as fast as it goes, each counted."""
    end, pairs = threading.Event(), threading.Semaphore(0)

    def write() -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=20)) as database:
            for number in itertools.takewhile(lambda _: not end.is_set(), itertools.count()):
                database.execute("BEGIN IMMEDIATE")
                for half in ("left", "right"):
                    database.execute("INSERT INTO notes VALUES (?, ?)", (f"{half} {number}", "x" * 5_000))
                database.execute("COMMIT")
                pairs.release()

    thread = threading.Thread(target=write, name="writer")
    thread.start()
    try:
        yield pairs
    finally:
        end.set()
        thread.join()


@pytest.mark.proves("STORE-backup")
def test_a_copy_that_is_made_while_somebody_writes_is_one_moment_of_it(path: Path, tmp_path: Path) -> None:
    with writing(path) as pairs:
        for number in range(5):
            assert all(pairs.acquire(timeout=20) for _ in range(20))
            copy(path, tmp_path / f"{number}.db", busy_s=5)
    for number in range(5):
        made = tmp_path / f"{number}.db"
        assert check(made, busy_s=1).problems == []
        with closing(sqlite3.connect(made)) as database:
            halves = dict(database.execute("SELECT substr(key, 1, 4), count(*) FROM notes GROUP BY 1"))
        assert halves["left"] == halves["righ"] >= 20 * (number + 1)


def test_a_copy_needs_no_log_and_is_for_its_owner_only(path: Path, tmp_path: Path) -> None:
    made = tmp_path / "copy.db"
    copy(path, made, busy_s=1)
    assert dump_of_copy(made) == dump(path)
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    before = made.read_bytes()
    assert check(made, busy_s=1).problems == []
    assert (made.read_bytes(), sorted(file.name for file in tmp_path.iterdir())) == (
        before,
        ["copy.db", "home"],
    )


@pytest.mark.proves("STORE-backup")
@pytest.mark.parametrize("there", ["copy.db", "copy.db-wal", "copy.db-journal"])
def test_a_copy_takes_nobodys_place_and_no_log_of_another(path: Path, tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(CopyFailed, match=f"{there} is there already"):
        copy(path, tmp_path / "copy.db", busy_s=1)
    assert (tmp_path / there).read_text() == "mine"
    assert sorted(file.name for file in tmp_path.iterdir()) == [there, "home"]


def test_a_name_that_is_taken_while_the_copy_is_made_is_left_to_who_took_it(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = copies._publish

    def late(partial: Path, target: Path) -> None:
        target.write_text("faster")
        publish(partial, target)

    monkeypatch.setattr(copies, "_publish", late)
    with pytest.raises(CopyFailed, match="is there already"):
        copy(path, tmp_path / "copy.db", busy_s=1)
    assert (tmp_path / "copy.db").read_text() == "faster"


def test_on_a_disk_without_second_names_a_copy_is_made_all_the_same(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    copy(path, tmp_path / "copy.db", busy_s=1)
    assert dump_of_copy(tmp_path / "copy.db") == dump(path)
    with pytest.raises(CopyFailed, match="is there already"):
        copy(path, tmp_path / "copy.db", busy_s=1)


@pytest.mark.parametrize("place", ["missing/copy.db", "file/copy.db"])
def test_a_place_that_cannot_be_is_named(path: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CopyFailed, match=str(tmp_path / place.partition("/")[0])):
        copy(path, tmp_path / place, busy_s=1)


def test_a_damaged_database_is_not_copied_as_if_it_were_sound(path: Path, tmp_path: Path) -> None:
    damage(path)
    with pytest.raises(CopyFailed, match="damaged"):
        copy(path, tmp_path / "copy.db", busy_s=1)
    assert [file.name for file in tmp_path.iterdir()] == ["home"]


def test_a_locked_database_is_waited_for_no_longer_than_said(path: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(CopyFailed, match="locked"):
            copy(path, tmp_path / "copy.db", busy_s=0.05)


def test_copies_are_listed_by_their_time_the_newest_first(path: Path) -> None:
    folder = ready_folder(path)
    names = [
        "kandev-0001-20260102T000000Z.db",
        "kandev-20260101T000000Z-10.db",
        "kandev-20260101T000000Z-2.db",
        "kandev-20260101T000000Z.db",
    ]
    for name in (*names, "kandev-mine.db", "other-20260101T000000Z.db", ".kandev.xxxxxxxx.partial"):
        (folder / name).touch()
    assert [found.name for found in copies_of(path)] == names


def test_a_name_of_now_is_free(tmp_path: Path) -> None:
    first = free_name(tmp_path, "kandev")
    first.touch()
    second = free_name(tmp_path, "kandev")
    assert first != second
    assert not second.exists()


def test_what_a_killed_program_left_half_made_goes_after_a_day(path: Path) -> None:
    folder = ready_folder(path)
    old, young = folder / ".kandev.aaaaaaaa.partial", folder / ".kandev.bbbbbbbb.partial"
    for file in (old, young):
        file.touch()
    os.utime(old, (0, 0))
    ready_folder(path)
    assert sorted(folder.iterdir()) == [young]


def test_what_another_command_takes_away_meanwhile_is_no_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two backups at once look at each other's half-made copies."""
    (tmp_path / ".kandev.xxxxxxxx.partial").touch()
    real = Path.stat

    def gone(self: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        if self.name.endswith(".partial"):
            self.unlink(missing_ok=True)
        return real(self, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", gone)
    drop_stale(tmp_path)


def test_what_is_not_ours_stays_however_old_it_is(tmp_path: Path) -> None:
    """A database may lie in a folder with other things."""
    other, folder = tmp_path / ".film.mkv.partial", tmp_path / ".rsync.partial"
    other.write_text("half of a film")
    folder.mkdir()
    for each in (other, folder):
        os.utime(each, (0, 0))
    drop_stale(tmp_path)
    assert (other.read_text(), folder.is_dir()) == ("half of a film", True)

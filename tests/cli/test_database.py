"""`kandev db` copies, restores and checks a home's database, with one sentence for what cannot be."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kandev.home import AGENTCTL, BACKEND, locked
from kandev.storage.restoring import plan_of
from kandev.storage.schema import HEAD
from tests.cli.conftest import Kandev
from tests.storage import damaging
from tests.storage.schemas import dump, dump_of_copy, lay


@pytest.fixture
def path(kandev: Kandev) -> Path:
    """The home's database."""
    kandev.home.mkdir()
    return lay(HEAD, kandev.home / "kandev.db")


@pytest.fixture
def saved(path: Path, kandev: Kandev) -> Path:
    """A copy of it, made before a row came."""
    saved = Path(kandev("db", "backup").out.strip())
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO notes VALUES ('late', 'x')")
    return saved


def notes(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as database:
        return {key for (key,) in database.execute("SELECT key FROM notes")}


def sentence(error: str) -> str:
    """What stands on stderr, which is one."""
    assert error.startswith("kandev: ")
    assert error.endswith(".\n")
    assert error.count("\n") == 1
    return error


@pytest.mark.proves("STORE-backup")
def test_a_backup_says_where_the_copy_is(kandev: Kandev, path: Path, tmp_path: Path) -> None:
    ran = kandev("db", "backup")
    made = Path(ran.out.strip())
    assert (ran.code, made.parent, made.name[:9]) == (0, kandev.home / "backups", "kandev-20"), ran
    assert dump_of_copy(made) == dump(path)
    chosen = tmp_path / "chosen.db"
    ran = kandev("db", "backup", str(chosen), "--json")
    assert ran.json == {"path": str(chosen), "revision": HEAD, "bytes": chosen.stat().st_size}


@pytest.mark.proves("STORE-backup")
def test_a_backup_overwrites_nothing(kandev: Kandev, path: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    ran = kandev("db", "backup", str(tmp_path / "there"))
    assert (ran.code, ran.out) == (1, "")
    assert "is there already" in sentence(ran.err)
    assert (tmp_path / "there").read_text() == "mine"


def test_a_home_without_a_database_is_named_and_not_made(kandev: Kandev) -> None:
    for words in (["backup"], ["check"]):
        ran = kandev("db", *words)
        assert (ran.code, str(kandev.home / "kandev.db") in sentence(ran.err)) == (1, True)
    assert not kandev.home.exists()


@pytest.mark.proves("STORE-check")
def test_a_sound_database_is_called_so(kandev: Kandev, path: Path, saved: Path) -> None:
    ran = kandev("db", "check")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"{path} is sound: version {HEAD}")
    assert kandev("db", "check", str(saved), "--json").json == {
        "path": str(saved),
        "ok": True,
        "revision": HEAD,
        "problems": [],
    }


@pytest.mark.proves("STORE-check")
def test_what_is_wrong_with_a_database_is_listed_with_the_way_back(
    kandev: Kandev, path: Path, saved: Path
) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript("DROP INDEX uq_sessions_primary; UPDATE repositories SET workspace_id = 'x'")
    before = path.read_bytes()
    ran = kandev("db", "check")
    assert ran.code == 1
    first, second = ran.out.splitlines()
    assert first == f"{path}: the index uq_sessions_primary of sessions is missing."
    assert second.endswith("of repositories belongs to a row of workspaces that is gone.")
    assert saved.name in sentence(ran.err)
    ran = kandev("db", "check", "--json")
    assert (ran.code, ran.json["ok"], len(ran.json["problems"]), ran.err) == (1, False, 2, "")
    assert path.read_bytes() == before


def test_a_damaged_copy_is_told_from_a_damaged_database(kandev: Kandev, path: Path, saved: Path) -> None:
    damaging.damage(saved)
    ran = kandev("db", "check", str(saved))
    assert (ran.code, "take another copy" in sentence(ran.err)) == (1, True)
    assert kandev("db", "check").code == 0


@pytest.mark.proves("STORE-restore")
def test_a_restore_says_what_is_where(kandev: Kandev, path: Path, saved: Path) -> None:
    ran = kandev("db", "restore", str(saved))
    assert (ran.code, ran.err) == (0, "")
    (kept,) = kandev.home.glob("kandev-replaced-*.db")
    assert str(kept) in ran.out
    assert "late" in notes(kept)
    assert notes(path) == notes(saved) | {"restored"}
    again = kandev("db", "restore", str(kept), "--json").json
    assert {name: again[name] for name in ("path", "from", "revision")} == {
        "path": str(path),
        "from": str(kept),
        "revision": HEAD,
    }
    assert Path(again["kept"]).is_file()
    assert "late" in notes(path)


def test_a_restore_makes_a_home_where_there_was_none(kandev: Kandev, tmp_path: Path) -> None:
    saved = lay(HEAD, tmp_path / "saved.db")
    assert kandev("db", "restore", str(tmp_path / "missing.db")).code == 1
    assert not kandev.home.exists()
    ran = kandev("db", "restore", str(saved), "--json")
    assert (ran.code, ran.json["kept"]) == (0, None)
    assert kandev("db", "check").code == 0


@pytest.mark.proves("STORE-restore-alone")
@pytest.mark.parametrize(
    ("lock", "word"), [(BACKEND, "A backend uses the home"), (AGENTCTL, "Agents are still at work")]
)
def test_a_restore_waits_for_nobody_who_uses_the_home(
    kandev: Kandev, path: Path, saved: Path, lock: str, word: str
) -> None:
    before = dump(path)
    with locked(kandev.home, lock):
        ran = kandev("db", "restore", str(saved))
    assert (ran.code, word in sentence(ran.err)) == (1, True)
    assert dump(path) == before
    assert kandev("db", "restore", str(saved)).code == 0


@pytest.mark.proves("STORE-restore")
@pytest.mark.parametrize(
    "spoil", [damaging.damage, damaging.cut_to_nothing, damaging.bad_beginning, Path.unlink]
)
def test_a_copy_that_cannot_be_taken_changes_nothing(
    kandev: Kandev, path: Path, saved: Path, spoil: damaging.Damage
) -> None:
    spoil(saved)
    before = dump(path)
    ran = kandev("db", "restore", str(saved))
    assert (ran.code, str(saved) in sentence(ran.err)) == (1, True)
    assert dump(path) == before
    assert [file.name for file in kandev.home.glob("*replaced*")] == []


def test_a_restore_that_was_cut_short_is_finished_before_anything_else(
    kandev: Kandev, path: Path, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("kandev.storage.restoring.finish", lambda database: None)
        kandev("db", "restore", str(saved))
    assert plan_of(path).exists()
    for words in (["backup"], ["check"]):
        ran = kandev("db", *words)
        assert (ran.code, "was cut short" in sentence(ran.err)) == (1, True)
    assert kandev("db", "restore", str(saved)).code == 0
    assert kandev("db", "check").code == 0


def test_the_database_of_the_settings_is_meant(kandev: Kandev, path: Path, tmp_path: Path) -> None:
    elsewhere = lay(HEAD, tmp_path / "elsewhere.db")
    (kandev.home / "config.toml").write_text(f'database_url = "sqlite:///{elsewhere}"\n')
    assert json.loads(kandev("db", "check", "--json").out)["path"] == str(elsewhere)
    url = f"sqlite:///{path}"
    assert json.loads(kandev("db", "check", "--json", "--database-url", url).out)["path"] == str(path)
    ran = kandev("db", "check", "--database-url", "postgres://somewhere/kandev")
    assert (ran.code, "PostgreSQL is not built yet" in sentence(ran.err)) == (1, True)

"""A look through a database finds everything that is wrong with it, and changes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kandev.storage import schema
from kandev.storage.examination import UNREADABLE_SHOWN, check
from kandev.storage.faults import DatabaseRefused, DatabaseTooNew
from kandev.storage.files import beside
from tests.storage import damaging
from tests.storage.chain import BEFORE, chained, lay_before
from tests.storage.schemas import lay


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return lay(schema.HEAD, tmp_path / "kandev.db")


def changed(sql: str) -> Callable[[Path], None]:
    """Some SQL, with foreign keys not enforced."""

    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as database:
            database.executescript(sql)

    return change


def _content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_a_sound_database_has_no_problems(path: Path) -> None:
    found = check(path, busy_s=1)
    assert (found.revision, found.problems) == (schema.HEAD, [])


@pytest.mark.proves("STORE-check")
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (damaging.damage, ["it is damaged"]),
        (damaging.cut, ["it is damaged"]),
        (damaging.bad_first_page, ["it is damaged"]),
        (damaging.index_without_a_row, ["it is damaged", "index ix_tasks_created_at_id"]),
        (
            changed("UPDATE repositories SET workspace_id = 'nobody'"),
            ["of repositories belongs to a row of workspaces that is gone"],
        ),
        (changed("DROP TABLE turns"), ["the table turns is missing"]),
        (changed("DROP INDEX uq_sessions_primary"), ["the index uq_sessions_primary of sessions is missing"]),
        (
            changed("UPDATE sessions SET value = '{'"),
            ["value of row session_", "of sessions", "cannot be read"],
        ),
        (changed("UPDATE steps SET events = 'x' WHERE position = 0"), ["events of row step_", "of steps"]),
        (changed("UPDATE profiles SET command = '[1]'"), ["command of row profile_"]),
    ],
)
def test_what_is_wrong_is_found_and_nothing_changes(
    path: Path, spoil: Callable[[Path], None], words: list[str]
) -> None:
    spoil(path)
    before = _content(path.parent)
    problems = check(path, busy_s=1).problems
    assert [word for word in words if not any(word in problem for problem in problems)] == []
    assert [problem for problem in problems if "\n" in problem] == []
    after = _content(path.parent)
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (changed("UPDATE alembic_version SET version_num = '9999'"), "newer Kandev"),
        (changed("DELETE FROM alembic_version"), "another program"),
    ],
)
def test_a_database_of_another_program_or_a_newer_one_is_not_judged(
    path: Path, spoil: Callable[[Path], None], word: str
) -> None:
    spoil(path)
    with pytest.raises(DatabaseRefused, match=word) as refused:
        check(path, busy_s=1, name="the copy")
    assert refused.value.message.startswith("the copy ")
    assert isinstance(refused.value, DatabaseTooNew) == (word == "newer Kandev")


def test_of_very_many_unreadable_rows_the_first_are_told(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        rows = ((f"x{n}", "f", "x", n, "{", 0) for n in range(1_000))
        database.execute("INSERT INTO workflows VALUES ('f', (SELECT id FROM workspaces), 'x', 'x', '', '')")
        database.executemany("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?)", rows)
    assert len(check(path, busy_s=1).problems) == UNREADABLE_SHOWN


def test_a_database_of_an_earlier_version_is_judged_by_that_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chained(monkeypatch, tmp_path / "migrations")
    path = lay_before(tmp_path / "early.db")
    found = check(path, busy_s=1)
    assert (found.revision, found.problems) == (BEFORE, [])
    changed("DROP TABLE turns")(path)
    assert check(path, busy_s=1).problems == ["the table turns is missing"]


def test_what_a_killed_program_left_half_done_in_another_mode_is_not_taken_for_damage(
    path: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN")
        database.executemany("INSERT INTO notes VALUES (?, ?)", ((str(n), "x" * 3_000) for n in range(200)))
        for suffix in ("", "-journal"):
            (tmp_path / f"killed.db{suffix}").write_bytes(beside(path, suffix).read_bytes())
    problems = check(tmp_path / "killed.db", busy_s=1).problems
    assert problems == [
        "an unfinished transaction lies beside it (-journal): let its own program open it first"
    ]

"""A damaged database is said, with the way back, and never written to: neither at a start nor at work."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from kandev.ports.store import Tx
from kandev.storage.copies import copy, folder_of, free_name, ready_folder
from kandev.storage.faults import DatabaseDamaged, DatabaseRefused
from kandev.storage.opening import open_store
from kandev.storage.schema import HEAD
from kandev.storage.sql.store import SqlStore
from tests.storage import damaging
from tests.storage.damaging import Damage
from tests.storage.rows import Listener, workspace
from tests.storage.schemas import lay
from tests.storage.test_on_file import Gate


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return lay(HEAD, tmp_path / "kandev.db")


async def _refused(path: Path) -> str:
    with pytest.raises(DatabaseRefused) as caught:
        await open_store(str(path), publisher=Listener(), commit_s=1)
    sentence = caught.value.message
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert str(path) in sentence
    return sentence


def _content(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.glob("kandev.db*")}


DAMAGES = [
    pytest.param(damaging.damage, "damaged", id="garbage in the middle"),
    pytest.param(lambda path: damaging.damage_root(path, "messages"), "damaged", id="garbage in a table"),
    pytest.param(
        lambda path: damaging.damage_root(path, "ix_tasks_created_at_id"), "damaged", id="garbage in an index"
    ),
    pytest.param(damaging.cut, "damaged", id="cut in half"),
    pytest.param(damaging.cut_within_a_page, "damaged", id="cut within a page"),
    pytest.param(damaging.cut_to_nothing, "is empty", id="cut to nothing"),
    pytest.param(damaging.only_the_header, "damaged", id="only the first page is there"),
    pytest.param(damaging.bad_beginning, "is no SQLite database", id="its beginning is garbage"),
    pytest.param(damaging.bad_first_page, "damaged", id="its first page is garbage"),
]


@pytest.mark.proves("SURVIVE-upgrade", "STORE-damaged-start")
@pytest.mark.parametrize("log", ["no log", "an empty log"])
@pytest.mark.parametrize(("spoil", "word"), DAMAGES)
async def test_a_damaged_database_is_said_with_the_way_back_and_no_bit_of_it_changes(
    path: Path, spoil: Damage, word: str, log: str
) -> None:
    saved = free_name(ready_folder(path), "kandev")
    copy(path, saved, busy_s=1)
    spoil(path)
    if log == "an empty log":
        path.with_name("kandev.db-wal").touch()
    before = _content(path.parent)
    sentence = await _refused(path)
    assert word in sentence
    assert "kandev db restore" in sentence
    assert saved.name in sentence
    after = _content(path.parent)
    assert {name: after.get(name) for name in before} == before


async def test_where_there_is_no_copy_the_sentence_says_so(path: Path) -> None:
    damaging.damage(path)
    assert f"{folder_of(path)} holds none" in await _refused(path)


async def test_the_newest_copies_are_named_and_the_others_counted(path: Path) -> None:
    folder = ready_folder(path)
    for day in range(1, 6):
        (folder / f"kandev-2026010{day}T000000Z.db").touch()
    damaging.damage(path)
    sentence = await _refused(path)
    assert "kandev-20260105T000000Z.db" in sentence
    assert "kandev-20260102T000000Z.db" not in sentence
    assert "and 2 more" in sentence


@pytest.mark.proves("STORE-damaged-start")
async def test_damage_is_seen_through_what_a_killed_program_left_in_its_log(
    path: Path, tmp_path: Path
) -> None:
    writing = sqlite3.connect(path, isolation_level=None)
    writing.execute("INSERT INTO notes VALUES ('late', 'x')")
    killed = tmp_path / "killed"
    killed.mkdir()
    for suffix in ("", "-wal"):
        (killed / f"kandev.db{suffix}").write_bytes(path.with_name(f"kandev.db{suffix}").read_bytes())
    writing.close()
    damaging.damage_root(killed / "kandev.db", "tasks")
    before = _content(killed)
    assert before["kandev.db-wal"]
    assert "damaged" in await _refused(killed / "kandev.db")
    assert {name: data for name, data in _content(killed).items() if name in before} == before


@pytest.mark.proves("STORE-damaged-start")
async def test_a_file_that_was_cut_to_nothing_does_not_take_its_log_along(path: Path) -> None:
    log = path.with_name("kandev.db-wal")
    damaging.cut_to_nothing(path)
    log.write_bytes(b"what was not folded in")
    await _refused(path)
    assert log.read_bytes() == b"what was not folded in"


@pytest.mark.proves("STORE-damaged-start")
async def test_a_log_whose_database_is_gone_is_not_taken_for_a_new_one(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.with_name("kandev.db-wal").write_bytes(b"what was not folded in")
    assert "is gone" in await _refused(path)
    assert _content(path.parent) == {"kandev.db-wal": b"what was not folded in"}


async def test_an_empty_log_beside_a_sound_database_is_fine(path: Path) -> None:
    path.with_name("kandev.db-wal").touch()
    store = await open_store(str(path), publisher=Listener(), commit_s=5)
    await store.close()


async def test_a_large_database_is_looked_through_for_a_while_only(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("threading.Timer.start", lambda timer: timer.function())
    monkeypatch.setattr("threading.Timer.join", lambda timer: None)
    with structlog.testing.capture_logs() as logs:
        store = await open_store(str(path), publisher=Listener(), commit_s=5)
    await store.close()
    assert [entry["path"] for entry in logs if "only a part" in entry["event"]] == [str(path)]


@pytest.mark.proves("STORE-structure")
@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("DROP TABLE notes", "the table notes is missing"),
        ("ALTER TABLE tasks DROP COLUMN description", "the column description of tasks is missing"),
        ("ALTER TABLE tasks ADD COLUMN mood TEXT", "the column mood of tasks does not belong there"),
        ("DROP INDEX uq_sessions_primary", "the index uq_sessions_primary of sessions is missing"),
        ("CREATE UNIQUE INDEX one ON tasks (title)", "the index one of tasks does not belong there"),
        ("DROP TABLE turns; CREATE TABLE turns (id TEXT)", "the column session_id of turns is missing"),
    ],
)
async def test_a_database_that_is_not_what_its_version_says_is_refused_and_untouched(
    path: Path, change: str, what: str
) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(change)
    before = _content(path.parent)
    assert what in await _refused(path)
    after = _content(path.parent)
    assert {name: after[name] for name in before} == before


async def test_what_another_program_keeps_in_it_for_itself_is_no_matter(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE _replica (id INTEGER); CREATE INDEX mine ON tasks (title); ANALYZE"
        )
    store = await open_store(str(path), publisher=Listener(), commit_s=5)
    await store.close()


@pytest.mark.parametrize("table", ["CREATE TABLE alembic_version (other TEXT)", "CREATE TABLE recipes (a)"])
async def test_a_database_of_another_program_is_told_apart(tmp_path: Path, table: str) -> None:
    path = tmp_path / "kandev.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(table)
    assert "another program" in await _refused(path)


async def test_what_a_killed_program_left_half_done_in_another_mode_is_undone(
    path: Path, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
        database.execute("PRAGMA cache_size = 1")
        database.execute("BEGIN")
        database.executemany("INSERT INTO notes VALUES (?, ?)", ((str(n), "x" * 3_000) for n in range(200)))
        killed = tmp_path / "killed"
        killed.mkdir()
        for suffix in ("", "-journal"):
            (killed / f"kandev.db{suffix}").write_bytes(path.with_name(f"kandev.db{suffix}").read_bytes())
    store = await open_store(str(killed / "kandev.db"), publisher=Listener(), commit_s=5)
    assert await store.read(lambda tx: (tx.note("7"), len(tx.workspaces.list()))) == (None, 2)
    await store.close()


# -- at work --------------------------------------------------------------------------------------


def _touch(tx: Tx) -> None:
    tx.set_note("touched", "x")


@pytest.fixture
async def spoiled(path: Path) -> AsyncIterator[SqlStore]:
    """A store whose messages are garbage on the disk, and whose other tables are fine."""
    store = await open_store(str(path), publisher=Listener(), commit_s=20)
    await store.write(_touch)
    damaging.damage_root(path, "messages")
    yield store
    await store.close()


def _all_messages(tx: Tx) -> int:
    sessions = [s for w in tx.workspaces.list() for s in tx.sessions.of_workspace(w.id)]
    return sum(len(tx.messages.latest(s.id, 10)) for s in sessions)


@pytest.mark.proves("STORE-damaged-running")
async def test_damage_met_by_a_read_fails_it_and_ends_all_writing(path: Path, spoiled: SqlStore) -> None:
    known = [spoiled.damage]
    with structlog.testing.capture_logs() as logs, pytest.raises(DatabaseDamaged, match="kandev db restore"):
        await spoiled.read(_all_messages)
    known.append(spoiled.damage)
    assert known[0] is None
    assert "kandev db restore" in str(known[1])
    assert [entry["log_level"] for entry in logs] == ["error"]
    before = _content(path.parent)
    for _ in range(2):
        with pytest.raises(DatabaseDamaged):
            await spoiled.write(_touch)
    assert _content(path.parent) == before
    assert await spoiled.read(lambda tx: tx.note("touched")) == "x", "what is whole can be read"


@pytest.mark.proves("STORE-damaged-running")
async def test_what_shares_a_commit_with_damage_is_not_written_either(spoiled: SqlStore) -> None:
    gate = Gate()
    with structlog.testing.capture_logs():
        async with asyncio.TaskGroup() as group:
            group.create_task(spoiled.write(gate))
            await gate.entered.wait()
            shared = [
                asyncio.ensure_future(spoiled.write(function))
                for function in (
                    lambda tx: tx.workspaces.insert(workspace("before")),
                    _all_messages,
                    lambda tx: tx.workspaces.insert(workspace("behind")),
                )
            ]
            await asyncio.sleep(0)
            gate.let_go()
        outcomes = await asyncio.gather(*shared, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [DatabaseDamaged] * 3
    kept = await spoiled.read(lambda tx: [row.id for row in tx.workspaces.list()])
    assert {"before", "behind"} & set(kept) == set()

"""Before an upgrade there is a copy, and after a failed one there is what there was."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import structlog

from kandev.storage import copies, schema
from kandev.storage.copies import copies_of
from kandev.storage.examination import check
from kandev.storage.faults import DatabaseRefused
from kandev.storage.opening import open_store
from tests.storage.chain import BEFORE, Chain, chained, lay_before, workspaces
from tests.storage.killing import killed_at_every_step
from tests.storage.rows import Listener
from tests.storage.schemas import dump


@pytest.fixture
def chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Chain:
    return chained(monkeypatch, tmp_path / "migrations")


@pytest.fixture
def path(chain: Chain, tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return lay_before(tmp_path / "home" / "kandev.db")


async def _open(path: Path) -> None:
    store = await open_store(str(path), publisher=Listener(), commit_s=1)
    await store.close()


async def _refused(path: Path) -> str:
    with pytest.raises(DatabaseRefused) as caught:
        await _open(path)
    sentence = caught.value.message
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


def _version(path: Path) -> str | None:
    return check(path, busy_s=1).revision


@pytest.mark.proves("STORE-copy-before-upgrade")
async def test_an_upgrade_makes_a_copy_first_and_the_log_names_it(path: Path) -> None:
    before = dump(path)
    with structlog.testing.capture_logs() as logs:
        await _open(path)
    (copy,) = copies_of(path)
    assert copy.parent == path.parent / "backups"
    assert copy.name.startswith(f"kandev-{BEFORE}-2")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    assert {"copy": str(copy), "version": BEFORE}.items() <= logs[0].items()
    assert (dump(copy), check(copy, busy_s=1).problems) == (before, [])
    assert _version(path) == schema.HEAD
    assert workspaces(path) == ["w1", "w2"]
    assert [file.name for file in copy.parent.iterdir()] == [copy.name]


async def test_the_copy_holds_what_a_killed_program_left_in_its_log(path: Path, tmp_path: Path) -> None:
    writing = sqlite3.connect(path, isolation_level=None)
    writing.execute("INSERT INTO workspaces VALUES ('w3', 'late', '2026', '2026')")
    killed = tmp_path / "killed"
    killed.mkdir()
    for suffix in ("", "-wal"):
        (killed / f"kandev.db{suffix}").write_bytes((path.parent / f"kandev.db{suffix}").read_bytes())
    writing.close()
    await _open(killed / "kandev.db")
    (copy,) = copies_of(killed / "kandev.db")
    assert workspaces(copy) == workspaces(killed / "kandev.db") == ["w1", "w2", "w3"]


async def test_a_start_with_nothing_to_upgrade_makes_no_copy(path: Path) -> None:
    await _open(path)
    await _open(path)
    assert len(copies_of(path)) == 1


@pytest.mark.proves("STORE-failed-upgrade")
@pytest.mark.parametrize(
    ("step", "why"),
    [
        ("raise KeyError('a row that nobody has thought of')", "a row that nobody has thought of"),
        ("op.execute('DELETE FROM workspaces'); op.execute('nonsense')", "syntax error"),
        (
            "op.execute('DELETE FROM workspaces'); op.execute('DROP TABLE steps')",
            "the table steps is missing",
        ),
        ("op.execute('ALTER TABLE tasks ADD COLUMN strange TEXT')", "the column strange of tasks"),
        ("op.execute(\"INSERT INTO steps VALUES ('s', 'nobody', '', 0, '', 0)\")", "workflows that is gone"),
    ],
)
async def test_an_upgrade_that_fails_leaves_everything_as_it_was_and_names_the_copy(
    path: Path, chain: Chain, step: str, why: str
) -> None:
    chain.step(step)
    before = dump(path)
    sentence = await _refused(path)
    assert why in sentence
    (copy,) = copies_of(path)
    assert str(copy) in sentence
    assert str(path) in sentence
    assert (dump(path), _version(path)) == (before, BEFORE)
    chain.step("")
    await _open(path)
    assert _version(path) == schema.HEAD


async def test_a_start_that_fails_again_and_again_makes_one_copy(path: Path, chain: Chain) -> None:
    chain.step("raise ValueError('no')")
    for _ in range(4):
        await _refused(path)
    assert len(copies_of(path)) == 1
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO workspaces VALUES ('w3', 'used meanwhile', '2026', '2026')")
    await _refused(path)
    assert [workspaces(copy)[-1] for copy in copies_of(path)] == ["w3", "w2"]


async def test_only_the_newest_copies_are_kept_and_those_that_a_person_made(path: Path) -> None:
    folder = path.parent / "backups"
    folder.mkdir()
    older = [folder / f"kandev-{BEFORE}-2026010{day}T000000Z.db" for day in range(1, 8)]
    others = [
        folder / "kandev-20250101T000000Z.db",
        folder / "other-0000-20250101T000000Z.db",
        folder / "mine.db",
    ]
    for file in (*older, *others):
        file.write_bytes(b"")
    await _open(path)
    kept = {file.name for file in folder.iterdir()}
    assert {file.name for file in (*older[-copies.KEPT + 1 :], *others)} < kept
    assert len(kept) == copies.KEPT + len(others)


@pytest.mark.proves("STORE-no-copy-no-upgrade")
async def test_without_a_copy_there_is_no_upgrade(path: Path) -> None:
    (path.parent / "backups").write_text("in the way")
    before = path.read_bytes()
    sentence = await _refused(path)
    assert f"{path.parent}/backups" in sentence
    assert "no copy of it can be made" in sentence
    assert path.read_bytes() == before
    assert _version(path) == BEFORE


ON_A_SMALL_DISK = """
mount -t tmpfs -o size=$((2 * $(stat -c %s "$1") / 1024 - 20))k none "$2"
cp "$1" "$2/kandev.db" && exec "$3" -c "$4" "$2/kandev.db"
"""
OPEN_IT = """
import asyncio, sys
from pathlib import Path
from kandev.storage.faults import DatabaseRefused
from kandev.storage import schema
schema.MIGRATIONS, schema.REVISIONS = Path({folder!r}), ({before!r}, schema.HEAD)
from tests.storage.test_upgrading import _open
path = Path(sys.argv[1])
before = path.read_bytes()
try:
    asyncio.run(_open(path))
except DatabaseRefused as refused:
    print(refused.message)
left = sorted(file.name for file in (path.parent / "backups").iterdir())
print(path.read_bytes() == before, left)
"""


@pytest.mark.proves("STORE-no-copy-no-upgrade")
def test_on_a_disk_too_full_for_a_copy_nothing_is_changed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "small").mkdir()
    program = OPEN_IT.format(folder=str(schema.MIGRATIONS), before=BEFORE)
    words = ["sh", str(path), str(tmp_path / "small"), sys.executable, program]
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", "sh", "-ec", ON_A_SMALL_DISK, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode and ("unshare:" in done.stderr or "mount:" in done.stderr):
        pytest.skip(f"no small disk can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    sentence, rest = done.stdout.splitlines()[-2:]
    assert "the disk is full" in sentence
    assert rest == "True []"


async def test_a_migration_may_build_a_table_anew_without_losing_what_refers_to_it(
    path: Path, chain: Chain
) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO workflows VALUES ('f1', 'w1', 'Kanban', 'kanban', '2026', '2026')")
    chain.step("with op.batch_alter_table('workspaces', recreate='always') as batch: pass")
    await _open(path)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT id, workspace_id FROM workflows").fetchall() == [("f1", "w1")]


@pytest.mark.proves("STORE-failed-upgrade")
def test_a_kill_at_any_step_of_an_upgrade_leaves_the_old_database_or_the_new_one(path: Path) -> None:
    pristine = path.read_bytes()

    def lay() -> None:
        shutil.rmtree(path.parent)
        path.parent.mkdir()
        path.write_bytes(pristine)

    def look() -> None:
        assert workspaces(path) == ["w1", "w2"]
        found = check(path, busy_s=1)
        assert (found.problems, found.revision in (BEFORE, schema.HEAD)) == ([], True)
        if found.revision == schema.HEAD:
            (copy,) = copies_of(path)
            assert workspaces(copy) == ["w1", "w2"]

    def upgrade() -> None:
        asyncio.run(_open(path))

    assert killed_at_every_step(upgrade, lay, look) > 20

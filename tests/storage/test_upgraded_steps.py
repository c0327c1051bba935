"""Tasks of a database in which no step was ever entered, upgraded; and back again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from alembic import command

from kandev.core.board import OwedEnter, PendingMove
from kandev.core.records import TurnRecord
from kandev.ports.store import Tx
from kandev.storage.opening import open_store
from tests.storage import rows
from tests.storage.rows import NOW, Listener
from tests.storage.schemas import lay
from tests.storage.test_upgraded_texts import _migrate


async def _write(path: Path, f: Any) -> Any:
    store = await open_store(str(path), publisher=Listener(), commit_s=20)
    try:
        return await store.write(f)
    finally:
        await store.close()


@pytest.mark.proves("SURVIVE-upgrade")
async def test_tasks_turns_and_entries_of_an_older_database_owe_nothing_and_wait_for_nothing(
    tmp_path: Path,
) -> None:
    path = lay("0002", tmp_path / "kandev.db")

    def look(tx: Tx) -> None:
        tasks = tx.tasks.list(include_archived=True)
        assert tasks
        assert {(t.entered, t.automatic, t.pending_move, t.owed_enter) for t in tasks} == {(0, 0, None, None)}
        sessions = [s for task in tasks for s in tx.sessions.of_task(task.id)]
        assert {t.entered for s in sessions for t in tx.turns.of_session(s.id)} == {0}
        assert {e.coalesce for s in sessions for e in tx.entries.queue(s.id)} == {None}
        assert tx.tasks.owing() == []

    await _write(path, look)


async def test_what_is_owed_and_waits_is_kept_as_it_was_said(tmp_path: Path) -> None:
    owed = OwedEnter(3, "s1", "go", completes=True, parks="why")
    pending = PendingMove("s2", "session", 4)

    def put(tx: Tx) -> None:
        rows.board(tx)
        tx.tasks.insert(rows.task("t2", entered=3, automatic=2, pending_move=pending, owed_enter=owed))
        tx.turns.insert(TurnRecord("x:1", "c1", "x", 1, "active", NOW, entered=3))
        tx.entries.insert(rows.entry(coalesce="ci"))

    def look(tx: Tx) -> None:
        task, turn, entry = tx.tasks.get("t2"), tx.turns.get("x:1"), tx.entries.get("e1")
        assert task is not None and turn is not None and entry is not None
        assert (task.entered, task.automatic, task.pending_move, task.owed_enter) == (3, 2, pending, owed)
        assert (turn.entered, entry.coalesce) == (3, "ci")
        assert tx.tasks.owing() == ["t2"]

    path = tmp_path / "kandev.db"
    await _write(path, put)
    await _write(path, look)
    _migrate(path, command.downgrade, "0002")

    def owes(tx: Tx) -> tuple[list[str], int]:
        return list(tx.tasks.owing()), len(tx.tasks.list())

    assert await _write(path, owes) == ([], 2), "and up again: the tasks are there"

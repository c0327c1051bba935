"""A database of the first version, upgraded while a message grows, and back again."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Table

from kandev.core.board import Step
from kandev.core.effects import Told
from kandev.core.session import TurnRef
from kandev.core.transcript import Text
from kandev.execution.clock import TimeIds
from kandev.ports.store import Tx
from kandev.runtime.scribe import Scribe
from kandev.storage import schema
from kandev.storage.opening import open_store
from kandev.storage.sql import sessions, tables, tasks, workflows, workspaces
from kandev.storage.sql.engine import connect
from kandev.storage.sql.rows import Mapped
from kandev.storage.sql.texts import STRETCH
from tests.storage import rows
from tests.storage.rows import NOW, Listener, board, message


def _migrate(path: Path, run: Callable[[Config, str], None], revision: str) -> None:
    with connect(path, busy_s=20, writing=True) as connection, connection.begin():
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(schema.MIGRATIONS).replace("%", "%%"))
        config.set_main_option("path_separator", "os")
        run(config, revision)


def _insert(connection: Connection, table: Table, values: dict[str, Any]) -> None:
    """The columns that the table had then."""
    had = connection.exec_driver_sql("SELECT name FROM pragma_table_info(?)", (table.name,)).scalars()
    connection.execute(table.insert().values({name: values[name] for name in had}))


def _put(path: Path, content: str) -> None:
    """A session whose last message still grows, as the first version of the database holds it."""
    with connect(path, busy_s=20, writing=True) as connection, connection.begin():
        old: tuple[tuple[Mapped[Any], Table, Any], ...] = (
            (workspaces.MAPPED, tables.workspaces, rows.workspace()),
            (workflows.MAPPED, tables.workflows, rows.workflow(steps=())),
            (workflows.STEP, tables.steps, Step("s1", "f1", "S1", 0)),
            (tasks.MAPPED, tables.tasks, rows.task()),
            (sessions.MAPPED, tables.sessions, rows.session(open_message="m1")),
        )
        for mapped, table, record in old:
            _insert(connection, table, mapped.values(record))
        columns = "id, session_id, turn_id, author_type, type, content, metadata, seq, created_at, length"
        row = ("m1", "c1", "x:1", "agent", "message", content, '{"message_id":"a"}', 1, NOW, len(content))
        places = ", ".join("?" * len(row))
        connection.exec_driver_sql(f"INSERT INTO messages ({columns}) VALUES ({places})", row)


@pytest.mark.parametrize("length", [0, 5, STRETCH, 200_000])
async def test_a_message_that_was_growing_at_an_upgrade_goes_on_growing(tmp_path: Path, length: int) -> None:
    path, begin = tmp_path / "kandev.db", "é" * length
    _migrate(path, command.upgrade, "0001")
    _put(path, begin)

    def says(tx: Tx) -> str | None:
        record = tx.sessions.get("c1")
        assert record is not None
        scribe = Scribe(tx, TimeIds(), "c1", NOW, record.open_message)
        scribe.told(Told(Text("message", " and on", "a"), TurnRef("x", 1)))
        tx.sessions.update(replace(record, open_message=scribe.finish()))
        return record.open_message

    listener = Listener()
    store = await open_store(str(path), publisher=listener, commit_s=20)
    assert [await store.write(says) for _ in range(500)] == ["m1"] * 500
    (found,) = await store.read(lambda tx: tx.messages.page("c1", limit=10))
    await store.close()
    assert found.content == begin + " and on" * 500
    offsets = [n.payload["offset"] for n in listener.heard if n.action == "session.message.updated"]
    assert offsets == [length + 7 * n for n in range(500)]


async def test_a_text_in_parts_is_whole_again_for_an_earlier_version(tmp_path: Path) -> None:
    path = tmp_path / "kandev.db"
    store = await open_store(str(path), publisher=Listener(), commit_s=20)

    def write(tx: Tx) -> None:
        board(tx)
        tx.messages.add(message("m1", content="begin"))
        tx.messages.add(message("m2", content="short"))
        for n in range(3000):
            tx.messages.append("m1", f" {n}")

    await store.write(write)
    await store.close()
    _migrate(path, command.downgrade, "0001")
    database = sqlite3.connect(path)
    rows = database.execute("SELECT content, length FROM messages ORDER BY id").fetchall()
    database.close()
    whole = "begin" + "".join(f" {n}" for n in range(3000))
    assert rows == [(whole, len(whole)), ("short", 5)]

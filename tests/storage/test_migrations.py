"""The migrations make exactly the tables that the program uses, whole or not at all, and cost nothing when
done.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect

from kandev.storage import schema
from kandev.storage.opening import open_store
from kandev.storage.sql.engine import connect_memory
from kandev.storage.sql.tables import metadata
from tests.storage.rows import Listener


def test_migrations_and_tables_agree() -> None:
    with connect_memory() as connection:
        schema.upgrade(connection)
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def _shape(connection: Any) -> dict[str, Any]:
    """What Alembic does not compare: keys, checks, the conditions of indexes. How SQL is laid out over lines
    counts for nothing: a column that is added later stands on the line of the one before it.
    """
    query = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'alembic%' AND sql IS NOT NULL"
    return {name: " ".join(sql.split()) for name, sql in connection.exec_driver_sql(query)}


def test_migrations_and_tables_agree_to_the_letter() -> None:
    with connect_memory() as migrated, connect_memory() as made:
        schema.upgrade(migrated)
        metadata.create_all(made)
        assert _shape(migrated) == _shape(made)


def test_the_list_of_revisions_is_the_folder_of_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    found = [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()]
    assert tuple(reversed(found)) == schema.REVISIONS


async def test_a_migration_that_fails_leaves_no_new_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade = schema.upgrade

    def fails(connection: Any) -> None:
        upgrade(connection)
        assert inspect(connection).get_table_names()
        raise ZeroDivisionError

    monkeypatch.setattr(schema, "upgrade", fails)
    path = tmp_path / "kandev.db"
    with pytest.raises(ZeroDivisionError):
        await open_store(str(path), publisher=Listener(), commit_s=5)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    store = await open_store(str(path), publisher=Listener(), commit_s=5)
    await store.close()


SECOND_START = """
import asyncio, sys
from kandev.storage.opening import open_store

class Nobody:
    def publish(self, notifications): ...

async def main():
    store = await open_store(sys.argv[1], publisher=Nobody(), commit_s=20)
    await store.close()

asyncio.run(main())
assert "alembic" not in sys.modules
"""


async def test_a_start_with_nothing_to_migrate_does_not_import_alembic(tmp_path: Path) -> None:
    path = tmp_path / "kandev.db"
    store = await open_store(str(path), publisher=Listener(), commit_s=20)
    await store.close()
    env = {**os.environ, "PYTHONPATH": str(Path(schema.__file__).parents[2])}
    subprocess.run([sys.executable, "-c", SECOND_START, str(path)], env=env, check=True, timeout=60)

"""Which version a database has, what belongs to a version, and how a database gets to the newest.

The version is read with a plain SELECT: Alembic is imported only when there is something to migrate.
"""

from functools import cache
from pathlib import Path

from sqlalchemy import Connection, inspect

from kandev.storage.faults import DatabaseRefused, DatabaseTooNew
from kandev.storage.sql.engine import connect_memory
from kandev.storage.sql.tables import metadata
from kandev.storage.structure import Structure, differences, structure

REVISIONS = ("0001", "0002", "0003")
"""All migrations of this program, oldest first."""
HEAD = REVISIONS[-1]
MIGRATIONS = Path(__file__).parent / "migrations"
DANGLING_SHOWN = 20
"""Rows that refer to nothing, of which so many are named; the first ones tell the kind."""


def version(connection: Connection, name: str) -> str | None:
    """The database's revision, None when it is empty. `name`: what a person calls the database.

    DatabaseTooNew when a newer program wrote it, DatabaseRefused when it is another program's.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    found = None
    if "alembic_version" in tables:
        columns = connection.exec_driver_sql("SELECT name FROM pragma_table_info('alembic_version')")
        if "version_num" in columns.scalars():
            found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if found is None:
        raise DatabaseRefused(f"{name} is a database of another program: name another file.")
    if found not in REVISIONS:
        raise DatabaseTooNew(
            f"{name} was written by a newer Kandev (version {found} of the database, this one knows {HEAD}): "
            "start the newer one, or name another file."
        )
    return str(found)


def mismatches(connection: Connection, revision: str) -> list[str]:
    """What is not as it is in a database of this revision: half-sentences."""
    return differences(structure(connection), expected(revision))


def dangling(connection: Connection) -> list[str]:
    """Rows that refer to rows which are not there: half-sentences."""
    rows = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchmany(DANGLING_SHOWN)
    return [
        f"row {row} of {table} belongs to a row of {parent} that is gone" for table, row, parent, _ in rows
    ]


def expected(revision: str) -> Structure:
    """What a database of this revision is made of."""
    return _made_at_once() if revision == HEAD else _migrated(revision)


@cache
def _made_at_once() -> Structure:
    with connect_memory() as connection, connection.begin():
        metadata.create_all(connection, checkfirst=False)
        return structure(connection)


def _migrated(revision: str) -> Structure:
    with connect_memory() as connection, connection.begin():
        upgrade(connection, revision)
        return structure(connection)


def upgrade(connection: Connection, revision: str = "head") -> None:
    """To the newest version, in the transaction that is open: all of it, or nothing.

    Foreign keys must not be enforced where there are rows: SQLite changes most of a table by building it
    anew, and dropping the old one would take along what refers to it.
    """
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    # The option is a template in which % is special.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, revision)

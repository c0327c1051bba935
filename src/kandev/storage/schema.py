"""Which version a database has, and how it gets to the newest.

The version is read with a plain SELECT: Alembic is imported only when there is something to migrate.
"""

from pathlib import Path

from sqlalchemy import Connection, inspect

from kandev.storage.faults import DatabaseRefused, DatabaseTooNew

REVISIONS = ("0001", "0002")
"""All migrations of this program, oldest first."""
HEAD = REVISIONS[-1]
MIGRATIONS = Path(__file__).parent / "migrations"


def version(connection: Connection, name: str) -> str | None:
    """The database's revision, None when it is empty. `name`: what a person calls the database.

    DatabaseTooNew when a newer program wrote it, DatabaseRefused when it is another program's.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    found = None
    if "alembic_version" in tables:
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if found is None:
        raise DatabaseRefused(f"{name} is a database of another program: name another file.")
    if found not in REVISIONS:
        raise DatabaseTooNew(
            f"{name} was written by a newer Kandev (version {found} of the database, this one knows {HEAD}): "
            "start the newer one, or name another file."
        )
    return str(found)


def upgrade(connection: Connection) -> None:
    """To the newest version, in the transaction that is open: all of it, or nothing."""
    from alembic import command
    from alembic.config import Config

    config = Config(attributes={"connection": connection})
    # The option is a template in which % is special.
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    command.upgrade(config, "head")

"""Looks at a database without changing anything: whether it is one of Kandev's, whole, and what its version
says it is.

`examine` is for a start: bounded in time, and it raises what keeps a backend from using the database. `check`
is for a person: it looks at everything and collects what it finds.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import structlog
from sqlalchemy import Connection, Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import DBAPIError

from kandev.core.errors import StoreFault
from kandev.storage import schema
from kandev.storage.copies import copies_of, folder_of
from kandev.storage.faults import DatabaseRefused, is_damage, reason, told
from kandev.storage.sql.engine import damages, look
from kandev.storage.sql.jsontext import JsonText
from kandev.storage.sql.tables import metadata

MAGIC: Final = b"SQLite format 3\x00"
"""How every SQLite database begins (https://www.sqlite.org/fileformat.html, 1.3)."""
START_S: Final = 2.0
"""So long a start looks for damage, which is enough for about a gigabyte; then it begins, and other damage is
met when it is read."""
SHOWN: Final = 3
"""Copies that a sentence names: the newest ones."""
UNREADABLE_SHOWN: Final = 20

log = structlog.get_logger(__name__)


@dataclass
class Findings:
    """`revision` is None where none could be read. `problems`: half-sentences."""

    revision: str | None = None
    problems: list[str] = field(default_factory=list)


def way_back(database: Path) -> str:
    """What to do about a database that cannot be used."""
    found = copies_of(database)
    restore = "go back to a copy with `kandev db restore FILE`"
    if not found:
        return f"{restore}, if you have one ({folder_of(database)} holds none)"
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{restore} ({folder_of(database)} holds {', '.join(p.name for p in found[:SHOWN])}{more})"


def refuse_other_files(path: Path) -> None:
    """Raises DatabaseRefused unless the file there begins as a SQLite database does. OSError."""
    if path.is_dir():
        raise DatabaseRefused(f"{path} is a folder: name a file for the database.")
    if not path.is_file():
        raise DatabaseRefused(f"{path} is no ordinary file: name another one for the database.")
    with path.open("rb") as file:
        begin = file.read(len(MAGIC))
    if not begin:
        raise DatabaseRefused(
            f"{path} is empty, which a database never is: {way_back(path)}, "
            "or remove it, and the next start makes a new one."
        )
    if begin != MAGIC:
        raise DatabaseRefused(
            f"{path} is no SQLite database (any more): name another file, or {way_back(path)}."
        )


def revision_of(path: Path, *, busy_s: float) -> str | None:
    """None when it holds no tables. Raises DatabaseRefused, DatabaseTooNew."""
    try:
        with look(path, busy_s=busy_s) as connection:
            return schema.version(connection, str(path))
    except DBAPIError as error:
        raise DatabaseRefused(f"{path} cannot be read: {reason(error)}.") from error


def examine(path: Path, *, busy_s: float) -> str | None:
    """The revision, None when it holds no tables. Raises DatabaseRefused, DatabaseTooNew; DBAPIError for what
    is no damage (a lock)."""
    try:
        with look(path, busy_s=busy_s) as connection:
            found = schema.version(connection, str(path))
            if found is not None and (wrong := schema.mismatches(connection, found)):
                raise DatabaseRefused(
                    f"{path} is not what its version {found} says ({_counted(wrong)}): {way_back(path)}."
                )
            wrong_pages = damages(connection, thorough=False, within_s=START_S)
    except DBAPIError as error:
        if not is_damage(error) and isinstance(told(error), StoreFault):
            raise
        raise DatabaseRefused(f"{path} is damaged ({error.orig}): {way_back(path)}.") from error
    if wrong_pages is None:
        log.info("only a part of the database was looked through; kandev db check does all", path=str(path))
    elif wrong_pages:
        raise DatabaseRefused(f"{path} is damaged ({_counted(wrong_pages)}): {way_back(path)}.")
    return found


def check(path: Path, *, busy_s: float, immutable: bool = False, name: str | None = None) -> Findings:
    """Everything that can be found; `name`: what a person calls it. Raises DatabaseRefused for what is no
    database of Kandev's."""
    found = Findings()
    try:
        with look(path, busy_s=busy_s, immutable=immutable) as connection:
            found.revision = schema.version(connection, name or str(path))
            if found.revision is None:
                found.problems.append("it holds no tables")
            else:
                found.problems += _problems(connection, found.revision)
    except DBAPIError as error:
        found.problems.append(reason(error))
    return found


def _problems(connection: Connection, revision: str) -> list[str]:
    pages = damages(connection, thorough=True) or []
    if pages:
        return [f"it is damaged ({words})" for words in pages]
    found = [*schema.mismatches(connection, revision), *schema.dangling(connection)]
    if not found and revision == schema.HEAD:
        for table in metadata.sorted_tables:
            found += _unreadable(connection, table)
    return found


def _unreadable(connection: Connection, table: Table) -> Iterator[str]:
    """Rows whose JSON is none, or not what the program keeps there."""
    readers = {
        column.name: column.type.result_processor(sqlite.dialect(), None)
        for column in table.columns
        if isinstance(column.type, JsonText)
    }
    keys = [column.name for column in table.primary_key]
    names = ", ".join(f'"{name}"' for name in (*keys, *readers))
    rows = connection.exec_driver_sql(f'SELECT {names} FROM "{table.name}"') if readers else ()  # noqa: S608 - our own names
    count = 0
    for row in rows:
        for (column, read), text in zip(readers.items(), row[len(keys) :], strict=True):
            try:
                read(text)
            except StoreFault as fault:
                count += 1
                where = " ".join(map(str, row[: len(keys)]))
                yield f"{column} of row {where} of {table.name}: {fault.message}"
        if count >= UNREADABLE_SHOWN:
            return


def _counted(wrong: list[str]) -> str:
    return wrong[0] if len(wrong) == 1 else f"{wrong[0]}, and {len(wrong) - 1} more"

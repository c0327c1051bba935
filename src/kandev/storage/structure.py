"""What a database is made of, by name: tables, columns, keys, checks, indexes and triggers, to be compared.

Two databases of one version are equal here however they came to it (made at once, or changed step by step):
the order of columns and the wording of SQL count for nothing. Not here: which structure a version has
(`schema`).
"""

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

CHECK = re.compile(r"CONSTRAINT\s+\"?(\w+)\"?\s+CHECK", re.IGNORECASE)
OWN = ("sqlite_", "alembic_")
"""Tables of SQLite itself and of the migrations begin so."""

Structure = Mapping[str, Any]
"""From what a person calls a part ("the column title of tasks") to what can be compared of it."""


def structure(connection: Connection) -> Structure:
    """Of every table that is neither SQLite's own nor Alembic's."""
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'").all()
    found: dict[str, Any] = {}
    for name, sql in rows:
        if not name.startswith(OWN):
            found[f"the table {name}"] = True
            found |= _columns(connection, name) | _foreign_keys(connection, name) | _indexes(connection, name)
            found |= {f"the check {check} of {name}": True for check in CHECK.findall(sql)}
    return found | _triggers(connection)


def differences(found: Structure, wanted: Structure) -> list[str]:
    """Half-sentences, the largest parts first; none when `found` is as `wanted`.

    Tables and plain indexes that nobody asked for change nothing: programs that copy databases, or whoever
    looks into one, leave some.
    """
    gone = {part.removeprefix("the table ") for part in wanted if _is_table(part) and part not in found}
    missing = [part for part in wanted if part not in found and _table_of(part) not in gone]
    other = [part for part in wanted if part in found and found[part] != wanted[part]]
    strange = [part for part in found if part not in wanted and _matters(part, found[part], wanted)]
    return [
        *(f"{part} is missing" for part in sorted(missing, key=lambda part: not _is_table(part))),
        *(f"{part} is another one" for part in other),
        *(f"{part} does not belong there" for part in strange),
    ]


def _is_table(part: str) -> bool:
    return part.startswith("the table ")


def _table_of(part: str) -> str:
    return "" if _is_table(part) else part.rpartition(" of ")[2]


def _matters(part: str, value: Any, wanted: Structure) -> bool:
    if _is_table(part) or f"the table {_table_of(part)}" not in wanted:
        return False
    return not part.startswith("the index ") or bool(value[0])


def _triggers(connection: Connection) -> dict[str, Any]:
    """Each changes what a statement of ours does."""
    rows = connection.exec_driver_sql(
        "SELECT name, lower(tbl_name) FROM sqlite_master WHERE type = 'trigger'"
    )
    return {f"the trigger {name} of {table}": True for name, table in rows}


def _columns(connection: Connection, table: str) -> dict[str, Any]:
    rows = connection.exec_driver_sql(
        'SELECT name, upper(type), "notnull", dflt_value, pk FROM pragma_table_xinfo(?)', (table,)
    )
    return {f"the column {name} of {table}": tuple(rest) for name, *rest in rows}


def _foreign_keys(connection: Connection, table: str) -> dict[str, Any]:
    rows = connection.exec_driver_sql(
        'SELECT id, "from", "table", "to", on_update, on_delete FROM pragma_foreign_key_list(?) '
        "ORDER BY id, seq",
        (table,),
    )
    keys: dict[int, list[Any]] = {}
    for number, *rest in rows:
        keys.setdefault(number, []).append(tuple(rest))
    return {
        f"the foreign key {', '.join(part[0] for part in parts)} of {table}": tuple(parts)
        for parts in keys.values()
    }


def _indexes(connection: Connection, table: str) -> dict[str, Any]:
    """Uniqueness, columns and condition. The index behind a primary key is told by the columns."""
    rows = connection.exec_driver_sql(
        'SELECT i.name, i."unique", m.sql FROM pragma_index_list(?) AS i '
        "JOIN sqlite_master AS m ON m.type = 'index' AND m.name = i.name WHERE m.sql IS NOT NULL",
        (table,),
    ).all()
    found: dict[str, Any] = {}
    for name, unique, sql in rows:
        columns = connection.exec_driver_sql("SELECT name FROM pragma_index_info(?) ORDER BY seqno", (name,))
        condition = re.split(r"\bWHERE\b", sql, maxsplit=1, flags=re.IGNORECASE)[1:]
        words = " ".join("".join(condition).replace('"', "").split())
        found[f"the index {name} of {table}"] = (unique, tuple(columns.scalars()), words)
    return found

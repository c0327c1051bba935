"""One table of frozen records: what all nouns share.

A record's members are the table's columns of the same names. Further columns of the table are derived from
the record with every write. Not here: queries of one noun.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy import Connection, Select, Table, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from kandev.core.errors import StaleVersion
from kandev.storage.faults import conflict

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")


class Mapped(Generic[Row]):
    """How records of one type lie in a table: the statements, built once.

    `noun`: what a person calls it. `derived`: column → how it comes from the record. `apart`: members
    without a column.
    """

    def __init__(
        self,
        noun: str,
        record: type[Row],
        table: Table,
        *,
        derived: Mapping[str, Callable[[Any], Any]] | None = None,
        apart: Sequence[str] = (),
    ) -> None:
        self.noun = noun
        self.record = record
        self.derived = dict(derived or {})
        self.names = tuple(field.name for field in fields(record) if field.name not in apart)
        self.versioned = "version" in self.names
        key = table.c.id
        self.select: Select[Any] = select(*(table.c[name] for name in self.names))
        self.by_id = self.select.where(key == bindparam("at_id"))
        self.insert = insert(table)
        self.delete = delete(table).where(key == bindparam("at_id"))
        where = [key == bindparam("at_id")]
        if self.versioned:
            where.append(table.c.version == bindparam("at_version"))
        # Which columns it sets follows from the values it is given.
        self.update = update(table).where(*where)

    def values(self, row: Row) -> dict[str, Any]:
        """The columns of a record."""
        found = {name: getattr(row, name) for name in self.names}
        for name, derive in self.derived.items():
            found[name] = derive(row)
        return found


class Rows(Generic[Row]):
    """The records of one table, in one transaction."""

    def __init__(self, connection: Connection, mapped: Mapped[Row]) -> None:
        self.connection = connection
        self.mapped = mapped

    def get(self, id: str) -> Row | None:
        """The record with this id."""
        return self.one(self.mapped.by_id, {"at_id": id})

    def insert(self, row: Row) -> None:
        """StaleVersion when the id, or a member that must be unique, is there already."""
        self.write(self.mapped.insert, self.mapped.values(row))

    def update(self, row: Row) -> None:
        """Every column; StaleVersion when the row is gone or (if it has a version) was written since."""
        values = self.mapped.values(row)
        values["at_id"] = id_ = values.pop("id")
        if self.mapped.versioned:
            values["at_version"] = values["version"]
            values["version"] += 1
        if self.write(self.mapped.update, values) != 1:
            raise StaleVersion(f"The {self.mapped.noun} {id_!r} was changed or deleted by another writer.")

    def delete(self, id: str) -> None:
        """Gone with all that belongs to it; unknown is fine."""
        self.write(self.mapped.delete, {"at_id": id})

    def write(self, statement: Any, values: Mapping[str, Any]) -> int:
        """Runs it; how many rows it met. A violated constraint becomes StaleVersion."""
        try:
            return self.connection.execute(statement, values).rowcount
        except IntegrityError as error:
            id_ = values.get("id", values.get("at_id"))
            raise conflict(error, f"The {self.mapped.noun} {id_!r}") from error

    def one(self, query: Select[Any], values: Mapping[str, Any] | None = None) -> Row | None:
        """The first record of a query over `mapped.select`."""
        found = self.connection.execute(query, values or {}).first()
        return None if found is None else self.record(*found)

    def all(self, query: Select[Any], values: Mapping[str, Any] | None = None) -> list[Row]:
        """All records of a query over `mapped.select`."""
        return [self.record(*found) for found in self.connection.execute(query, values or {})]

    def record(self, *values: Any) -> Row:
        """A record from its columns."""
        return self.mapped.record(*values)

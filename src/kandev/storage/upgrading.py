"""Brings an existing database to the newest version: first a copy, then all of it or nothing.

Not here: what a version is made of (`schema`), looking at a database before (`examination`).
"""

from pathlib import Path
from types import TracebackType

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from kandev.storage import schema
from kandev.storage.copies import CopyFailed, before_upgrade
from kandev.storage.faults import DatabaseRefused, reason
from kandev.storage.sql.engine import connect

log = structlog.get_logger(__name__)


def upgrade(path: Path, *, busy_s: float) -> None:
    """Raises DatabaseRefused: then the database is as it was. DBAPIError when it is locked."""
    # Foreign keys hold again with the next connection; what refers to what is looked at before the commit.
    with connect(path, busy_s=busy_s, writing=True, enforcing=False) as connection, connection.begin():
        # Again, now that nobody else can write: the copy is what the upgrade begins with.
        found = schema.version(connection, str(path))
        if found == schema.HEAD:
            return
        copy = None if found is None else _copied(path, found, busy_s)
        with _Attempt(path, found, copy):
            schema.upgrade(connection)
            _verify(connection)
    log.info("the database was upgraded", path=str(path), was=found, now=schema.HEAD)


def _copied(path: Path, found: str, busy_s: float) -> Path:
    try:
        copy = before_upgrade(path, found, busy_s=busy_s)
    except CopyFailed as fault:
        raise DatabaseRefused(
            f"{path} has to be upgraded from version {found} to {schema.HEAD}, and no copy of it can be made "
            f"before that: {fault.message}; mend that and start again, nothing was changed."
        ) from fault
    log.info("the database is copied before its upgrade", path=str(path), version=found, copy=str(copy))
    return copy


def _verify(connection: Connection) -> None:
    wrong = [*schema.mismatches(connection, schema.HEAD), *schema.dangling(connection)]
    if wrong:
        raise _Wrong(wrong[0])


class _Wrong(Exception):
    """What the migrations made is not what they should have made."""


class _Attempt:
    """Whatever goes wrong inside is one sentence: a migration meets rows that nobody has thought of."""

    def __init__(self, path: Path, found: str | None, copy: Path | None) -> None:
        self._path, self._found, self._copy = path, found, copy

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(raised, Exception):
            return
        log.error("the upgrade failed", path=str(self._path), exc_info=raised)
        why = reason(raised) if isinstance(raised, DBAPIError) else str(raised) or type(raised).__name__
        first_line = why.splitlines()[0].rstrip(".")
        copied = f", and {self._copy} is a copy of it" if self._copy else ""
        raise DatabaseRefused(
            f"{self._path} could not be upgraded from version {self._found} to {schema.HEAD} ({first_line}): "
            f"it is as it was{copied}; use the Kandev that it came from, and report this."
        ) from raised

"""Opens a database: finds out whether it can be ours before anything in it is touched, then brings it up to
date.

Not here: where the file lies (that is a setting), and locking the home against a second backend.
"""

import asyncio
import os
import tempfile
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

import structlog
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from kandev.core.errors import StoreFault
from kandev.ports.clock import Clock
from kandev.ports.store import Publisher
from kandev.storage import schema
from kandev.storage.copies import PARTIAL
from kandev.storage.examination import examine, refuse_other_files, way_back
from kandev.storage.faults import DatabaseRefused, told
from kandev.storage.files import add_name, beside, remove, sync
from kandev.storage.restoring import finish
from kandev.storage.sql.engine import connect, connect_memory
from kandev.storage.sql.inline import Hook, InlineStore
from kandev.storage.sql.store import SqlStore
from kandev.storage.upgrading import upgrade

log = structlog.get_logger(__name__)


class WallClock:
    """The machine's time, in UTC."""

    def now(self) -> str:
        """RFC 3339 with milliseconds."""
        return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def open_store(
    url_or_path: str,
    *,
    publisher: Publisher,
    commit_s: float,
    readers: int = 2,
    clock: Clock | None = None,
) -> SqlStore:
    """The store in this file (a path, or `sqlite:///` and a path), which is made when it is missing.

    DatabaseRefused, DatabaseTooNew or another StoreFault, one sentence each, when it cannot be; then
    nothing in the file was changed. `clock` stamps notifications.
    """
    path = database_path(url_or_path)
    connections = await asyncio.to_thread(_open, path, commit_s, readers)
    return SqlStore(connections, publisher=publisher, clock=clock or WallClock(), commit_s=commit_s)


def open_inline(
    publisher: Publisher,
    *,
    clock: Clock | None = None,
    hook: Hook | None = None,
    commit_s: float | None = None,
) -> InlineStore:
    """A new store in memory that runs inline. `commit_s` is in force only with a `hook`."""
    connection = connect_memory()
    with connection.begin():
        schema.upgrade(connection)
    return InlineStore(
        connection, publisher=publisher, clock=clock or WallClock(), hook=hook, commit_s=commit_s
    )


def database_path(url_or_path: str) -> Path:
    """The file, without symbolic links. DatabaseRefused for what is not SQLite, or names no file."""
    scheme, found, rest = url_or_path.partition("://")
    if not found:
        rest = url_or_path
    elif scheme.startswith("postgres"):
        raise DatabaseRefused("PostgreSQL is not built yet: use SQLite, with the path of a file.")
    elif scheme != "sqlite":
        raise DatabaseRefused(f"{scheme}:// is no database that Kandev knows: use the path of a file.")
    else:
        # sqlite:///relative and sqlite:////absolute, as SQLAlchemy spells them.
        rest = unquote(rest.removeprefix("/")) if rest.startswith("/") else ""
    if not rest or rest == ":memory:" or "\x00" in rest:
        raise DatabaseRefused(f"{url_or_path!r} names no file for the database: use the path of one.")
    # Where SQLite itself puts the files beside it.
    return Path(rest).resolve()


def _open(path: Path, commit_s: float, readers: int) -> list[Connection]:
    """The connection that writes and those that read."""
    try:
        if finish(path):
            log.warning("a restore that had been cut short was finished", path=str(path))
        if _is_new(path):
            _create(path, commit_s)
        _recover(path, commit_s)
        if examine(path, busy_s=commit_s) != schema.HEAD:
            upgrade(path, busy_s=commit_s)
        return _connections(path, commit_s, readers)
    except DBAPIError as error:
        fault = told(error)
        if isinstance(fault, StoreFault):
            raise DatabaseRefused(f"{path}: {fault.message}") from error
        raise
    except OSError as error:
        raise DatabaseRefused(f"{path} cannot be opened: {error.strerror}.") from error


def _is_new(path: Path) -> bool:
    """Whether there is nothing yet. OSError, or DatabaseRefused for what cannot be ours."""
    if not os.path.lexists(path):
        if os.path.lexists(left := beside(path, "-wal")):
            raise DatabaseRefused(
                f"{path} is gone and its log {left} is there: put the file back, {way_back(path)}, "
                "or remove the log to begin anew."
            )
        return True
    refuse_other_files(path)
    if not os.access(path, os.W_OK):
        raise DatabaseRefused(f"{path} cannot be written: make it writable, or name another file.")
    return False


def _create(path: Path, busy_s: float) -> None:
    """A whole database or none: made under another name. Only its owner can read it, for the secrets of agent
    profiles stand in it.
    """
    descriptor, name = tempfile.mkstemp(PARTIAL, f".{path.stem}.", path.parent)
    os.close(descriptor)
    begun = Path(name)
    try:
        with connect(begun, busy_s=busy_s, writing=True) as connection, connection.begin():
            schema.upgrade(connection)
        sync(begun)
        # Somebody else's, made meanwhile, is as good.
        with suppress(FileExistsError):
            add_name(begun, path)
        sync(path.parent)
    finally:
        remove(begun)


def _recover(path: Path, busy_s: float) -> None:
    """What a killed program left half-done that keeps its log in another way than we do is undone by SQLite,
    which has to write for that.
    """
    if os.path.lexists(beside(path, "-journal")):
        with connect(path, busy_s=busy_s, writing=False) as connection:
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").all()


def _connections(path: Path, commit_s: float, readers: int) -> list[Connection]:
    with ExitStack() as opened:
        writing = opened.enter_context(connect(path, busy_s=commit_s, writing=True))
        with writing.begin():
            # Nobody else writes at this moment, and nobody has changed it meanwhile.
            if schema.version(writing, str(path)) != schema.HEAD:
                raise DatabaseRefused(f"{path} is being changed by another program: end that one first.")
        reading = [
            opened.enter_context(connect(path, busy_s=commit_s, writing=False)) for _ in range(readers)
        ]
        opened.pop_all()
        return [writing, *reading]

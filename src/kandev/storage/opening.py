"""Opens a database: finds out whether it can be ours before anything in it is touched, then brings it up to
date.

Not here: where the file lies (that is a setting), and locking the home against a second backend.
"""

import asyncio
import os
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from kandev.core.errors import StoreFault
from kandev.ports.clock import Clock
from kandev.ports.store import Publisher
from kandev.storage import schema
from kandev.storage.faults import DatabaseRefused, told
from kandev.storage.sql.engine import connect, connect_memory, look
from kandev.storage.sql.inline import Hook, InlineStore
from kandev.storage.sql.store import SqlStore

MAGIC = b"SQLite format 3\x00"
"""How every SQLite database begins (https://www.sqlite.org/fileformat.html, 1.3)."""


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
    """The absolute path of the file. DatabaseRefused for what is not SQLite, or names no file."""
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
    return Path(rest).absolute()


def _open(path: Path, commit_s: float, readers: int) -> list[Connection]:
    """The connection that writes and those that read."""
    try:
        if _is_new(path):
            _create(path)
        else:
            with look(path, busy_s=commit_s) as connection:
                schema.version(connection, str(path))
        return _connections(path, commit_s, readers)
    except DBAPIError as error:
        fault = told(error)
        if isinstance(fault, StoreFault):
            raise DatabaseRefused(f"{path}: {fault.message}") from error
        raise
    except OSError as error:
        raise DatabaseRefused(f"{path} cannot be opened: {error.strerror}.") from error


def _is_new(path: Path) -> bool:
    """Whether there is nothing yet. OSError, or DatabaseRefused for what is no SQLite database."""
    if path.is_dir():
        raise DatabaseRefused(f"{path} is a folder: name a file for the database.")
    if not path.exists():
        return True
    if not path.is_file():
        raise DatabaseRefused(f"{path} is no ordinary file: name another one for the database.")
    if not os.access(path, os.W_OK):
        raise DatabaseRefused(f"{path} cannot be written: make it writable, or name another file.")
    with path.open("rb") as file:
        begin = file.read(len(MAGIC))
    if begin and begin != MAGIC:
        raise DatabaseRefused(f"{path} is no SQLite database: name another file.")
    return not begin


def _create(path: Path) -> None:
    """An empty file that only its owner can read: the secrets of agent profiles stand in it."""
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))


def _connections(path: Path, commit_s: float, readers: int) -> list[Connection]:
    with ExitStack() as opened:
        writing = opened.enter_context(connect(path, busy_s=commit_s, writing=True))
        with writing.begin():
            # Again, now that nobody else can write.
            if schema.version(writing, str(path)) != schema.HEAD:
                schema.upgrade(writing)
        reading = [
            opened.enter_context(connect(path, busy_s=commit_s, writing=False)) for _ in range(readers)
        ]
        opened.pop_all()
        return [writing, *reading]

"""Connections to SQLite: their pragmas, and transactions that begin when we say so.

The driver's own idea of when a transaction begins is switched off: a write takes the write lock at its
beginning (a lock that is only wanted half-way cannot be waited for), a read sees one snapshot from its
first look on. Parameters are hidden in errors, which go to the log: they hold what people say and secrets.
"""

from pathlib import Path
from sqlite3 import Connection as Driver
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

WAL_LIMIT_BYTES = 64 * 1024 * 1024
"""To this the write-ahead log is cut after a checkpoint; without a limit it stays as large as it ever was."""


def connect(path: Path, *, busy_s: float, writing: bool) -> Connection:
    """A connection of its own to the database, for one thread at a time. `busy_s`: how long to wait for
    another program.
    """
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"check_same_thread": False, "timeout": busy_s},
    )
    pragmas = ["foreign_keys = ON"]
    if writing:
        pragmas += [
            "journal_mode = WAL",
            # Not NORMAL: what was answered as sent, or acknowledged to agentctl's journal, must outlive a
            # power cut. The price, one sync per commit, is shared by all writes of a group.
            "synchronous = FULL",
            f"journal_size_limit = {WAL_LIMIT_BYTES}",
        ]
    else:
        pragmas.append("query_only = ON")
    return _connected(engine, pragmas, "BEGIN IMMEDIATE" if writing else "BEGIN")


def look(path: Path, *, busy_s: float) -> Connection:
    """A connection that changes nothing, not even what a killed program left in its log, and makes no
    file.
    """
    engine = create_engine(
        URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"}),
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"check_same_thread": False, "timeout": busy_s},
    )
    return _connected(engine, ["query_only = ON"], "BEGIN")


def connect_memory() -> Connection:
    """A connection to a new database in memory, which ends with it."""
    engine = create_engine(
        "sqlite://", poolclass=NullPool, hide_parameters=True, connect_args={"check_same_thread": False}
    )
    return _connected(engine, ["foreign_keys = ON"], "BEGIN")


def in_transaction(connection: Connection) -> bool:
    """False when the database ended the transaction by itself (a full disk, a failed read)."""
    driver: Any = connection.connection.dbapi_connection
    return bool(driver.in_transaction)


def allow_writing(connection: Connection, allowed: bool) -> None:
    """Whether statements may change the database from now on."""
    driver: Any = connection.connection.dbapi_connection
    driver.execute(f"PRAGMA query_only = {'OFF' if allowed else 'ON'}")


def _connected(engine: Engine, pragmas: list[str], begin: str) -> Connection:
    def at_connect(driver: Driver, _record: object) -> None:
        driver.isolation_level = None
        for pragma in pragmas:
            driver.execute(f"PRAGMA {pragma}")

    def at_begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    event.listen(engine, "connect", at_connect)
    event.listen(engine, "begin", at_begin)
    return engine.connect()

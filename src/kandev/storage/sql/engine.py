"""Connections to SQLite: their pragmas, and transactions that begin when we say so.

The driver's own idea of when a transaction begins is switched off: a write takes the write lock at its
beginning (a lock that is only wanted half-way cannot be waited for), a read sees one snapshot from its
first look on. Parameters are hidden in errors, which go to the log: they hold what people say and secrets.
"""

import threading
from pathlib import Path
from sqlite3 import Connection as Driver
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

WAL_LIMIT_BYTES = 64 * 1024 * 1024
"""To this the write-ahead log is cut after a checkpoint; without a limit it stays as large as it ever was."""
DAMAGES_SHOWN = 20
"""What is wrong with a damaged database can be a million lines; the first ones tell the kind."""


def connect(path: Path, *, busy_s: float, writing: bool, enforcing: bool = True) -> Connection:
    """A connection of its own to the database, for one thread at a time. `busy_s`: how long to wait for
    another program; `enforcing`: whether foreign keys are.
    """
    engine = create_engine(
        URL.create("sqlite", database=str(path)),
        poolclass=NullPool,
        hide_parameters=True,
        connect_args={"check_same_thread": False, "timeout": busy_s},
    )
    # Temporary tables and undo logs in memory: neither a full /var/tmp nor a missing descriptor may fail a
    # transaction whose own disk is well.
    pragmas = [f"foreign_keys = {'ON' if enforcing else 'OFF'}", "temp_store = MEMORY"]
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


def look(path: Path, *, busy_s: float, immutable: bool = False) -> Connection:
    """A connection that changes nothing, not even what a killed program left in its log.

    `immutable`: nobody has it open and no log lies beside it; then it is read without locks and files of
    SQLite's own, also where nothing can be written.
    """
    query = {"mode": "ro", "uri": "true"} | ({"immutable": "1"} if immutable else {})
    engine = create_engine(
        URL.create("sqlite", database=f"file:{quote(str(path))}", query=query),
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


def driver_of(connection: Connection) -> Any:
    """The driver's own connection, for what SQLAlchemy has no word for."""
    return connection.connection.dbapi_connection


def in_transaction(connection: Connection) -> bool:
    """False when the database ended the transaction by itself (a full disk, a failed read)."""
    return bool(driver_of(connection).in_transaction)


def allow_writing(connection: Connection, allowed: bool) -> None:
    """Whether statements may change the database from now on."""
    driver_of(connection).execute(f"PRAGMA query_only = {'OFF' if allowed else 'ON'}")


def damages(connection: Connection, *, thorough: bool, within_s: float | None = None) -> list[str] | None:
    """What SQLite finds wrong in its pages, in its own words; None when it could not look at all of them
    within so many seconds. `thorough`: also whether indexes hold what their tables do.

    Raises DBAPIError for what is too damaged to be looked through.
    """
    check = f"PRAGMA {'integrity_check' if thorough else 'quick_check'}({DAMAGES_SHOWN})"
    late = threading.Event()

    def interrupt() -> None:
        late.set()
        driver_of(connection).interrupt()

    timer = threading.Timer(within_s or 0, interrupt)
    if within_s is not None:
        timer.start()
    try:
        rows = connection.exec_driver_sql(check).scalars().all()
    except OperationalError:
        if not late.is_set():
            raise
        return None
    finally:
        timer.cancel()
        if within_s is not None:
            timer.join()
    # What was interrupted may report as wrong what it only did not reach.
    return None if late.is_set() else [words for row in rows for words in row.splitlines() if _tells(words)]


def _tells(words: str) -> bool:
    return words != "ok" and not words.startswith("***")


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

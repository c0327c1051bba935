"""Everything that can be seen of a round when all is quiet, as plain data: the census judges nothing else."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.e2e.kandev import Kandev
from tests.torture.agentlog import AgentLog, read_logs
from tests.torture.house import House, Running, running
from tests.torture.ledger import Ledger, now
from tests.torture.watcher import Heard

Row = dict[str, Any]
JSON_COLUMNS = {"value", "payload", "metadata"}
TABLES = ("tasks", "sessions", "turns", "entries", "executions", "streams", "notifications")
PAGE = 500


@dataclass
class Books:
    """The database, as rows, at one moment; `messages` by session, from the public door."""

    tasks: list[Row] = field(default_factory=list)
    sessions: list[Row] = field(default_factory=list)
    turns: list[Row] = field(default_factory=list)
    entries: list[Row] = field(default_factory=list)
    executions: list[Row] = field(default_factory=list)
    streams: list[Row] = field(default_factory=list)
    notifications: list[Row] = field(default_factory=list)
    messages: dict[str, list[Row]] = field(default_factory=dict)
    read_at: str = "9"
    """What was answered later is not judged by these rows."""
    faults: list[str] = field(default_factory=list)
    """What `integrity_check` and `foreign_key_check` found."""


@dataclass
class Evidence:
    """`books` and `living` are of the quiet moment, the rest of the end."""

    ledger: Ledger = field(default_factory=Ledger)
    books: Books = field(default_factory=Books)
    agents: list[AgentLog] = field(default_factory=list)
    heard: list[Heard] = field(default_factory=list)
    living: list[Running] = field(default_factory=list)
    left: list[Running] = field(default_factory=list)
    """Processes with the home's mark when everything was ended."""
    groups: list[str] = field(default_factory=list)
    """Control groups of the home's executions that are there still."""
    files: list[str] = field(default_factory=list)
    """What lies in the home at the end, relative to it."""
    complaints: list[str] = field(default_factory=list)
    """Lines of the programs' logs that tell of a bug."""
    descriptors: dict[str, int] = field(default_factory=dict)
    """Open files of backend and agentctl when no agent lived any more, by name of the program."""
    swept: float = 0
    """Sessions that the sweep had to find."""


def read_books(database: Path) -> Books:
    """One consistent look."""
    books = Books(read_at=now())
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("BEGIN")
        for table in TABLES:
            order = " ORDER BY stream, stream_id, seq" if table == "notifications" else ""
            found = connection.execute(f"SELECT * FROM {table}{order}").fetchall()
            setattr(books, table, [_row(row) for row in found])
        for check in ("integrity_check", "foreign_key_check"):
            books.faults += [
                str(tuple(r)) for r in connection.execute(f"PRAGMA {check}") if tuple(r) != ("ok",)
            ]
    finally:
        connection.close()
    return books


def _row(row: sqlite3.Row) -> Row:
    return {
        name: json.loads(row[name]) if name in JSON_COLUMNS and row[name] is not None else row[name]
        for name in row.keys()  # noqa: SIM118 - a sqlite3.Row iterates over its values
    }


async def transcript(kandev: Kandev, session_id: str) -> list[Row]:
    """The whole of it, page by page."""
    found: list[Row] = []
    while True:
        after = {"after": found[-1]["id"]} if found else {}
        asked = {"session_id": session_id, "limit": PAGE, **after}
        page = (await kandev.call("message.list", asked))["messages"]
        found += page
        if len(page) < PAGE:
            return found


async def quiet_evidence(house: House, ledger: Ledger) -> Evidence:
    """Taken while the backend lives and nothing moves."""
    books = read_books(house.home / "kandev.db")
    for session in books.sessions:
        books.messages[session["id"]] = await transcript(house, session["id"])
    agents = [one for one in running(house.home) if one.execution]
    return Evidence(ledger, books, read_logs(house.agent_logs), living=agents, swept=await swept(house))


async def swept(house: House) -> float:
    """What this backend's sweep had to find."""
    for line in (await house.get("/metrics")).text.splitlines():
        if line.startswith("kandev_swept_sessions "):
            return float(line.split()[1])
    return 0.0

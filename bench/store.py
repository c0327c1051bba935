"""What the store adds to SQLite: a session's decisions, committed by one and by many writers side by side.

The decisions are the core's, booked by the product's own code: a message comes, the agent takes it, says
something, ends its turn. The floor runs the same statements with the same parameters in the same
transactions over the standard library's sqlite3, with the same pragmas, on a copy of the same database.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, event

from bench.decisions import Writer, seed
from bench.figures import Row, ms
from bench.ground import Ground
from kandev.core.records import Notification
from kandev.storage.opening import open_store
from kandev.storage.sql.engine import WAL_LIMIT_BYTES
from kandev.storage.sql.store import SqlStore

COMMIT_S = 60.0
PRAGMAS = (
    "foreign_keys = ON",
    "journal_mode = WAL",
    "synchronous = FULL",
    f"journal_size_limit = {WAL_LIMIT_BYTES}",
)
"""Of the connection that writes (`kandev.storage.sql.engine`)."""
FLOOR = "raw sqlite3, same statements"

Statement = tuple[str, Any]


@dataclass
class Run:
    """Seconds for all, and per decision."""

    took: float
    waits: list[float] = field(default_factory=list)


class _Nobody:
    def publish(self, notifications: Sequence[Notification]) -> None:
        """Nobody listens."""


async def measure(ground: Ground) -> Sequence[Row]:
    """One writer, then many."""
    rows: list[Row] = []
    for count in ground.sizes.writers:
        each = max(1, ground.sizes.decisions // count // len(Writer.STEPS))
        file, seen, copy = (ground.folder / f"{name}-{count}.db" for name in ("ours", "seen", "raw"))
        async with asyncio.timeout(COMMIT_S):
            ids = await _seeded(file, count)
        for other in (seen, copy):
            shutil.copyfile(file, other)
        statements: list[Statement] = []
        with _written_down(statements):
            await _run(seen, ids, each)
        floor = await asyncio.to_thread(_replay, copy, statements)
        ours = await _run(file, ids, each)
        rows += _rows(count, ours, len(ours.waits) / floor)
    return rows


def _rows(count: int, ours: Run, floor: float) -> list[Row]:
    of = f"{count} writer{'s' if count > 1 else ''}"
    return [
        Row(f"decisions committed, {of}", "/s", len(ours.waits) / ours.took, floor, FLOOR),
        Row(f"a decision until it is committed, {of}", "ms", ms(ours.waits)),
    ]


async def _opened(file: Path) -> SqlStore:
    return await open_store(str(file), publisher=_Nobody(), commit_s=COMMIT_S)


async def _seeded(file: Path, count: int) -> list[str]:
    store = await _opened(file)
    try:
        return await seed(store, count)
    finally:
        await store.close()


async def _run(file: Path, ids: Sequence[str], each: int) -> Run:
    store = await _opened(file)
    try:
        writers = [await Writer.of(store, id) for id in ids]
        began = time.monotonic()
        async with asyncio.TaskGroup() as group:
            done = [group.create_task(writer.write(each)) for writer in writers]
        took = time.monotonic() - began
    finally:
        await store.close()
    return Run(took, [wait for task in done for wait in task.result()])


@contextmanager
def _written_down(statements: list[Statement]) -> Iterator[None]:
    """What is executed meanwhile is kept, in order."""

    def executed(_: Connection, __: Any, statement: str, parameters: Any, ___: Any, ____: bool) -> None:
        statements.append((statement, parameters))

    def committed(_: Connection) -> None:
        statements.append(("COMMIT", ()))

    event.listen(Engine, "before_cursor_execute", executed)
    event.listen(Engine, "commit", committed)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", executed)
        event.remove(Engine, "commit", committed)


def _replay(file: Path, statements: Sequence[Statement]) -> float:
    """Seconds for the transactions that write, as they were."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for pragma in PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
        begun = next(n for n, (text, _) in enumerate(statements) if text == "SAVEPOINT one")
        began = time.monotonic()
        connection.execute("BEGIN IMMEDIATE")
        for text, parameters in statements[begun:]:
            connection.execute(text, parameters).fetchall()
        return time.monotonic() - began

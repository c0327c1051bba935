"""One schedule's house: a database from a template, the simulated world, and backends that come and go."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator, MutableMapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, NoReturn, cast
from unittest.mock import patch

import structlog
from sqlalchemy import Connection

from kandev.core.board import Profile, Repository, Step, Task, Worktree
from kandev.core.errors import KandevError
from kandev.ports.catalogue import Catalogue
from kandev.ports.store import Tx
from kandev.ports.worktrees import Worktrees
from kandev.runtime import keeper
from kandev.runtime.deadlines import Deadlines
from kandev.runtime.outer import Outer
from kandev.runtime.registry import Sessions
from kandev.storage import schema
from kandev.storage.sql.engine import connect_memory
from kandev.storage.sql.group import write_together
from kandev.storage.sql.inline import InlineStore
from kandev.usecases.context import Context
from tests.simulation.faults import Faults
from tests.simulation.loop import Domain
from tests.simulation.watch import Watcher
from tests.simulation.world import Wire, World
from tests.storage import rows

DEADLINES = Deadlines(queue_max=4)
TASKS = ("t1", "t2")
STARTED = datetime(2026, 1, 31, 9, 15, tzinfo=UTC)


class VirtualClock:
    """The loop's time, as people read it."""

    def now(self) -> str:
        at = STARTED + timedelta(seconds=asyncio.get_running_loop().time())
        return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class CountingIds:
    """`session-1`, `entry-2`, …"""

    def __init__(self) -> None:
        self._last = 0

    def new(self, noun: str) -> str:
        self._last += 1
        return f"{noun}-{self._last}"


class Folders:
    """Worktrees without a disk."""

    def place(self, task: Task, repository: Repository | None) -> Worktree:
        return Worktree(task.id, f"/simulated/{task.id}")

    async def prepare(self, worktree: Worktree, *_: object) -> Worktree:
        return worktree


STEPS = (
    Step("s1", "f1", "Waits", 0, {"on_turn_start": [{"type": "move_to_next"}]}),
    Step("s2", "f1", "Works", 1, {"on_turn_complete": [{"type": "move_to_previous"}]}),
)
"""A turn that begins moves a card to Works, one that is completed moves it back."""


@cache
def _template() -> tuple[Connection, bytes]:
    """A connection, and the bytes of a database with a board and two tasks."""
    connection = connect_memory()
    with connection.begin():
        schema.upgrade(connection)

    def board(tx: Tx) -> None:
        tx.workspaces.insert(rows.workspace())
        tx.workflows.insert(rows.workflow(steps=STEPS))
        tx.profiles.insert(Profile("p1", "Simulated", "acp", ("simulated-agent",), rows.NOW, rows.NOW))
        for id in TASKS:
            tx.tasks.insert(rows.task(id))

    write_together(connection, VirtualClock(), [board]).attempts[0].result()
    driver = cast(sqlite3.Connection, connection.connection.driver_connection)
    return connection, driver.serialize()


class Backend:
    """One life of the backend."""

    def __init__(self, store: InlineStore, wire: Wire, context: Context, domain: Domain) -> None:
        self.store, self.wire, self.ctx, self.domain = store, wire, context, domain

    @property
    def sessions(self) -> Sessions:
        return self.ctx.sessions


class Rig:
    """`backend` is None while there is none."""

    def __init__(self, seed: int, idle_sleep_s: float = 0.0) -> None:
        connection, image = _template()
        self.rows = cast(sqlite3.Connection, connection.connection.driver_connection)
        self.rows.deserialize(image)
        self.faults = Faults(seed)
        self.world = World(self.faults)
        self.watch = Watcher(self.rows, self.world)
        self.world.watch = self.watch
        self.ids, self.clock = CountingIds(), VirtualClock()
        self.deadlines = replace(DEADLINES, idle_sleep_s=idle_sleep_s)
        self.backend: Backend | None = None
        self.swept = 0
        self._store = InlineStore(
            connection,
            publisher=self.watch,
            clock=self.clock,
            hook=self.faults.at_store,
            commit_s=DEADLINES.commit_s,
        )
        self._lives: list[Domain] = []

    async def start(self) -> Backend:
        """As `bootstrap` does it: epoch, actors of what is under way, then the sweep and the orphans."""
        assert self.backend is None
        while True:
            domain = Domain(f"backend {len(self._lives) + 1}")
            self._lives.append(domain)
            with domain.entered():
                starting = asyncio.create_task(self._start(domain))
            await asyncio.wait({starting})
            try:
                self.backend = starting.result()
                return self.backend
            except KandevError:  # the program ends with a sentence, and is started again
                await domain.end()

    async def _start(self, domain: Domain) -> Backend:
        wire = Wire(self.world)
        await wire.attach(await self._store.write(lambda tx: tx.next_epoch()))
        folders = cast(Worktrees, Folders())
        outer = Outer(self._store, wire, folders, self.clock, self.ids, self.deadlines)
        sessions = Sessions(outer)
        catalogue = cast(Catalogue, None)
        context = Context(self._store, sessions, folders, catalogue, self.clock, self.ids, self.deadlines)
        await sessions.recover()
        backend = Backend(self._store, wire, context, domain)
        sessions.sweep_forever()
        asyncio.create_task(self._end_orphans(backend))  # noqa: RUF006 - the domain owns it
        return backend

    async def _end_orphans(self, backend: Backend) -> None:
        with contextlib.suppress(KandevError):
            for running in await backend.wire.known(10):
                value = self.watch.stored(running.session_id)
                if value is None or value.execution != running.execution:
                    await backend.wire.forget(running.execution, 10)

    async def kill(self) -> None:
        """SIGKILL: its tasks end where they stand, its memory is gone; requests that it sent arrive."""
        if (backend := self.backend) is None:
            return
        self.backend = None
        self.swept += backend.sessions.swept
        backend.wire.cut = True
        self._store = await backend.store.killed(self.watch, self.faults.at_store)
        await backend.domain.end()

    async def abandon(self) -> None:
        """End everything where it stands: the schedule is over."""
        for domain in (*self._lives, self.world.domain):
            await domain.end()

    async def close(self) -> None:
        """An orderly end. Nothing may be left."""
        if (backend := self.backend) is not None:
            self.swept += backend.sessions.swept
            await backend.sessions.close()
            while begun := [task for task in backend.store._begun if not task.done()]:
                await asyncio.wait(begun)
        await self.world.close()
        for domain in self._lives:
            left = [task for task in domain.tasks if not task.done()]
            self.watch.holds(not left, "nothing is left", str(left))
            await domain.end()
        await self.world.domain.end()


@contextlib.contextmanager
def watched(rig: Rig) -> Iterator[None]:
    """Every decision's booking is seen; a bug that the product contains is a violation here."""
    book, config = vars(keeper)["book"], structlog.get_config()

    def heard(_: object, __: str, event: MutableMapping[str, Any]) -> NoReturn:
        if event.get("event") in ("actor", "effect"):
            told = structlog.processors.format_exc_info(None, "", dict(event))
            rig.watch.violated("no bug", str(told.get("exception")))
        raise structlog.DropEvent

    level = structlog.make_filtering_bound_logger(40)
    structlog.configure(processors=[heard], wrapper_class=level, cache_logger_on_first_use=False)
    try:
        with patch.object(keeper, "book", rig.watch.watched(book)):
            yield
    finally:
        structlog.configure(**config)

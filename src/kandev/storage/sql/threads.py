"""The threads that touch the database file: one that writes, a few that read. Each has a connection of its
own.

Results go back to the event loop with one call per group: what was published first, then whoever waits.
"""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import cast

import structlog
from sqlalchemy import Connection

from kandev.core.errors import Unavailable
from kandev.core.records import Notification
from kandev.ports.clock import Clock
from kandev.storage.faults import DatabaseDamaged
from kandev.storage.sql.group import (
    Attempt,
    Function,
    TakenOver,
    read_snapshot,
    write_together,
)

GROUP = 64
"""Writes that share one commit, at most: so that the first one need not wait for many."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Job:
    """A function and who waits for it."""

    function: Function
    waiter: asyncio.Future[object]


class Home:
    """The way back to the event loop.

    `publish` gets the notifications of a commit. `finished` counts the jobs that were done, which tells a
    slow database from one that stands still. `damage` is a sentence as soon as one of them met damage,
    `hindrance` one from a write that the machine did not take to the next that it took. Writes are refused,
    and `taken_over` is set, once the database has another epoch than `owner` (None: it has no owner yet).
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, publish: Callable[[Sequence[Notification]], None]
    ) -> None:
        self.finished = 0
        self.damage: str | None = None
        self.hindrance: str | None = None
        self.owner: int | None = None
        self.taken_over = asyncio.Event()
        self._loop = loop
        self._publish = publish

    def bring(self, jobs: Sequence[Job], attempts: Sequence[Attempt], added: Sequence[Notification]) -> None:
        """From a thread: hands over what came of the jobs."""
        for attempt in attempts:
            if isinstance(attempt.failure, DatabaseDamaged) and self.damage is None:
                self.damage = attempt.failure.message
                log.error("the database is damaged, so no write is taken", exc_info=attempt.failure)
        self.call(lambda: self._deliver(jobs, attempts, added))

    def wrote(self, failure: BaseException | None) -> None:
        """From the thread that writes: how the last commit ended."""
        if failure is None or isinstance(failure, Unavailable):
            self.hindrance = None if failure is None else failure.message
        if isinstance(failure, TakenOver):
            self.call(self.taken_over.set)

    def call(self, then: Callable[[], None]) -> None:
        """From a thread: runs it on the loop. Nothing happens when the loop is closed, and with it all that
        waited.
        """
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(then)

    def _deliver(
        self, jobs: Sequence[Job], attempts: Sequence[Attempt], added: Sequence[Notification]
    ) -> None:
        try:
            if added:
                self._publish(added)
        finally:
            self.finished += len(jobs)
            for job, attempt in zip(jobs, attempts, strict=True):
                if job.waiter.done():
                    continue
                if attempt.failure is None:
                    job.waiter.set_result(attempt.value)
                else:
                    job.waiter.set_exception(attempt.failure)


Work = Callable[[Sequence[Job]], None]


class Worker:
    """A thread that takes jobs from a queue until None comes. It belongs to the store, which awaits `ended`.

    `many`: how many jobs it takes at once. A daemon, so that a disk that stands still does not keep the
    program.
    """

    def __init__(self, name: str, queue: "SimpleQueue[Job | None]", work: Work, many: int = 1) -> None:
        self._queue = queue
        self._work = work
        self._many = many
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._last: Callable[[], None] = lambda: None

    def start(self, last: Callable[[], None]) -> None:
        """`last` is called in the thread, at its end."""
        self._last = last
        self._thread.start()

    def join(self) -> None:
        """After `last`: returns as soon as the thread is gone."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while jobs := self._take():
                self._work(jobs)
        finally:
            self._last()

    def _take(self) -> list[Job]:
        """Waits for a job and takes those that came meanwhile; none at the end."""
        jobs: list[Job] = []
        while len(jobs) < self._many:
            try:
                job = self._queue.get(block=not jobs)
            except Empty:
                break
            if job is None:
                if jobs:
                    self._queue.put(None)
                break
            jobs.append(job)
        return jobs


def writer(connection: Connection, clock: Clock, home: Home) -> Work:
    """The work of the thread that writes."""

    def work(jobs: Sequence[Job]) -> None:
        if home.damage is not None:
            home.bring(jobs, [Attempt(DatabaseDamaged(home.damage)) for _ in jobs], ())
            return
        before = _changes(connection)
        done = write_together(connection, clock, [job.function for job in jobs], home.owner)
        failures = (done.failure, *(attempt.failure for attempt in done.attempts))
        failure = next((one for one in failures if isinstance(one, Unavailable)), done.failure)
        if failure is not None or _changes(connection) != before:
            home.wrote(failure)  # a look through the writer says nothing of the disk
        home.bring(jobs, done.attempts, done.notifications)

    return work


def _changes(connection: Connection) -> int:
    """Rows that this connection has changed so far."""
    return int(cast(sqlite3.Connection, connection.connection.driver_connection).total_changes)


def reader(connection: Connection, clock: Clock, home: Home) -> Work:
    """The work of a thread that reads."""

    def work(jobs: Sequence[Job]) -> None:
        home.bring(jobs, [read_snapshot(connection, clock, job.function) for job in jobs], ())

    return work

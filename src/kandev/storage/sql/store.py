"""The store on a SQLite file: functions run in threads, their results come back to the event loop."""

import asyncio
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import TypeVar, cast

from sqlalchemy import Connection

from kandev.core.errors import StoreFault, Unavailable
from kandev.ports.clock import Clock
from kandev.ports.store import Publisher, Tx
from kandev.runtime.awake import Within
from kandev.storage.sql.threads import GROUP, Home, Job, Work, Worker, reader, writer

T = TypeVar("T")

CLOSED = "The database is closed: Kandev is shutting down."
SLOW_WRITE = (
    "The disk of the database is slow: a write was not confirmed in time and may still happen. "
    "Look at the disk, and look before you ask again."
)
SLOW_READ = "The disk of the database is slow: it gave no answer in time. Look at the disk, then ask again."
SLOW_CLOSE = "The database did not finish its last writes in time. Look at the disk."


class SlowDisk(Unavailable):
    """It did not answer in time."""


async def in_time(waiter: asyncio.Future[T], seconds: float | None, slow: str) -> T:
    """Its result, or after so many seconds SlowDisk with the sentence `slow`. What it waits for goes on."""
    limit = Within(seconds)
    try:
        async with limit:
            return await waiter
    except TimeoutError as error:
        if limit.expired:
            raise SlowDisk(slow) from error
        raise


class SqlStore:
    """See `ports.store.Store`. Made by `opening.open_store`, on the event loop that it will be used from.

    `commit_s`: seconds until a caller is told that it takes too long. A write counts as begun once `write`
    was awaited.
    """

    def __init__(
        self,
        connections: Sequence[Connection],
        *,
        publisher: Publisher,
        clock: Clock,
        commit_s: float,
    ) -> None:
        """`connections`: the one that writes, then those that read. They are the store's from now on."""
        self._loop = asyncio.get_running_loop()
        self._commit_s = commit_s
        self._connections = connections
        self._home = Home(self._loop, publisher.publish)
        self._writes: SimpleQueue[Job | None] = SimpleQueue()
        self._reads: SimpleQueue[Job | None] = SimpleQueue()
        self._closing: asyncio.Future[None] | None = None
        self._workers: list[Worker] = []
        self._ends: list[asyncio.Future[None]] = []
        write_one, *read_some = connections
        self._start("store-writer", self._writes, writer(write_one, clock, self._home), GROUP)
        for number, connection in enumerate(read_some, 1):
            self._start(f"store-reader-{number}", self._reads, reader(connection, clock, self._home), 1)

    @property
    def damage(self) -> str | None:
        """See `ports.store.Store`."""
        return self._home.damage

    @property
    def hindrance(self) -> str | None:
        """See `ports.store.Store`."""
        return self._home.hindrance

    @property
    def taken_over(self) -> asyncio.Event:
        """Set when a write met another epoch than ours: see `own`."""
        return self._home.taken_over

    def own(self, epoch: int) -> None:
        """From now on nothing is written but under this epoch: a backend that was paused, and replaced while
        it was, writes nothing any more."""
        self._home.owner = epoch

    async def write(self, f: Callable[[Tx], T], deadline: float | None = None) -> T:
        """Runs `f` in one transaction."""
        try:
            return await self._ask(self._writes, f, deadline, SLOW_WRITE)
        except SlowDisk as slow:
            self._home.hindrance = slow.message
            raise

    async def read(self, f: Callable[[Tx], T], deadline: float | None = None) -> T:
        """Runs `f` in a snapshot."""
        try:
            return await self._ask(self._reads, f, deadline, SLOW_READ)
        except SlowDisk as slow:
            self._home.hindrance = self._home.hindrance or slow.message
            raise

    async def close(self) -> None:
        """Finishes all that was begun. StoreFault when nothing gets finished for `commit_s`; may be called
        again.
        """
        if self._closing is None:
            self._closing = self._loop.create_future()
            self._writes.put(None)
            for _ in self._workers[1:]:
                self._reads.put(None)
        await self._ended()
        await asyncio.to_thread(self._shut)

    async def _ask(
        self, queue: "SimpleQueue[Job | None]", f: Callable[[Tx], T], deadline: float | None, slow: str
    ) -> T:
        if self._closing is not None:
            raise StoreFault(CLOSED)
        waiter: asyncio.Future[object] = self._loop.create_future()
        queue.put(Job(f, waiter))
        return cast(T, await in_time(waiter, self._commit_s if deadline is None else deadline, slow))

    async def _ended(self) -> None:
        before = -1
        while waiting := [end for end in self._ends if not end.done()]:
            if self._home.finished == before:
                raise StoreFault(SLOW_CLOSE)
            before = self._home.finished
            await asyncio.wait(waiting, timeout=self._commit_s)

    def _shut(self) -> None:
        for worker in self._workers:
            worker.join()
        # The writer's last: with no reader left SQLite folds its log into the file.
        for connection in self._connections[::-1]:
            connection.close()

    def _start(self, name: str, queue: "SimpleQueue[Job | None]", work: Work, many: int) -> None:
        end: asyncio.Future[None] = self._loop.create_future()
        worker = Worker(name, queue, work, many)
        self._workers.append(worker)
        self._ends.append(end)
        worker.start(lambda: self._home.call(lambda: end.set_result(None)))

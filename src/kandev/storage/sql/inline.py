"""The store in memory, for tests and simulations: the same SQL, run inline on the event loop, without
threads.

With a hook every write is begun as a task of its own, so that a caller can give up before it happens, as
with the store on a file. Writes keep their order.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Literal, Protocol, TypeVar, cast

from sqlalchemy import Connection

from kandev.core.errors import StoreFault
from kandev.ports.clock import Clock
from kandev.ports.store import Publisher, Tx
from kandev.storage.sql.engine import allow_writing
from kandev.storage.sql.group import read_snapshot, write_together
from kandev.storage.sql.store import CLOSED, SLOW_READ, SLOW_WRITE, in_time

T = TypeVar("T")
Point = Literal["write", "answer", "read"]


class Hook(Protocol):
    """Awaited at a point; may take its time or raise StoreFault.

    `write`: before the function runs (raising: nothing is written). `answer`: after the commit and the
    publishing, before the caller hears of it (raising: written, and told to have failed). `read`: before a
    read.
    """

    def __call__(self, point: Point) -> Awaitable[None]: ...


class InlineStore:
    """See `ports.store.Store`. Without a hook an await of it yields to the loop exactly once, before the
    function.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        publisher: Publisher,
        clock: Clock,
        hook: Hook | None = None,
        commit_s: float | None = None,
    ) -> None:
        self._connection = connection
        self._publisher = publisher
        self._clock = clock
        self._hook = hook
        self._commit_s = commit_s
        self._closed = False
        self._order = asyncio.Lock()
        self._begun: set[asyncio.Task[Any]] = set()
        self._yielding = 0
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def damage(self) -> str | None:
        """See `ports.store.Store`: memory is not damaged."""
        return None

    @property
    def hindrance(self) -> str | None:
        """See `ports.store.Store`: memory is not full."""
        return None

    async def write(self, f: Callable[[Tx], T], deadline: float | None = None) -> T:
        """Runs `f` in one transaction."""
        self._check_open()
        if self._hook is not None:
            return cast(T, await self._wait(self._hooked_write(self._hook, f), deadline, SLOW_WRITE))
        await self._yield()
        return cast(T, self._write_now(f))

    async def read(self, f: Callable[[Tx], T], deadline: float | None = None) -> T:
        """Runs `f` in a snapshot."""
        self._check_open()
        if self._hook is not None:
            return cast(T, await self._wait(self._hooked_read(self._hook, f), deadline, SLOW_READ))
        await self._yield()
        return cast(T, self._read_now(f))

    async def close(self) -> None:
        """Finishes all that was begun; what is in memory is gone after it."""
        if not self._closed:
            self._closed = True
            while self._begun:
                await asyncio.wait(self._begun)
            await self._idle.wait()
            self._connection.close()

    async def killed(self, publisher: Publisher, hook: Hook | None = None) -> "InlineStore":
        """As after `kill -9` and a new start: what is committed is there, what was begun is not. This one
        is closed.
        """
        self._closed = True
        for task in list(self._begun):
            task.cancel()
        await asyncio.gather(*self._begun, return_exceptions=True)
        return InlineStore(
            self._connection, publisher=publisher, clock=self._clock, hook=hook, commit_s=self._commit_s
        )

    def _check_open(self) -> None:
        if self._closed:
            raise StoreFault(CLOSED)

    async def _yield(self) -> None:
        self._yielding += 1
        self._idle.clear()
        try:
            await asyncio.sleep(0)
        finally:
            self._yielding -= 1
            if not self._yielding:
                # Heard in a later turn of the loop, when the function behind this has run.
                self._idle.set()

    def _write_now(self, f: Callable[[Tx], Any]) -> Any:
        done = write_together(self._connection, self._clock, [f])
        if done.notifications:
            self._publisher.publish(done.notifications)
        return done.attempts[0].result()

    def _read_now(self, f: Callable[[Tx], Any]) -> Any:
        allow_writing(self._connection, False)
        attempt = read_snapshot(self._connection, self._clock, f)
        allow_writing(self._connection, True)
        return attempt.result()

    async def _hooked_write(self, hook: Hook, f: Callable[[Tx], Any]) -> Any:
        async with self._order:
            await hook("write")
            value = self._write_now(f)
        await hook("answer")
        return value

    async def _hooked_read(self, hook: Hook, f: Callable[[Tx], Any]) -> Any:
        await hook("read")
        return self._read_now(f)

    async def _wait(self, work: Coroutine[Any, Any, Any], deadline: float | None, slow: str) -> Any:
        task = asyncio.get_running_loop().create_task(work)
        self._begun.add(task)
        task.add_done_callback(self._forget)
        seconds = self._commit_s if deadline is None else deadline
        return await in_time(asyncio.shield(task), seconds, slow)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._begun.discard(task)
        if not task.cancelled():
            # Looked at, so that a failure nobody waits for any more is not reported as lost.
            task.exception()

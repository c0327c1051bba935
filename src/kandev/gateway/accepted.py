"""Owns the requests under way: one that was accepted goes on when the one who asked goes away.

At the end of the application they are awaited for a while; then who waits for an answer hears that there will
be none, and what is left is cancelled. Not here: how a request is answered.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

from kandev.gateway.errors import Leaving

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Accepted:
    """The tasks of requests."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._leaving = asyncio.Event()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run it to its end, whoever waits for it."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def answer(self, work: asyncio.Task[T], gone: Coroutine[Any, Any, object]) -> T | None:
        """What `work` comes to; None when `gone` ends first: the one who asked went away. Raises Leaving.
        `work` goes on in either case."""
        leaving = asyncio.ensure_future(self._leaving.wait())
        others: list[asyncio.Future[Any]] = [asyncio.ensure_future(gone), leaving]
        try:
            await asyncio.wait([work, *others], return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            if others[0].done():
                return None
            raise Leaving
        finally:
            for other in others:
                other.cancel()
            await asyncio.wait(others)

    def leave(self) -> None:
        """Nobody is to wait for an answer any more."""
        self._leaving.set()

    async def close(self, deadline: float) -> None:
        """Wait for `deadline` seconds, or until `leave`, then cancel what is left."""
        if self._tasks:
            leaving: asyncio.Future[Any] = asyncio.ensure_future(self._leaving.wait())
            all_done: asyncio.Future[Any] = asyncio.ensure_future(asyncio.wait(list(self._tasks)))
            await asyncio.wait([all_done, leaving], timeout=deadline, return_when=asyncio.FIRST_COMPLETED)
            for waiter in (all_done, leaving):
                waiter.cancel()
        left = list(self._tasks)
        for task in left:
            log.warning("request cut off by the end of the backend", request=task.get_name())
            task.cancel()
        if left:
            await asyncio.wait(left)

"""Owns the requests under way: one that was accepted goes on when the one who asked goes away.

At the end of the application they are awaited for a while, then cancelled. Not here: how a request is
answered.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import structlog

log = structlog.get_logger(__name__)
T = TypeVar("T")


class Accepted:
    """The tasks of requests."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run it to its end, whoever waits for it."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self, deadline: float) -> None:
        """Wait for `deadline` seconds, then cancel what is left."""
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=deadline)
        left = list(self._tasks)
        for task in left:
            log.warning("request cut off by the end of the backend", request=task.get_name())
            task.cancel()
        if left:
            await asyncio.wait(left)

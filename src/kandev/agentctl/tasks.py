"""The owner of an instance's asyncio tasks.

A task group would end all its tasks when one fails; here one failure is logged and touches nothing else,
and `close` cancels and awaits whatever is left.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from kandev.agentctl.failures import StartFailed

log = logging.getLogger(__name__)
T = TypeVar("T")


class Tasks:
    """A set of tasks with one way out."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, work: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, StartFailed):  # that is told to whoever launches
            log.error("task %s failed", task.get_name(), exc_info=error)

    async def close(self) -> None:
        """Cancel and await all, except the task that asks."""
        while left := [task for task in self._running if task is not asyncio.current_task()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left)


class Few:
    """Work beside its caller, owned by `tasks`, as long as fewer than `most` of it are under way: then the
    caller waits, so that who causes it waits too."""

    def __init__(self, tasks: Tasks, most: int) -> None:
        self._tasks = tasks
        self._most = most
        self._under_way: set[asyncio.Task[None]] = set()

    async def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Returns when it was begun."""
        try:
            while len(self._under_way) >= self._most:
                await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            work.close()
            raise
        task = self._tasks.start(work, name)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

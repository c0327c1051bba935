"""An event loop whose time is virtual and whose order is drawn from a seed.

When nothing is ready the clock jumps to the next timer; among what is ready the seed picks. Every task
belongs to a `Domain` (a backend, the world, the test), so that a kill can end all of one. No threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import heapq
import random
from collections.abc import Coroutine, Iterator
from typing import Any, Literal

Order = Literal["fifo", "random", "priority"]
ORDERS: tuple[Order, ...] = ("fifo", "random", "priority", "priority")
STEPS_AT_MOST = 400_000
"""Beyond that something spins."""


class Stuck(Exception):
    """The loop spins, or nothing can ever happen again."""


class Domain:
    """Who a task belongs to. Tasks that a task makes belong to its domain."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks: list[asyncio.Task[Any]] = []

    async def end(self) -> None:
        """Cancel until nothing is pending."""
        while pending := self.cancel_all():
            await asyncio.wait(pending)

    def cancel_all(self) -> list[asyncio.Task[Any]]:
        """Cancel what is pending, in order of creation."""
        pending = [task for task in self.tasks if not task.done()]
        for task in pending:
            task.cancel()
        return pending

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Tasks that are made inside belong here."""
        token = _domain.set(self)
        try:
            yield
        finally:
            _domain.reset(token)


_nobody = Domain("nobody")
_domain: contextvars.ContextVar[Domain] = contextvars.ContextVar("domain", default=_nobody)


class SeededLoop(asyncio.SelectorEventLoop):
    """One schedule: the same seed and the same program give the same run."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._virtual = 0.0
        self._draw = random.Random(seed)
        self._order: Order = self._draw.choice(ORDERS)
        self._weights: dict[Any, float] = {}
        self.steps = 0
        self.set_task_factory(_make_task)  # type: ignore[arg-type]

    def time(self) -> float:
        """Virtual seconds since the schedule began."""
        return self._virtual

    def _run_once(self) -> None:
        """One callback: the base class runs all that are ready, in order, and waits for real."""
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        while scheduled and (scheduled[0]._cancelled or (not ready and scheduled[0]._when > self._virtual)):
            if not scheduled[0]._cancelled:
                self._virtual = scheduled[0]._when
                break
            heapq.heappop(scheduled)._scheduled = False
        while scheduled and scheduled[0]._when <= self._virtual:
            timer = heapq.heappop(scheduled)
            timer._scheduled = False
            if not timer._cancelled:
                ready.append(timer)
        self.steps += 1
        if not ready and not self._stopping:  # type: ignore[attr-defined]
            raise Stuck("nothing is ready and no timer is set: somebody waits for ever")
        if self.steps > STEPS_AT_MOST:
            raise Stuck(f"more than {STEPS_AT_MOST} callbacks: something spins")
        if ready:
            handle = self._pick(ready)
            if not handle._cancelled:
                handle._run()

    def _pick(self, ready: Any) -> Any:
        count = len(ready)
        if count == 1 or self._order == "fifo":
            return ready.popleft()
        if self._order == "random":
            index = int(self._draw.random() * count)
        else:
            index = min(range(count), key=lambda i: self._weight(ready[i]))
        handle = ready[index]
        del ready[index]
        return handle

    def _weight(self, handle: Any) -> float:
        """Some tasks are slow for a while, so that others overtake them by many steps."""
        key = getattr(handle._callback, "__self__", None)
        if not isinstance(key, asyncio.Task):
            return self._draw.random()
        weight = self._weights.get(key)
        if weight is None or self._draw.random() < 0.05:
            weight = self._weights[key] = self._draw.random()
        return weight

    def _write_to_self(self) -> None:
        """No thread waits for us."""

    def finish(self) -> None:
        """Close; what is pending is thrown away silently."""
        self._ready.clear()  # type: ignore[attr-defined]
        self._scheduled.clear()  # type: ignore[attr-defined]
        self.close()


def _make_task(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **given: Any
) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **given)
    domain = _domain.get()
    if domain is not _nobody:
        domain.tasks.append(task)
    return task

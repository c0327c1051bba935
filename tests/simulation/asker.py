"""How people and agents ask in a schedule: each notes the answer, and none waits without end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kandev.core.errors import KandevError, NotFound
from kandev.usecases import add_message
from tests.simulation.loop import Domain
from tests.simulation.rig import DEADLINES, Backend, Rig

BOUND_S = DEADLINES.message_answer_s + 2 * DEADLINES.commit_s + 5 + 4 * DEADLINES.commit_s
"""No use case answers later: the registry's bound, and the store's for the look before and after."""
DELETE_BOUND_S = BOUND_S + DEADLINES.teardown_s + 2 * DEADLINES.commit_s


class Asker:
    """One schedule's askers. `log` tells what they heard."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.domain = Domain("clients")
        self.log: Callable[[str], None] = lambda line: None
        self.asking: list[asyncio.Task[Any]] = []
        """Requests under way, for who goes away."""
        self.refused: set[str] = set()
        """Tokens of messages that were refused: they must not exist."""

    def ask(self, name: str, request: Callable[[Backend], Awaitable[Any]], bound: float = BOUND_S) -> None:
        """Begin; the answer comes when it comes."""
        backend = self.rig.backend
        if backend is None:
            return
        with backend.domain.entered():
            inner = asyncio.create_task(_begun(request, backend), name=name)
        self.asking.append(inner)
        with self.domain.entered():
            asyncio.create_task(self._bounded(name, inner, bound))  # noqa: RUF006 - the domain owns it

    async def _bounded(self, name: str, inner: asyncio.Task[Any], bound: float) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.wait({inner}, timeout=bound)
        self.rig.watch.holds(inner.done(), "answered in time", f"{name} has no answer after {bound:g} s")
        if not inner.done():
            inner.cancel()
            return
        self.asking.remove(inner)
        heard = "cut off" if inner.cancelled() else inner.exception() or inner.result()
        self.log(f"{name} after {loop.time() - began:.2f} s: {heard}")
        if isinstance(heard, BaseException) and not isinstance(heard, KandevError):
            self.rig.watch.violated("no bug", f"{name}: {heard!r}")
        if isinstance(heard, NotFound) and heard.message == "session not found":
            there = self.rig.watch.stored(str((heard.details or {}).get("id") or name.rpartition(" ")[2]))
            self.rig.watch.holds(there is None, "answers are true", f"{name}: {heard}, and it is there")

    def _never(self, content: str) -> None:
        self.refused.add(content)

    def _entry_exists(self, added: add_message.Added, session_id: str) -> None:
        watch = self.rig.watch
        if watch.stored(session_id) is None:
            return
        row = watch.rows.execute("SELECT state FROM entries WHERE id = ?", (added.entry_id,)).fetchone()
        watch.holds(row, "answers are true", f"{added} has no row")
        if added.status == "sent":
            watch.holds(row and row[0] == "delivered", "answers are true", f"{added} is {row}")


async def _begun(request: Callable[[Backend], Awaitable[Any]], backend: Backend) -> Any:
    return await request(backend)

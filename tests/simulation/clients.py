"""People at the doors: each asks by a use case, notes the answer, and holds Kandev to it.

A client that is cut off (killed backend, gone away) knows nothing; one that got an answer got the truth.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from kandev.core.errors import KandevError, NotFound, QueueFull
from kandev.core.inputs import Ask, AutoRun, Clear, Draft, Interrupt, Reorder, Send, SendNow
from kandev.core.session import Entry
from kandev.core.views import current_turn
from kandev.usecases import (
    add_message,
    answer_permission,
    cancel_turn,
    delete_session,
    launch_session,
    queue_entries,
    recover_session,
    stop_session,
    stop_task,
)
from tests.simulation.loop import Domain
from tests.simulation.rig import DEADLINES, Backend, Rig

OVER = ("COMPLETED", "FAILED", "CANCELLED")
BOUND_S = DEADLINES.message_answer_s + 2 * DEADLINES.commit_s + 5 + 4 * DEADLINES.commit_s
"""No use case answers later: the registry's bound, and the store's for the look before and after."""
DELETE_BOUND_S = BOUND_S + DEADLINES.teardown_s + 2 * DEADLINES.commit_s


class Clients:
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

    # -- requests, and what their answers promise ---------------------------------------------------

    def message(self, session_id: str, task_id: str, content: str, key: str) -> None:
        async def request(backend: Backend) -> Any:
            try:
                added = await add_message.add_message(
                    backend.ctx, task_id=task_id, session_id=session_id, content=content, idempotency_key=key
                )
            except QueueFull as full:
                self._never(content)
                return full
            self._entry_exists(added, session_id)
            return added

        self.ask(f"message {key} to {session_id}", request)

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

    def launch(self, task_id: str, prompt: str) -> None:
        async def request(backend: Backend) -> Any:
            return await launch_session.launch_session(backend.ctx, task_id=task_id, prompt=prompt)

        self.ask(f"launch on {task_id}", request)

    def cancel(self, session_id: str) -> None:
        async def request(backend: Backend) -> Any:
            return await cancel_turn.cancel_turn(backend.ctx, session_id=session_id)

        self.ask(f"cancel {session_id}", request)

    def stop(self, session_id: str, *, force: bool) -> None:
        async def request(backend: Backend) -> Any:
            watch = self.rig.watch
            stops, resumes = watch.stops[session_id], watch.resumes[session_id]
            await stop_session.stop_session(backend.ctx, session_id=session_id, force=force)
            self._is_stopped(session_id, stops, resumes)

        self.ask(f"stop {session_id}", request)

    def _is_stopped(self, session_id: str, stops: int, resumes: int) -> None:
        watch = self.rig.watch
        watch.holds(watch.stops[session_id] > stops, "answers are true", f"{session_id} was not stopped")
        if watch.resumes[session_id] == resumes and watch.stored(session_id) is not None:
            watch.stopped.add(session_id)
            watch.holds(watch.state(session_id) in OVER, "answers are true", f"{session_id} goes on")

    def stop_task(self, task_id: str) -> None:
        async def request(backend: Backend) -> Any:
            watch = self.rig.watch
            stops, resumes = watch.stops.copy(), watch.resumes.copy()
            done = await stop_task.stop_task(backend.ctx, task_id=task_id)
            for session_id in done.stopped:
                self._is_stopped(session_id, stops[session_id], resumes[session_id])
            return done

        self.ask(f"stop task {task_id}", request, BOUND_S * 6)

    def resume(self, session_id: str) -> None:
        async def request(backend: Backend) -> Any:
            if self.rig.watch.state(session_id) == "CREATED":
                return await launch_session.launch_session(
                    backend.ctx,
                    task_id=self.task_of(session_id),
                    intent="start_created",
                    session_id=session_id,
                )
            return await recover_session.recover_session(backend.ctx, session_id=session_id)

        self.ask(f"resume {session_id}", request)

    def task_of(self, session_id: str) -> str:
        rows = self.rig.rows.execute("SELECT task_id FROM sessions WHERE id = ?", (session_id,)).fetchone()
        return str(rows[0]) if rows else "t0"

    def answer(self, session_id: str, request_id: str, *, how: int) -> None:
        given: dict[str, Any] = ({"option_id": "allow_once"}, {"rejected": True}, {"cancelled": True})[
            how % 3
        ]

        async def request(backend: Backend) -> Any:
            await answer_permission.answer_permission(
                backend.ctx, session_id=session_id, request_id=request_id, **given
            )

        self.ask(f"answer {request_id} with {given}", request)

    def remove(self, session_id: str, entry_id: str) -> None:
        async def request(backend: Backend) -> Any:
            return await queue_entries.remove_entry(backend.ctx, session_id=session_id, entry_id=entry_id)

        self.ask(f"remove {entry_id}", request)

    # -- peers, and people who arrange what waits ---------------------------------------------------

    def peer(self, session_id: str, content: str, name: str, *, interrupts: bool) -> None:
        """A parent's agent: it looks at the session first, and then asks, however much later that is."""
        watch, entry = self.rig.watch, Entry(f"entry of {name}", "peer")

        async def request(backend: Backend) -> Any:
            ctx = backend.ctx
            record = await ctx.store.read(lambda tx: tx.sessions.get(session_id))
            if record is None:
                return "deleted"
            noted = current_turn(record.value)
            if interrupts:
                watch.jumpers.add(entry.id)
                watch.aims.add((session_id, noted))
            interrupt = Interrupt(noted) if interrupts else None
            draft = Draft(content, f"message of {name}", sender_task_id="t9")
            limit = ctx.deadlines.queue_max
            heard = await ctx.sessions.ask(session_id, lambda a: Send(a, entry, draft, limit, interrupt))
            if heard.status in ("rejected", "queue_full"):
                self._never(content)
            elif watch.stored(session_id) is not None:
                self._is_true(entry.id, heard.status)
            return heard

        self.ask(f"{'interrupt' if interrupts else 'peer'} {name} to {session_id}", request)

    def _is_true(self, entry_id: str, status: str) -> None:
        watch = self.rig.watch
        row = watch.rows.execute("SELECT state FROM entries WHERE id = ?", (entry_id,)).fetchone()
        watch.holds(row, "answers are true", f"{entry_id} is {status}, and has no row")
        delivered = row and row[0] == "delivered"
        watch.holds(status != "sent" or delivered, "answers are true", f"{entry_id} sent, but {row}")

    def arrange(self, session_id: str, what: str, make: Callable[[str], Ask]) -> None:
        """One of the inputs about the queue."""

        async def request(backend: Backend) -> Any:
            return await backend.ctx.sessions.ask(session_id, make)

        self.ask(f"{what} {session_id}", request)

    def send_now(self, session_id: str, entry_id: str) -> None:
        watch = self.rig.watch
        watch.jumpers.add(entry_id)
        watch.sent_now.add(session_id)

        async def request(backend: Backend) -> Any:
            heard = await backend.ctx.sessions.ask(session_id, lambda a: SendNow(a, entry_id))
            if heard.status == "sent" and watch.stored(session_id) is not None:
                self._is_true(entry_id, heard.status)
            return heard

        self.ask(f"send {entry_id} now to {session_id}", request)

    def auto_run(self, session_id: str, on: bool) -> None:
        self.arrange(session_id, f"auto run {on}", lambda ask: AutoRun(ask, on))

    def reorder(self, session_id: str, by: int) -> None:
        value = self.rig.watch.stored(session_id)
        waiting = tuple(e.id for e in value.queue) if value else ()
        order = (*waiting[by:], *waiting[:by])
        self.arrange(session_id, "reorder", lambda ask: Reorder(ask, order))

    def clear(self, session_id: str) -> None:
        self.arrange(session_id, "clear", Clear)

    def delete(self, session_id: str) -> None:
        async def request(backend: Backend) -> Any:
            await delete_session.delete_session(backend.ctx, session_id=session_id)
            watch = self.rig.watch
            watch.holds(watch.stored(session_id) is None, "answers are true", f"{session_id} is there")
            living = self.rig.world.living(session_id)
            watch.holds(not living, "gone", f"{session_id} is deleted and {living} live")

        self.ask(f"delete {session_id}", request, DELETE_BOUND_S)


async def _begun(request: Callable[[Backend], Awaitable[Any]], backend: Backend) -> Any:
    return await request(backend)

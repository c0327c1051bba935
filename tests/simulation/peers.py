"""Agents that write to each other's sessions, people who arrange what waits, questions and their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from kandev.core.errors import QueueFull
from kandev.core.inputs import (
    Ask,
    AutoRun,
    Clear,
    Draft,
    Drain,
    Edit,
    Interrupt,
    Reorder,
    Send,
    SendNow,
)
from kandev.core.session import Entry
from kandev.core.views import current_turn
from kandev.usecases import add_message
from kandev.usecases.answer_question import Answer, answer_question
from kandev.usecases.ask_question import Asking, ask_question
from tests.simulation.asker import BOUND_S, Asker
from tests.simulation.rig import Backend

GIVEN_UP_S = (1.0, 8.0, 60.0)
"""When an agent's client gives up its call."""


class Peers(Asker):
    """Each looks first, and asks however much later that is."""

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

    def automation(self, session_id: str, content: str, name: str, key: str) -> None:
        """The latest result of something waits once."""

        async def request(backend: Backend) -> Any:
            try:
                added = await add_message.queue_message(
                    backend.ctx, session_id=session_id, content=content, coalescing_key=key
                )
            except QueueFull as full:
                self._never(content)
                return full
            self._entry_exists(added, session_id)
            return added

        self.ask(f"automation {name} to {session_id}", request)

    def edit(self, session_id: str, entry_id: str, content: str) -> None:
        self.arrange(
            session_id, f"edit {entry_id} of", lambda ask: Edit(ask, entry_id, f"{content}\nsay more")
        )

    def drain(self, session_id: str) -> None:
        self.arrange(session_id, "drain", Drain)

    def ask_a_person(self, session_id: str, name: str, *, how: int) -> None:
        """The agent's tool call: it waits, is given up after a while, or loses its answer on the way."""

        async def request(backend: Backend) -> Any:
            loop = asyncio.get_running_loop()
            call = Asking(served=loop.create_future())
            given_up = loop.call_later(GIVEN_UP_S[how % len(GIVEN_UP_S)], call.left.set)
            try:
                outcome = await ask_question(backend.ctx, session_id, name, {"prompt": name}, call)
            finally:
                given_up.cancel()
                if call.served is not None and not call.served.done():
                    call.served.set_result(how % 3 != 0)
            if outcome[0] == "answered" and how % 3 != 0:
                self.rig.watch.answered.append(outcome[1].split()[1])
            return outcome

        self.ask(f"{name} asks a person in {session_id}", request, BOUND_S + max(GIVEN_UP_S))

    def respond(self, pending_id: str, words: str, *, declines: bool) -> None:
        async def request(backend: Backend) -> Any:
            answers = [] if declines else [Answer(pending_id, (), words)]
            return await answer_question(
                backend.ctx, pending_id=pending_id, answers=answers, rejected=declines
            )

        self.ask(f"answer of {pending_id}", request)

    def auto_run(self, session_id: str, on: bool) -> None:
        self.arrange(session_id, f"auto run {on}", lambda ask: AutoRun(ask, on))

    def reorder(self, session_id: str, by: int) -> None:
        value = self.rig.watch.stored(session_id)
        waiting = tuple(e.id for e in value.queue) if value else ()
        order = (*waiting[by:], *waiting[:by])
        self.arrange(session_id, "reorder", lambda ask: Reorder(ask, order))

    def clear(self, session_id: str) -> None:
        self.arrange(session_id, "clear", Clear)

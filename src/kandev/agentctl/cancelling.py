"""Cancelling the turn that runs: latched, repeated, bounded, shared by all who ask.

A cancel can be lost and carries no turn id in ACP, so it is written only for a prompt that was written, again
while no end comes, and never after the end. Not here: what happens when the agent does not obey (the backend
ends the process).
"""

import asyncio
import contextlib
from collections.abc import Callable

from kandev.agentctl.adapters.base import Adapter, WriteFailed
from kandev.agentctl.awake import Within
from kandev.agentctl.permissions import Permissions
from kandev.agentctl.settings import Settings
from kandev.agentctl.tasks import Tasks
from kandev.agentctl.turns import Turn, Turns
from kandev.wire import agentctl as wire

NOT_RUNNING = wire.CancelAnswer(success=True, outcome="not_running")
ACKNOWLEDGED = wire.CancelAnswer(success=True, outcome="acknowledged")


class Cancelling:
    """`acknowledge_s`: seconds from the first written cancel in which the turn must end."""

    def __init__(
        self,
        turns: Turns,
        permissions: Permissions,
        tasks: Tasks,
        adapter: Callable[[], Adapter],
        settings: Settings,
        acknowledge_s: float,
    ) -> None:
        self._turns = turns
        self._permissions = permissions
        self._tasks = tasks
        self._adapter = adapter
        self._settings = settings
        self._acknowledge_s = acknowledge_s

    async def cancel(self, turn: Turn) -> wire.CancelAnswer:
        """Joins the operation that is under way. Goes on when the caller goes away."""
        if turn.operation is None or not turn.being_cancelled:
            turn.cancelling = True
            work = self._own_turn(turn) if turn.own else self._prompt_turn(turn)
            turn.operation = self._tasks.start(work, "cancel a turn")
        return await asyncio.shield(turn.operation)

    async def politely(self, turn: Turn) -> None:
        """Before its process is ended: the turn's cancel with all that belongs to it (an agent that waits
        for an answer of ours hears nothing else), and `teardown_protocol_s` for the turn's own end."""
        self._tasks.start(self.cancel(turn), "polite cancel")
        await _over_within(turn, self._settings.teardown_protocol_s)

    async def _prompt_turn(self, turn: Turn) -> wire.CancelAnswer:
        await _first(turn.taken, turn.over)
        with contextlib.suppress(TimeoutError):
            async with Within(self._acknowledge_s):
                await self._repeat(turn)
        if not turn.over.is_set():
            return self._unheard()
        return NOT_RUNNING if turn.never_taken else ACKNOWLEDGED

    async def _repeat(self, turn: Turn) -> None:
        """Until the turn is over."""
        while not turn.over.is_set():
            written = self._tasks.start(self._write(turn), "write a cancel")
            await _over_within(turn, self._settings.cancel_repeat_s)
            if not written.done():
                # The agent does not read: writing again would only queue up behind this one.
                await turn.over.wait()

    async def _own_turn(self, turn: Turn) -> wire.CancelAnswer:
        """ACP reports no end of such a turn: it is over when the agent has been quiet for a while after
        the cancel."""
        quiet = min(self._settings.late_output_s, self._settings.own_turn_silent_s, self._acknowledge_s / 2)
        begun = turn.said_at = _now()
        while not turn.over.is_set() and _now() - begun < self._acknowledge_s:
            self._tasks.start(self._write(turn), "write a cancel")
            await _over_within(turn, min(self._settings.cancel_repeat_s, quiet))
            if self._turns.silent_for(turn) >= quiet:
                await self._turns.end_own(turn, "cancelled")
                return ACKNOWLEDGED
        return ACKNOWLEDGED if turn.over.is_set() else self._unheard()

    async def _write(self, turn: Turn) -> None:
        if turn.over.is_set() or turn.ended:
            return
        self._turns.cancel_written(turn)
        try:
            with self._turns.writing_a_cancel():
                await self._adapter().cancel()
        except WriteFailed:
            return  # An agent that takes no input is one that does not acknowledge.
        # Behind the cancel: an agent that heard the answer first would go on with its turn.
        await self._permissions.cancel_all(turn.identity, "cancel")

    def _unheard(self) -> wire.CancelAnswer:
        return wire.CancelAnswer(
            success=False,
            outcome="not_acknowledged",
            error=f"The agent did not acknowledge the cancel within {self._acknowledge_s:g} s.",
        )


async def _first(*events: asyncio.Event) -> None:
    waiters = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiters, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for waiter in waiters:
            waiter.cancel()


async def _over_within(turn: Turn, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await turn.over.wait()
    except TimeoutError:
        return


def _now() -> float:
    return asyncio.get_running_loop().time()

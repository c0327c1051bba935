"""Does what entering a step owes: parks queues, sends the step's prompt, completes sessions.

It is owed on the task's row (`board.OwedEnter`) until it is done, so a crash loses nothing and repeats
nothing: the prompt is an entry whose id is that of the entering. Not here: what is owed (`core.workflow`),
what a session does together with the end of its own turn (`runtime.task_booking`).
"""

import asyncio
from functools import partial
from typing import Final

import structlog

from kandev.core import workflow as rules
from kandev.core.board import OwedEnter, Task
from kandev.core.errors import KandevError, Refusal
from kandev.core.inputs import Draft, Park, Send
from kandev.core.session import Entry
from kandev.ports.store import Tx
from kandev.runtime import places
from kandev.runtime.actor import Vanished
from kandev.usecases import launch_session
from kandev.usecases.complete_task import complete_sessions
from kandev.usecases.context import Context

TRIES: Final = 3
"""For a session that takes no message (it was stopped meanwhile); then the sweep tries again."""

log = structlog.get_logger(__name__)


class OwedSteps:
    """`run` it once. Each task's work is done one thing at a time; tasks do not wait for each other."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._at_work: dict[str, asyncio.Task[bool]] = {}

    async def run(self) -> None:
        """At the start, whenever something is owed, and by the sweep."""
        owing, sweep_s = self._ctx.sessions.owing, self._ctx.deadlines.sweep_s
        try:
            while True:
                owing.clear()
                await self._look()
                try:
                    async with asyncio.timeout(sweep_s):
                        await owing.wait()
                except TimeoutError:
                    continue
        finally:
            at_work = list(self._at_work.values())
            for task in at_work:
                task.cancel()
            if at_work:
                await asyncio.wait(at_work)

    async def _look(self) -> None:
        try:
            owing = await self._ctx.store.read(lambda tx: tx.tasks.owing())
        except KandevError as fault:
            log.warning("owed steps", error=str(fault))
            return
        for task_id in owing:
            if task_id not in self._at_work:
                work = asyncio.create_task(self._do(task_id), name=f"{task_id} step")
                self._at_work[task_id] = work
                work.add_done_callback(partial(self._done, task_id))

    def _done(self, task_id: str, work: "asyncio.Task[bool]") -> None:
        del self._at_work[task_id]
        if not work.cancelled() and work.result():
            self._ctx.sessions.owing.set()  # another step may have been entered meanwhile

    async def _do(self, task_id: str) -> bool:
        """A fault of the store or of one session is logged, and the sweep tries again."""
        try:
            return await do_owed(self._ctx, task_id)
        except (KandevError, Vanished) as fault:
            log.warning("a step is entered and not all is done", task_id=task_id, error=str(fault))
        except Exception:
            log.exception("owed step", task_id=task_id)
        return False


async def do_owed(ctx: Context, task_id: str) -> bool:
    """All that the task's step owes now. True: done; False: there was nothing, or a part of it failed."""
    task = await ctx.store.read(lambda tx: tx.tasks.get(task_id))
    due = task.owed_enter if task else None
    if task is None or due is None:
        return False
    if task.archived_at is None:
        if due.prompt is not None:
            await _prompt(ctx, task, due)
        if due.parks is not None:
            await _park(ctx, task_id, due.parks)
    if due.completes and task.state == "COMPLETED":
        ended = await complete_sessions(ctx, task_id=task_id)
        if ended.failures:
            log.warning("a completed task has sessions that go on", task_id=task_id, **ended.details)
            return False
    await settled(ctx, task_id, due.entered)
    return True


async def settled(ctx: Context, task_id: str, entered: int) -> None:
    """It is owed no more. Nobody is told: it shows nowhere."""

    def change(tx: Tx) -> None:
        task = tx.tasks.get(task_id)
        if task is not None and task != (free := rules.settled(task, entered)):
            tx.tasks.update(free)

    await ctx.store.write(change)


async def _park(ctx: Context, task_id: str, reason: str) -> None:
    sessions = await ctx.store.read(lambda tx: tx.sessions.of_task(task_id))
    for session in sessions:
        if session.value.queue:
            await ctx.sessions.ask(session.id, lambda ask: Park(ask, reason))


async def _prompt(ctx: Context, task: Task, due: OwedEnter) -> None:
    """To the task's agent; the first one where there is none yet."""
    entry = Entry(rules.enter_id(task.id, due.entered), by="workflow")
    draft = Draft(due.prompt or "", ctx.ids.new("message"))
    for _ in range(TRIES):
        try:
            session_id = await ctx.store.write(lambda tx: _agent(ctx, tx, task.id, entry.id))
        except Refusal as refused:
            await _cannot(ctx, task.id, due, refused.message)
            return
        if session_id is None:
            return  # it was stored before a crash, or by another
        reply = await ctx.sessions.ask(session_id, lambda ask: Send(ask, entry, draft))
        if reply.status != "rejected":
            return
    raise Refusal("No session of the task takes the step's prompt.")


def _agent(ctx: Context, tx: Tx, task_id: str, entry: str) -> str | None:
    """The session that the prompt goes to; None: it has gone to one already."""
    if tx.entries.get(entry) is not None:
        return None
    sessions = [(s.id, s.is_primary, s.state) for s in tx.sessions.of_task(task_id)]
    return rules.agent_for(sessions) or launch_session.new_session(ctx, tx, task_id).id


async def _cannot(ctx: Context, task_id: str, due: OwedEnter, why: str) -> None:
    """The card says so."""

    def change(tx: Tx) -> None:
        task = tx.tasks.get(task_id)
        if task is not None and task.owed_enter == due:
            places.write(tx, task, rules.cannot_start(task, why), ctx.clock.now())

    await ctx.store.write(change)

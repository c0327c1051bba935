"""Which sessions have an actor, and that a crash of one stays its own.

An idle session is a row; an ask or the recovery makes an actor of it, and it is dropped when nothing is
under way any more. A bug in one actor ends that actor, answers its waiters and marks the session; the next
ask builds it anew from the store. Not here: rules, effects.
"""

import asyncio
import contextlib
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

import structlog

from kandev.core.effects import Reply
from kandev.core.errors import KandevError, NotFound, StoreFault, Unavailable
from kandev.core.inputs import Ask, Exited, Input
from kandev.core.records import SessionRecord
from kandev.core.session import Launch
from kandev.core.views import batch
from kandev.ports.store import Tx
from kandev.runtime.actor import Actor, Vanished, Work
from kandev.runtime.awake import Within
from kandev.runtime.desk import Desk
from kandev.runtime.effects import SessionEffects
from kandev.runtime.keeper import StoreKeeper, first_load
from kandev.runtime.outer import Outer

LATEST_ANSWER_S: Final = 5.0
"""Beyond the deadlines inside: asks are answered by those, this is for an actor that hangs."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Glance:
    """What an actor is doing, oldest work first."""

    record: SessionRecord
    under_way: list[Work]
    quiet_s: float = 0.0
    """Since something of it was stored."""


class Sessions:
    """Use as `async with`: on the way out every actor is cancelled and awaited; agents go on."""

    def __init__(self, outer: Outer) -> None:
        self._outer = outer
        self.desk = Desk(outer.deadlines.agentctl_call_s)
        """Where answers to agents' questions meet the calls that wait for them."""
        self._actors: dict[str, Actor] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._holds: Counter[str] = Counter()
        self._loading: dict[str, asyncio.Task[Actor]] = {}
        self._small: set[asyncio.Task[None]] = set()
        self._quiet: dict[str, set[asyncio.Event]] = {}
        """Whoever waits for a session to have no process."""
        self._sweeper: asyncio.Task[None] | None = None
        self.owing = asyncio.Event()
        """Set when a step was entered that owes something (`usecases.owed_steps` does it)."""
        self.swept = 0
        """How many sessions the sweep found that nobody drained. Always 0, unless we have a bug."""

    async def __aenter__(self) -> "Sessions":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End all actors; what they owe is owed still, and done by the next start."""
        tasks: list[asyncio.Task[None]] = [*self._tasks.values(), *self._small]
        tasks += [self._sweeper] if self._sweeper else []
        loading = list(self._loading.values())
        for task in (*tasks, *loading):
            task.cancel()
        if tasks or loading:
            await asyncio.wait([*tasks, *loading])

    # -- asking -------------------------------------------------------------------------------

    async def ask(self, session_id: str, make: Callable[[str], Ask]) -> Reply:
        """The session's answer. Raises NotFound; StoreFault when nobody can say what became of the question.

        A caller that goes away does not take its ask back."""
        commits_s = 2 * self._outer.deadlines.commit_s + LATEST_ANSWER_S
        try:
            async with Within(commits_s), self._held_actor(session_id) as actor:
                answer = actor.ask(make)
            async with Within(actor.patience_s + commits_s):
                return await answer
        except Vanished:
            raise NotFound("session not found") from None
        except TimeoutError:
            if (hindrance := self._outer.store.hindrance) is not None:
                raise Unavailable(hindrance) from None
            raise StoreFault("The session gave no answer in time; ask again.") from None

    async def tell(self, session_id: str, report: Input) -> None:
        """Something that nobody waits for an answer to. One that is gone hears nothing."""
        try:
            async with self._held_actor(session_id) as actor:
                await actor.tell(report)
        except Vanished:
            return

    async def wake(self, session_id: str) -> None:
        """Make sure that it has an actor: whatever it owes is done."""
        async with self._held_actor(session_id):
            pass

    def glance(self, session_id: str) -> Glance | None:
        """What its actor is doing now; None without one."""
        actor = self._actors.get(session_id)
        if actor is None:
            return None
        return Glance(actor.record, actor.under_way(), actor.quiet_s)

    async def gone(self, session_id: str, deadline: float) -> bool:
        """Wait until it has no process (any more). False at the deadline (seconds)."""
        event = asyncio.Event()
        waiting = self._quiet.setdefault(session_id, set())
        waiting.add(event)
        try:
            async with asyncio.timeout(deadline):
                while True:
                    event.clear()
                    if await self._without_process(session_id):
                        return True
                    await event.wait()
        except TimeoutError:
            return False
        finally:
            waiting.discard(event)
            if not waiting and self._quiet.get(session_id) is waiting:
                del self._quiet[session_id]

    async def end_agents(self, *, idle_only: bool, deadline: float) -> None:
        """The backend ends, and agents with it: the idle ones, or all that are up. Proven gone, or given up
        at the deadline (seconds); what is left is found by the next start."""
        ending = [
            (session_id, actor)
            for session_id, actor in self._actors.items()
            if actor.record.value.launch in (Launch.READY, Launch.DOZING)
            and not (idle_only and (actor.record.value.turn or batch(actor.record.value)))
        ]
        for _, actor in ending:
            await actor.tell(Exited(actor.record.value.execution, why="Kandev was stopped", ours=True))
        await asyncio.gather(*(self.gone(session_id, deadline) for session_id, _ in ending))

    async def _without_process(self, session_id: str) -> bool:
        record = await self._outer.store.read(lambda tx: tx.sessions.get(session_id))
        return record is None or record.value.launch is Launch.ABSENT

    def discard(self, session_id: str) -> None:
        """Its row is deleted, so that no actor of it can be made any more: end the one there is."""
        for event in self._quiet.get(session_id, ()):
            event.set()
        if actor := self._actors.get(session_id):
            actor.vanished()
        task = self._tasks.get(session_id)
        if task is not None:
            task.cancel()

    @property
    def count(self) -> int:
        """How many actors there are."""
        return len(self._actors)

    # -- actors -------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _held_actor(self, session_id: str) -> AsyncIterator[Actor]:
        """The actor, which does not retire meanwhile."""
        self._holds[session_id] += 1
        try:
            yield await self._actor(session_id)
        finally:
            self._holds[session_id] -= 1
            if not self._holds[session_id]:
                del self._holds[session_id]
            if actor := self._actors.get(session_id):
                actor.nudge()

    async def _actor(self, session_id: str) -> Actor:
        if actor := self._actors.get(session_id):
            return actor
        if (loading := self._loading.get(session_id)) is None:
            loading = asyncio.create_task(self._load(session_id), name=f"{session_id} load")
            self._loading[session_id] = loading
            loading.add_done_callback(lambda done: self._loaded(session_id, done))
        return await asyncio.shield(loading)

    def _loaded(self, session_id: str, done: "asyncio.Task[Actor]") -> None:
        self._loading.pop(session_id, None)
        if not done.cancelled():
            done.exception()  # whoever asked may have gone away and never look

    async def _load(self, session_id: str) -> Actor:
        outer = self._outer
        keeper = StoreKeeper(session_id, outer.store, outer.clock, outer.ids, outer.deadlines)
        keeper.owes = self.owing.set
        record = await first_load(keeper)
        profile = await outer.store.read(lambda tx: tx.profiles.get(record.agent_profile_id))
        effects = SessionEffects(outer, self.desk, self._spawn, self._changed)
        effects.bind(record, profile.cancel_acknowledge_s if profile else None)
        actor = Actor(record, keeper, effects)
        self._actors[session_id] = actor
        self._tasks[session_id] = asyncio.create_task(self._run(session_id, actor), name=session_id)
        return actor

    async def _run(self, session_id: str, actor: Actor) -> None:
        def retire() -> bool:
            if session_id in self._holds:
                return False
            self._actors.pop(session_id, None)
            return True

        structlog.contextvars.bind_contextvars(session_id=session_id, task_id=actor.record.task_id)
        try:
            await actor.run(retire)
        except Exception:
            error_id = uuid.uuid4().hex[:12]
            log.exception("actor", session_id=session_id, error_id=error_id)
            self._spawn(self._mark(session_id, error_id))
        finally:
            if self._actors.get(session_id) is actor:
                del self._actors[session_id]
            if self._tasks.get(session_id) is asyncio.current_task():
                del self._tasks[session_id]

    async def _mark(self, session_id: str, error_id: str) -> None:
        """The session says that something of ours broke, and where to look."""
        sentence = f"Kandev met an error of its own in this session (log id {error_id})."

        def mark(tx: Tx) -> None:
            if record := tx.sessions.get(session_id):
                tx.sessions.update(replace(record, error=sentence))

        try:
            await self._outer.store.write(mark)
        except KandevError as fault:
            log.warning("mark", session_id=session_id, error=str(fault))

    def _changed(self, record: SessionRecord) -> None:
        if record.value.launch is Launch.ABSENT:
            for event in self._quiet.get(record.id, ()):
                event.set()

    def _spawn(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            await work

        task = asyncio.create_task(run())
        self._small.add(task)
        task.add_done_callback(self._small.discard)

    # -- recovery -----------------------------------------------------------------------------

    async def recover(self) -> int:
        """Actors for all sessions that have something under way. Called once, after the epoch is taken."""
        alive = await self._outer.store.read(lambda tx: tx.sessions.alive())
        for session_id in alive:
            await self.wake(session_id)
        return len(alive)

    def sweep_forever(self) -> None:
        """Begin to look, again and again, for sessions that have something to do and no actor."""
        self._sweeper = asyncio.create_task(self._sweep(), name="sweep")

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._outer.deadlines.sweep_s)
            try:
                await self.sweep_once()
            except KandevError as fault:
                log.warning("sweep", error=str(fault))

    async def sweep_once(self) -> int:
        """Returns how many were found; each is a fault of ours that this makes good."""
        # An actor that retires while we read is no fault.
        busy = {*self._actors, *self._loading}
        alive = await self._outer.store.read(lambda tx: tx.sessions.alive())
        busy |= {*self._actors, *self._loading}
        lost = [session_id for session_id in alive if session_id not in busy]
        for session_id in lost:
            log.warning("sweep found a session that nobody drains", session_id=session_id)
            self.swept += 1
            try:
                await self.wake(session_id)
            except Exception:  # whatever is wrong with this one keeps no other waiting
                log.exception("sweep", session_id=session_id)
        return len(lost)

"""One actor per session: take what is there, decide, commit, then make the world match.

It awaits its inbox and the store, nothing else. Effects are not "sent": after each commit `_reconcile`
starts a task for every owed effect and timer that has none, and cancels every one that is not owed any
more. No await lies between commit and reconcile. After a failed commit the value is read anew: nothing is
assumed about what was written.

Not here: any rule (`core.decide`), what effects do (`effects`), who is told to exist (`registry`).
"""

import asyncio
import itertools
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import structlog
from opentelemetry.context import Context, get_current

from kandev.core.decide import decide
from kandev.core.effects import Dropped, Note, Owed, Reply, Timer
from kandev.core.errors import KandevError, Refusal, StaleVersion, StoreFault
from kandev.core.inputs import Expired, Frame, Gone, Input
from kandev.core.records import SessionRecord
from kandev.core.session import Session
from kandev.core.steps import Step
from kandev.core.views import owed, timers
from kandev.runtime import awake
from kandev.runtime.traces import deciding
from kandev.runtime.waiting_frames import WaitingFrames, weight

FOLDED_AT_ONCE: Final = 256
FOLDED_BYTES: Final = 1 << 20
"""Then a fold ends: one transaction, and one notification of growing text, has so much and one frame more."""
RELOAD_PAUSES_S: Final = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Between attempts to read the value after a failed commit; the last one repeats."""

log = structlog.get_logger(__name__)


class Vanished(Exception):
    """The session's row is gone: it was deleted."""


class Keeper(Protocol):
    """Where the actor's value is kept. `runtime.keeper` implements it."""

    async def commit(
        self, record: SessionRecord, decided: Step, inputs: Sequence[Input]
    ) -> tuple[SessionRecord, tuple[Note, ...]]:
        """Write all in one transaction, compared with `record.version`; what the task's step adds to the
        decision about `inputs` is in the answer. Raises StoreFault; Refusal for an ask that may not be: then
        nothing was written."""

    async def load(self) -> SessionRecord:
        """The value as it is stored, behind every write that was begun. Raises StoreFault, Vanished."""


class Outside(Protocol):
    """What effects and timers do. `runtime.effects` implements it."""

    async def perform(self, effect: Owed, tell: Callable[[Input], Awaitable[None]]) -> None:
        """Do it until it is settled, reporting by `tell`; may be cancelled at any await, and done again."""

    def trouble(self, effect: Owed) -> str | None:
        """A sentence, when the last attempt at this effect came to nothing."""

    def seconds(self, timer: Timer) -> float:
        """How long until this timer fires; infinite: never."""

    def noticed(self, record: SessionRecord, notes: tuple[Note, ...]) -> None:
        """After a commit. Never blocks."""


@dataclass(frozen=True)
class Work:
    """An effect or a deadline under way: its age and, for a deadline, what is left of it, in seconds; for an
    effect, why the last attempt came to nothing."""

    what: Owed | Timer
    for_s: float
    left_s: float | None
    trouble: str | None = None


def _is_framed(given: Input) -> bool:
    return isinstance(given, Frame | Gone)


class Actor:
    """The only writer of one session."""

    def __init__(self, record: SessionRecord, keeper: Keeper, outside: Outside) -> None:
        self.record = record
        self._keeper, self._outside = keeper, outside
        self._urgent: deque[Input] = deque()
        self._frames = WaitingFrames()
        self._wake, self._room = asyncio.Event(), asyncio.Event()
        self._room.set()
        self._waiters: dict[str, tuple[asyncio.Future[Reply], Context]] = {}
        """Who waits for an answer, and in which trace."""
        self._under_way: dict[Owed | Timer, tuple[asyncio.Task[None], float]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        # What an earlier actor of this session stored, it stored in a commit: no ask has the same name again.
        self._since, self._asks = record.version, 0
        self._ended: BaseException | None = None
        self._last_word: BaseException = StoreFault(
            "The session's actor ended before it could answer; ask again."
        )
        self._committed_at = asyncio.get_running_loop().time()
        self._failed = 0
        """Commits that failed since the last one that did not."""

    # -- from outside -------------------------------------------------------------------------

    def ask(self, make: Callable[[str], Input]) -> "asyncio.Future[Reply]":
        """Put an ask into the inbox; the future holds the reply, StoreFault, or what ended the actor."""
        self._asks += 1
        name = f"{self._since}-{self._asks}"
        waiter: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        if self._ended is not None:
            waiter.set_exception(self._ended)
            return waiter
        self._waiters[name] = waiter, get_current()
        self._put(make(name))
        return waiter

    async def tell(self, given: Input) -> None:
        """A report. Frames, and the end that comes behind them, keep their order and wait for room."""
        if not _is_framed(given):
            self._put(given)
            return
        while self._frames.full:
            self._room.clear()
            await self._room.wait()
        self._frames.put(given)
        self._wake.set()

    def nudge(self) -> None:
        """See whether there is still a reason to be."""
        self._wake.set()

    def vanished(self) -> None:
        """Its row is gone, and its task is about to be cancelled: whoever waits hears that."""
        self._last_word = Vanished()

    def _put(self, given: Input) -> None:
        self._urgent.append(given)
        self._wake.set()

    @property
    def idle(self) -> bool:
        """Nothing waits and nothing is under way: may be dropped, in the same step as this is asked."""
        return not (self._urgent or self._frames or self._under_way or self._waiters)

    @property
    def patience_s(self) -> float:
        """Seconds after which an ask is answered at the latest, once it has been decided."""
        return max(self._outside.seconds(Timer("ask", "")), self._outside.seconds(Timer("cancel", "")))

    def under_way(self) -> list[Work]:
        """What is being done or waited for, oldest first."""
        now = asyncio.get_running_loop().time()
        going_on = [(key, now - since) for key, (task, since) in self._under_way.items() if not task.done()]
        return [
            Work(key, age, self._outside.seconds(key) - age)
            if isinstance(key, Timer)
            else Work(key, age, None, self._outside.trouble(key))
            for key, age in sorted(going_on, key=lambda item: -item[1])
        ]

    @property
    def quiet_s(self) -> float:
        """Seconds since something was committed, or since this actor was made. By the loop's clock: the time
        of day may jump."""
        return asyncio.get_running_loop().time() - self._committed_at

    # -- the loop -----------------------------------------------------------------------------

    async def run(self, retire: Callable[[], bool]) -> None:
        """Until idle and `retire()` agrees. On any way out, effects are cancelled and awaited, waiters
        answered."""
        try:
            self._reconcile()
            while True:
                while self._urgent or self._frames:
                    await self._step()
                if self.idle and retire():
                    return
                self._wake.clear()
                await self._wake.wait()
        except Vanished as gone:
            self._last_word = gone
        finally:
            self._ended = self._last_word  # whoever asks while the effects end is told at once
            self._answer_all(self._ended)
            await self._cancel_all()

    async def _step(self) -> None:
        after, taken, notes = self._fold()
        if after == self.record.value and all(isinstance(note, Reply | Dropped) for note in notes):
            self._tell(notes)  # a refusal, or history: nothing to write
            return
        asking = (self._waiters.get(getattr(given, "ask", "")) for given in taken)
        cause = next((waiting[1] for waiting in asking if waiting is not None), None)
        with deciding(self.record, taken, notes, cause):
            try:
                stored = await self._keeper.commit(self.record, (after, notes), taken)
            except (Refusal, StaleVersion) as fault:
                await self._again(taken, fault)
                return
            except StoreFault as fault:
                log.warning("commit failed", session_id=self.record.id, error=str(fault))
                await self._reload(taken, fault)
                return
            (self.record, notes), self._failed = stored, 0
            self._committed_at = asyncio.get_running_loop().time()
            self._reconcile()
        self._tell(notes)
        self._outside.noticed(self.record, notes)

    def _tell(self, notes: Sequence[Note]) -> None:
        self._room.set()
        for note in notes:
            if isinstance(note, Reply):
                self._answer(note)

    def _fold(self) -> tuple[Session, list[Input], tuple[Note, ...]]:
        """Take inputs as long as what is owed stays the same; an ask ends the fold, to fail alone."""
        after, taken, notes = self.record.value, list[Input](), list[Note]()
        folded = 0
        while (self._urgent or self._frames) and len(taken) < FOLDED_AT_ONCE and folded < FOLDED_BYTES:
            urgent = bool(self._urgent)
            if urgent and taken:
                break
            given = self._urgent.popleft() if urgent else self._frames.take()
            before, (after, told) = after, decide(after, given)
            taken.append(given)
            notes += told
            folded += weight(given)
            if urgent or owed(after) != owed(before):
                break
        return after, taken, tuple(notes)

    def _reconcile(self) -> None:
        wanted: set[Owed | Timer] = {*owed(self.record.value), *timers(self.record.value)}
        for key in [key for key in self._under_way if key not in wanted]:
            self._let_go(self._under_way.pop(key)[0])
        loop = asyncio.get_running_loop()
        # Always in the same order: the same inputs make the same history.
        for due in (*owed(self.record.value), *sorted(timers(self.record.value), key=str)):
            if isinstance(due, Timer) and math.isinf(self._outside.seconds(due)):
                continue
            if due not in self._under_way:
                work = self._wait(due) if isinstance(due, Timer) else self._outside.perform(due, self.tell)
                name = f"{self.record.id} {type(due).__name__}"
                self._under_way[due] = (loop.create_task(work, name=name), loop.time())

    async def _wait(self, timer: Timer) -> None:
        await awake.sleep(self._outside.seconds(timer))
        self._put(Expired(timer))

    # -- ways out -----------------------------------------------------------------------------

    def _answer(self, reply: Reply) -> None:
        waiter, _ = self._waiters.pop(reply.ask, (None, None))
        if waiter is not None and not waiter.done():
            waiter.set_result(reply)

    def _fail(self, ask: str, fault: BaseException) -> None:
        waiter, _ = self._waiters.pop(ask, (None, None))
        if waiter is not None and not waiter.done():
            waiter.set_exception(fault)

    def _answer_all(self, fault: BaseException) -> None:
        for ask in list(self._waiters):
            self._fail(ask, fault)

    async def _again(self, taken: list[Input], fault: Refusal | StaleVersion) -> None:
        """Nothing was written. When somebody else wrote the row (a new name), the inputs are decided anew."""
        before = self.record.version
        fresh = await self._reread()
        if fresh is not None and fresh.version == before and len(taken) == 1 and not _is_framed(taken[0]):
            # The row is still ours: this one may not be, or what it wanted to write is there (a name, a key).
            self._fail(getattr(taken[0], "ask", ""), fault)
            return
        if fresh is None or fresh.version == before:
            await self._reload(taken, fault)
            return
        self.record = fresh
        self._outside.noticed(fresh, ())
        for given in reversed(taken):
            if _is_framed(given):
                self._frames.put_back(given)
            else:
                self._urgent.appendleft(given)

    async def _reread(self) -> SessionRecord | None:
        try:
            return await self._keeper.load()
        except StoreFault:
            return None

    async def _reload(self, taken: list[Input], fault: KandevError) -> None:
        """Nobody knows what was written. Frames are read again from what is stored, effects done again."""
        await self._cancel_all()
        self._failed += 1
        for attempt in itertools.count(self._failed - 1):
            self._frames.clear()
            self._room.set()
            for given in (*taken, *self._urgent):
                self._fail(getattr(given, "ask", ""), fault)
            taken = []
            self._urgent.clear()
            # Also where reading works: a disk that takes nothing would be tried as fast as it refuses.
            await asyncio.sleep(RELOAD_PAUSES_S[min(attempt, len(RELOAD_PAUSES_S) - 1)])
            try:
                self.record = await self._keeper.load()
            except StoreFault:
                continue
            break
        arrived = {getattr(given, "ask", "") for given in self._urgent}
        for ask in self._waiters.keys() - {t.key for t in timers(self.record.value)} - arrived:
            self._fail(str(ask), fault)  # its reply may have been in the commit that nobody knows of
        self._outside.noticed(self.record, ())
        self._reconcile()

    def _let_go(self, task: "asyncio.Task[None]") -> None:
        if not task.done():
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)

    async def _cancel_all(self) -> None:
        for task, _ in self._under_way.values():
            self._let_go(task)
        self._under_way.clear()
        if self._ending:
            await asyncio.wait(self._ending)

"""A store that takes its time and an agentctl with the fences, around the real actor.

Every await is a place where the scheduler of the test may let somebody else run. The store can fail, before
or after it wrote; the sidecar always answers. Not here: the tests.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from kandev.core import views
from kandev.core.effects import (
    AnswerPermission,
    CancelTurn,
    Follow,
    Note,
    Owed,
    Prompt,
    Start,
    Teardown,
    Timer,
    Told,
)
from kandev.core.errors import StaleVersion, StoreFault
from kandev.core.inputs import Draft, Ended, Frame, Gone, Input, Output, Ready, Refused, Send, Taken
from kandev.core.records import SessionRecord
from kandev.core.session import Entry, Outcome, Session, TurnRef
from kandev.core.steps import Step
from kandev.core.transcript import Text
from kandev.runtime.actor import Actor, Vanished

Tell = Callable[[Input], Awaitable[None]]
FAR = 1000.0  # seconds of the simulated clock: deadlines that never come in a test


def record(value: Session | None = None) -> SessionRecord:
    """A row with this value."""
    value = value or Session("s")
    return SessionRecord(
        id="s",
        task_id="t",
        workspace_id="w",
        name="",
        agent_profile_id="p",
        is_primary=True,
        value=value,
        state=views.wire_state(value),
        created_at="",
        updated_at="",
    )


def send(entry: str, by: str = "person") -> Callable[[str], Send]:
    """An ask for `Actor.ask`."""
    return lambda ask: Send(ask, Entry(entry, by), Draft("text", entry))  # type: ignore[arg-type]


class Rig:
    """`actor` runs by `run`; `stored` is what the database holds."""

    def __init__(self) -> None:
        self.stored = record()
        self.commits = 0
        self.history: list[Session] = []
        self.shown: list[str] = []
        """What was written of the agents' output."""
        self.faults: list[str] = []
        """For the next commits: `before` or `after` the write, or `none`."""
        self.unreadable = 0
        """So many loads fail."""
        self.deleted = False
        self.prompts: list[tuple[str, ...]] = []
        self.live: set[str] = set()
        self.dead: set[str] = set()
        self.turns: list[TurnRef] = []
        self.chunks: dict[str, int] = {}
        """How many output frames each journal holds after the first prompt."""
        self.pace = 0.0
        """Seconds between two frames."""
        self.performing = 0
        self.held = True
        """Somebody still means to ask: the actor may not retire."""
        self.high = 0
        """The most frames that ever waited."""
        self.weight = 0
        """Bytes of each frame."""
        self.largest = 0
        """The most frames of one commit."""
        self.ended: list[Owed] = []
        """Effects that were cancelled and have cleaned up."""
        self.taken = asyncio.Event()
        self.actor = Actor(self.stored, self, self)

    # -- actor.Keeper ---------------------------------------------------------------------------

    async def commit(
        self, before: SessionRecord, decided: Step, inputs: object
    ) -> tuple[SessionRecord, tuple[Note, ...]]:
        after, notes = decided
        await asyncio.sleep(0.001)
        fault = self.faults.pop(0) if self.faults else "none"
        if fault == "before":
            raise StoreFault("the disk is full")
        if before.version != self.stored.version:
            raise StaleVersion("a second writer")
        self.stored = replace(before, value=after, state=views.wire_state(after), version=before.version + 1)
        self.commits += 1
        self.history.append(after)
        shown = [n.content.text for n in notes if isinstance(n, Told) and isinstance(n.content, Text)]
        self.shown += shown
        self.largest = max(self.largest, len(shown))
        if fault == "after":
            raise StoreFault("no answer in time")
        return self.stored, notes

    async def load(self) -> SessionRecord:
        await asyncio.sleep(0.001)
        if self.deleted:
            raise Vanished("s")
        if self.unreadable:
            self.unreadable -= 1
            raise StoreFault("locked")
        return self.stored

    # -- actor.Outside ----------------------------------------------------------------------------

    async def perform(self, effect: Owed, tell: Tell) -> None:
        if isinstance(effect, Prompt | Start | CancelTurn):
            assert self.stored.value.outcome is Outcome.OPEN, f"{effect} was begun after the stop's commit"
        self.performing += 1
        try:
            await asyncio.sleep(0.002)
            await self._answer(effect, tell)
        except asyncio.CancelledError:
            await asyncio.sleep(0.001)
            self.ended.append(effect)
            raise
        finally:
            self.performing -= 1

    async def _answer(self, effect: Owed, tell: Tell) -> None:
        match effect:
            case Start(execution) if execution not in self.dead:
                self.live.add(execution)
                assert len(self.live) == 1, "two processes"
                await tell(Ready(execution, f"journal of {execution}"))
            case Prompt(turn, entries):
                await self._prompt(turn, entries, tell)
            case CancelTurn(turn):
                await tell(Ended(turn, "cancelled"))
            case Teardown(execution, unsettled):
                self.dead.add(execution)
                self.live.discard(execution)
                await tell(Gone(execution, unsettled in self.turns if unsettled else None))
            case Follow(execution):
                await self._follow(execution, tell)
            case AnswerPermission():
                pass

    async def _prompt(self, turn: TurnRef, entries: tuple[str, ...], tell: Tell) -> None:
        if turn.execution in self.dead:
            await tell(Refused(turn, "gone"))
            return
        if turn not in self.turns:
            self.prompts.append(entries)
            self.turns.append(turn)
        self.taken.set()
        await tell(Taken(turn))

    async def _follow(self, execution: str, tell: Tell) -> None:
        """Reads from what is stored, as the real one does."""
        await self.taken.wait()
        for seq in range(self.stored.value.seen + 1, self.chunks.get(execution, 0) + 1):
            said = Output(self.turns[0], Text("message", f"{seq}"))
            await tell(Frame(execution, seq, said, size=self.weight))
            self.high = max(self.high, len(self.actor._frames))
            await asyncio.sleep(self.pace)
        await asyncio.Event().wait()  # as long as the process lives there may be more

    def trouble(self, effect: Owed) -> str | None:
        return None

    def seconds(self, timer: Timer) -> float:
        return FAR

    def noticed(self, after: SessionRecord, notes: tuple[Note, ...]) -> None:
        assert after == self.stored, "somebody was told of what is not stored"

    # -- for tests ----------------------------------------------------------------------------------

    def begin(self) -> "asyncio.Task[None]":
        return asyncio.create_task(self.actor.run(lambda: not self.held))

    async def over(self, running: "asyncio.Task[None]") -> None:
        """Nobody means to ask any more: wait until the actor has retired."""
        self.held = False
        self.actor.nudge()
        await running

    @property
    def told(self) -> list[str]:
        return [e for prompt in self.prompts for e in prompt]


async def until(true: Callable[[], bool]) -> None:
    """On the simulated clock, where nothing waits in earnest."""
    for _ in range(2000):
        if true():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it did not come true")


async def finished(running: "asyncio.Task[None]") -> BaseException | None:
    """Cancel the actor and wait for its end."""
    running.cancel()
    (found,) = await asyncio.gather(running, return_exceptions=True)
    return found

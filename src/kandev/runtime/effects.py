"""What a session owes to the outside, done with deadlines and repeated until it is settled.

Each effect ends in a report, or is cancelled because it is not owed any more; an answer that did not come
is asked for again, never guessed. What bounds an effect is the timer beside it (`seconds`), not a number of
attempts.

Not here: when something is owed (`core.views`), talking to agentctl (`ports.execution`).
"""

import asyncio
import itertools
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

import structlog

from kandev.core.effects import (
    AnswerPermission,
    CancelTurn,
    Doze,
    ExecutionOver,
    Follow,
    HandAnswer,
    Note,
    Owed,
    Prompt,
    QuestionClosed,
    Start,
    Teardown,
    Timer,
    execution_of,
)
from kandev.core.errors import AgentFault, KandevError, StoreFault
from kandev.core.inputs import (
    Asleep,
    Awake,
    CancelFailed,
    CancelHeard,
    CancelUnheard,
    Exited,
    Gone,
    Input,
    LaunchFailed,
    Looked,
    QuestionDone,
    Ready,
    Refused,
    Taken,
)
from kandev.core.records import SessionRecord
from kandev.core.session import TurnRef
from kandev.core.views import dispatch_id
from kandev.ports.execution import (
    CancelRefused,
    Down,
    LaunchRefused,
    UnknownExecution,
    Unreachable,
)
from kandev.runtime.awake import Within
from kandev.runtime.deadlines import seconds
from kandev.runtime.desk import Desk
from kandev.runtime.launching import launch_spec
from kandev.runtime.logbook import tell_the_log
from kandev.runtime.outer import Outer
from kandev.runtime.prompting import prompt_of
from kandev.runtime.traces import performing

Tell = Callable[[Input], Awaitable[None]]

PAUSES_S: Final = (0.05, 0.1, 0.25, 0.5, 1.0)
"""Between attempts; the last one repeats."""
OPENED_S: Final = 1.0
"""A try to follow that lasted so much longer than finding agentctl and opening a stream may take was a
stream, or we were held up."""
UNKNOWN: Final = "agentctl does not know the agent's process any more"
UNREACHABLE: Final = "agentctl cannot be reached"

log = structlog.get_logger(__name__)


class SessionEffects:
    """Implements `actor.Outside` for one session. `spawn` runs short work in a group that outlives the actor;
    `changed` hears of every commit."""

    def __init__(
        self,
        outer: Outer,
        desk: Desk,
        spawn: Callable[[Awaitable[None]], None],
        changed: Callable[[SessionRecord], None],
    ) -> None:
        self._agents, self._store, self._worktrees = outer.agents, outer.store, outer.worktrees
        self._deadlines, self._desk = outer.deadlines, desk
        self._spawn, self._changed = spawn, changed
        self._record: SessionRecord | None = None
        self._troubles: dict[Owed, str] = {}
        self.cancel_acknowledge_s: float | None = None
        """The profile's own, once it is known."""

    def bind(self, record: SessionRecord, cancel_acknowledge_s: float | None) -> None:
        """Before the first effect."""
        self._record, self.cancel_acknowledge_s = record, cancel_acknowledge_s

    # -- actor.Outside ------------------------------------------------------------------------

    async def perform(self, effect: Owed, tell: Tell) -> None:
        """Until settled. A bug of ours in an effect is logged and the effect tried again: its timer ends
        it."""
        try:
            await self._until_settled(effect, tell)
        finally:
            self._troubles.pop(effect, None)

    async def _until_settled(self, effect: Owed, tell: Tell) -> None:
        for attempt in itertools.count():
            try:
                with performing(effect, attempt):
                    await self._once(effect, tell)
                return
            except Unreachable as fault:
                self._troubles[effect] = str(fault)
                log.info(
                    "agentctl unreachable", session_id=self._session, effect=str(effect), error=str(fault)
                )
            except StoreFault as fault:
                self._troubles[effect] = str(fault)
                log.warning("store", session_id=self._session, effect=str(effect), error=str(fault))
            except UnknownExecution:
                await tell(Exited(execution_of(effect), why=UNKNOWN))
                return
            except AgentFault as fault:  # said in words: asking again changes nothing, and a timer runs
                log.warning("agent", session_id=self._session, effect=str(effect), error=str(fault))
                return
            except Exception:
                error_id = uuid.uuid4().hex[:12]
                log.exception("effect", session_id=self._session, effect=str(effect), error_id=error_id)
            await asyncio.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])

    def trouble(self, effect: Owed) -> str | None:
        """Why the last attempt came to nothing."""
        return self._troubles.get(effect)

    def seconds(self, timer: Timer) -> float:
        """How long until it fires."""
        refusals = self._record.value.refusals if self._record else 1
        return seconds(timer, self._deadlines, self._acknowledge_s, refusals)

    def noticed(self, record: SessionRecord, notes: tuple[Note, ...]) -> None:
        """An execution whose end is committed is not needed at agentctl any more."""
        self._record = record
        self._changed(record)
        for note in notes:
            tell_the_log(note)
            if isinstance(note, QuestionClosed):
                self._desk.closed(note)
            if isinstance(note, ExecutionOver):
                self._spawn(self._forget(note.execution))

    # -- each effect ----------------------------------------------------------------------------

    @property
    def _acknowledge_s(self) -> float:
        """The profile's own, else the setting."""
        own = self.cancel_acknowledge_s
        return self._deadlines.cancel_acknowledge_s if own is None else own

    @property
    def _session(self) -> str:
        return self._record.id if self._record else "?"

    async def _once(self, effect: Owed, tell: Tell) -> None:
        match effect:
            case Start(execution):
                await self._start(execution, tell)
            case Follow(execution):
                await self._follow(execution, tell)
            case Prompt():
                await self._prompt(effect, tell)
            case CancelTurn(turn, attempt):
                await self._cancel(turn, attempt, tell)
            case Teardown():
                await self._teardown(effect, tell)
            case Doze(execution, seen):
                await self._doze(execution, seen, tell)
            case HandAnswer():
                await self._hand(effect, tell)
            case AnswerPermission(turn, request, answer):
                await self._agents.answer_permission(turn, request, answer, self._deadlines.agentctl_call_s)

    async def _start(self, execution: str, tell: Tell) -> None:
        try:
            spec = await launch_spec(self._store, self._worktrees, self._deadlines, self._session, execution)
            self.cancel_acknowledge_s = spec.cancel_acknowledge_s
            up = await self._agents.start(spec, self._deadlines.launch_s)
        except LaunchRefused as refused:
            await tell(LaunchFailed(execution, refused.message, refused.stderr))
        except (Unreachable, StoreFault):
            raise
        except TimeoutError:
            sentence = f"its worktree was not ready within {self._deadlines.worktree_s:g} s."
            await tell(LaunchFailed(execution, sentence))
        except KandevError as fault:  # the worktree, the profile: sentences for people
            await tell(LaunchFailed(execution, fault.message))
        except OSError as error:  # a disk that is full or read-only, something in the way
            await tell(LaunchFailed(execution, f"{error.filename or 'the disk'}: {error.strerror}."))
        else:
            await tell(Ready(execution, up.journal, up.conversation, up.memory, up.agent))

    async def _follow(self, execution: str, tell: Tell) -> None:
        """Unreachable for too long: the execution is treated as ended. A stream that stood, and a time in
        which this process was held up, begin the count anew: who was silent was not unreachable."""
        loop = asyncio.get_running_loop()
        failing_s = 0.0
        for attempt in itertools.count():
            record = self._record
            if record is None or record.value.journal is None:
                return
            seen, begun = record.value.seen, loop.time()
            pause_s = PAUSES_S[min(attempt, len(PAUSES_S) - 1)]
            try:
                async for frame in self._agents.follow(
                    execution, record.value.journal, seen, self._committed
                ):
                    failing_s, begun = 0.0, loop.time()
                    self._troubles.pop(Follow(execution), None)
                    await tell(frame)
                return
            except Unreachable as fault:
                tried_s = loop.time() - begun
                self._troubles[Follow(execution)] = str(fault)
                opened = tried_s > 2 * self._deadlines.agentctl_call_s + OPENED_S
                failing_s = 0.0 if opened else failing_s + tried_s + pause_s
                if failing_s > self._deadlines.agentctl_lost_s:
                    log.warning("agentctl lost", session_id=self._session, error=str(fault))
                    await tell(Exited(execution, why=UNREACHABLE))
                    return
            await asyncio.sleep(pause_s)

    def _committed(self) -> int:
        return self._record.value.seen if self._record else 0

    async def _prompt(self, effect: Prompt, tell: Tell) -> None:
        content = await self._store.read(lambda tx: prompt_of(tx, self._session, effect))
        turn, call = effect.turn, self._deadlines.agentctl_call_s
        try:
            answer = await self._agents.prompt(turn, dispatch_id(turn), content, call)
        except Unreachable:
            taken = await self._agents.dispatched(turn, dispatch_id(turn), call)
            if taken is None:
                raise
            await tell(Taken(turn) if taken else Refused(turn, "it never reached the agent"))
            return
        await tell(Taken(turn) if answer.taken else Refused(turn, answer.reason))

    async def _cancel(self, turn: TurnRef, attempt: int, tell: Tell) -> None:
        """The end itself comes by the journal; here only what keeps it from coming."""
        deadline = self._acknowledge_s + self._deadlines.prompt_accept_s + self._deadlines.agentctl_call_s
        try:
            over = await self._agents.cancel(turn, deadline)
        except CancelRefused as refused:
            log.warning("cancel", session_id=self._session, turn=dispatch_id(turn), error=refused.message)
            await tell(CancelFailed(turn, attempt, refused.message))
            return
        await tell(CancelHeard(turn, attempt) if over else CancelUnheard(turn, attempt))

    async def _hand(self, effect: HandAnswer, tell: Tell) -> None:
        row = await self._store.read(lambda tx: tx.entries.get(effect.entry))
        answer = row.content if row else ""
        served = await self._desk.hand(effect.question, answer, again=effect.again)
        await tell(QuestionDone(effect.question, served))

    async def _teardown(self, effect: Teardown, tell: Tell) -> None:
        call = self._deadlines.agentctl_call_s
        try:
            down = await self._agents.end(
                effect.execution, force=effect.force, deadline=self._deadlines.teardown_s
            )
        except UnknownExecution:
            await tell(Gone(effect.execution, None))
            return
        taken: bool | None = None
        if effect.unsettled is not None:
            with suppress(UnknownExecution):
                taken = await self._agents.dispatched(effect.unsettled, dispatch_id(effect.unsettled), call)
        with suppress(Unreachable, UnknownExecution, TimeoutError):
            await self._rest(effect.execution, down, tell)
        await tell(Gone(effect.execution, taken, down.survivors, down.exit_code))

    async def _doze(self, execution: str, seen: int, tell: Tell) -> None:
        why = await self._agents.put_to_sleep(execution, seen, self._deadlines.teardown_s)
        if why is not None:
            log.info("kept awake", session_id=self._session, why=why)
        await tell(Asleep(execution) if why is None else Awake(execution, why))

    async def _rest(self, execution: str, down: Down, tell: Tell) -> None:
        """What the journal still says comes before the end; it is read for as long as it goes on."""
        value, call = self._record.value if self._record else None, self._deadlines.agentctl_call_s
        if value is None or value.journal is None or down.last_seq <= value.seen:
            return
        await tell(Looked(execution))
        async with Within(call) as patience:
            async for frame in self._agents.follow(execution, value.journal, value.seen, self._committed):
                await tell(frame)
                if frame.seq >= down.last_seq:
                    return
                patience.again(call)

    async def _forget(self, execution: str) -> None:
        """Lost requests are made good at the next start, which deletes what no session names."""
        with suppress(AgentFault):
            await self._agents.forget(execution, self._deadlines.agentctl_call_s)

"""The turns of one agent process: which one runs, what belongs to it, how it ends.

This is the sink of the adapter. At most one turn runs: a prompt's, or one that the agent began by itself.
Not here: fences and dispatches (`dispatching`), cancelling (`cancelling`), the process (`instance`).
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from kandev.agentctl.adapters.base import PermissionAsk, TurnEnd
from kandev.agentctl.attribution import OPENING, Attribution, Identity
from kandev.agentctl.permissions import By, Permissions
from kandev.agentctl.record import Record
from kandev.agentctl.settings import Settings
from kandev.agentctl.tasks import Tasks
from kandev.wire import agentctl as wire

Key = tuple[int, int]
"""A process: its pid and when it started."""
Look = Callable[[], list[wire.Process] | None]
"""None: nobody can tell at present."""
END_SHARE = 4
"""While a turn is cancelled its journal may be longer by this share: the end lies behind what the agent said,
and a reader that waits for room would take it for deaf."""

WITHOUT_A_WORD = (
    "The agent ended its first turn since it took up the earlier conversation without a word: it may not "
    "know that conversation any more. Ask what it remembers, or start a new session."
)


@dataclass(eq=False)
class Turn:
    """`taken`: the prompt is written whole. `over`: it ended, was given up before it was written, or its
    process is gone."""

    identity: Identity
    dispatch_id: str | None = None
    taken: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    never_taken: bool = False
    ended: bool = False
    cancelling: bool = False
    cancel_written: bool = False
    operation: asyncio.Task[wire.CancelAnswer] | None = None
    before: frozenset[Key] | None = None
    """The processes that were there when it began, where that is known."""
    said_at: float = 0.0
    saying: int = 0
    """Of what the agent said in it, so much waits for room."""
    worked: bool = False
    noted: bool = False

    @property
    def own(self) -> bool:
        return self.identity.own_turn_id is not None

    @property
    def being_cancelled(self) -> bool:
        return self.operation is not None and not self.operation.done()


class Turns:
    """`look` lists the processes of the execution; `on_closed` is called when the agent says nothing more."""

    def __init__(
        self,
        record: Record,
        permissions: Permissions,
        tasks: Tasks,
        settings: Settings,
        look: Look,
        on_closed: Callable[[], None],
    ) -> None:
        self.current: Turn | None = None
        self.unproven = False
        """The agent says that it took up an earlier conversation; its first turn will show it."""
        self._record = record
        self._permissions = permissions
        self._tasks = tasks
        self._settings = settings
        self._look = look
        self._on_closed = on_closed
        self._attribution = Attribution(settings.late_output_s)
        self._settle_until = 0.0
        self._outlived: set[Key] = set()
        self._known: frozenset[Key] | None = None
        """What the last look that counts found; what is new since may be a turn's."""
        self._uncounted = False  # nobody could look at a turn's begin or end: the next look makes good
        self._cancels_written = asyncio.Event()
        self._cancels_written.set()
        self._writing = 0

    # -- prompts --------------------------------------------------------------------------------

    def begin(self, generation: int, dispatch_id: str) -> Turn:
        """The prompt's turn is the current one from now on; an own turn that runs is ended by the caller
        next."""
        turn = Turn(Identity(generation), dispatch_id)
        self.current = turn
        return turn

    def running(self, turn: Turn) -> None:
        """From here on what the agent says is this turn's. Called just before the write."""
        self._attribution.started(turn.identity)
        turn.before = self.look_ahead()

    @contextmanager
    def writing_a_cancel(self) -> Iterator[None]:
        """No prompt is written meanwhile, nor right behind it."""
        self._writing += 1
        self._cancels_written.clear()
        try:
            yield
        finally:
            self._writing -= 1
            self._settle_until = _now() + self._settings.cancel_settle_s
            if not self._writing:
                self._cancels_written.set()

    async def settle(self) -> None:
        """A cancel that was written for the last turn may still be on its way to the agent, or inside it."""
        await self._cancels_written.wait()
        if (left := self._settle_until - _now()) > 0:
            await asyncio.sleep(left)

    def taken(self, turn: Turn) -> None:
        """The prompt is written whole: journalled once, whoever notices first (its end implies it)."""
        if not turn.noted:
            turn.noted = True
            # Whatever the room: whoever sent the prompt must not wait for a reader of earlier output.
            self._record.put(wire.PromptTaken, turn.identity, dispatch_id=turn.dispatch_id)
        turn.taken.set()

    def give_up(self, turn: Turn) -> None:
        """The prompt certainly never reached the agent."""
        turn.never_taken = True
        self._attribution.abandoned()
        self._finish(turn)

    def _finish(self, turn: Turn) -> None:
        if self.current is turn:
            self.current = None
        turn.over.set()

    # -- the sink -------------------------------------------------------------------------------

    async def event(self, frame_type: type[wire.Frame], **members: Any) -> None:
        identity = self._attribution.of_output(frame_type, members, _now())
        if identity is None:
            identity = await self._begin_own()
            self._attribution.of_output(frame_type, members, _now())
        with self._hearing(identity, worked=issubclass(frame_type, OPENING)):
            await self._record.write(frame_type, identity, **members)

    async def permission(self, ask: PermissionAsk) -> None:
        identity = self._attribution.of_permission(ask.tool_call_id, _now())
        if identity is None:
            identity = await self._begin_own()
        with self._hearing(identity, worked=True):
            await self._permissions.ask(ask, identity, lambda: self._refused_by(identity))

    async def turn_ended(self, end: TurnEnd) -> None:
        turn = self.current
        if turn is None or turn.own:
            await self._record.write(wire.Notice, text="The agent ended a turn that does not run.")
            return
        if not turn.noted:
            self.taken(turn)
        if self.unproven and not (turn.worked or turn.cancelling or end.error):
            await self._record.write(wire.Notice, turn.identity, text=WITHOUT_A_WORD)
        self.unproven = False
        await self._close(turn, end)

    async def closed(self) -> None:
        self._on_closed()

    @contextmanager
    def _hearing(self, identity: Identity, *, worked: bool) -> Iterator[None]:
        """The agent speaks: noted before its words wait for room, for it is not silent meanwhile."""
        turn = self.current
        if turn is None or turn.identity != identity:
            yield
            return
        turn.said_at = _now()
        turn.saying += 1
        try:
            yield
            turn.worked = turn.worked or worked
        finally:
            turn.saying -= 1
            turn.said_at = _now()

    def _refused_by(self, identity: Identity) -> By | None:
        turn = self.current
        if turn is None or turn.identity != identity:
            return "end"
        return "cancel" if turn.cancelling else None

    # -- ends -----------------------------------------------------------------------------------

    def cancel_written(self, turn: Turn) -> None:
        """The agent is being told: its end is read although the journal is full."""
        turn.cancel_written = True
        self._record.journal.stretch(self._settings.journal_max_bytes // END_SHARE)

    async def _close(self, turn: Turn, end: TurnEnd) -> None:
        await self._record.journal.room()
        self._end(turn, end)

    def _end(self, turn: Turn, end: TurnEnd) -> None:
        if turn.ended or turn.over.is_set():
            return
        turn.ended = True
        self._permissions.end_all(turn.identity)
        outlived = self._outliving(turn)
        self._attribution.ended(_now())
        if turn.cancel_written:
            self._settle_until = _now() + self._settings.cancel_settle_s
        if self.current is turn:
            self.current = None
        self._record.journal.stretch(0)
        self._record.put(
            wire.TurnEnded,
            turn.identity,
            stop_reason=end.stop_reason,
            error=end.error,
            outlived=[] if turn.own else outlived,
        )
        turn.over.set()

    def look_ahead(self) -> frozenset[Key] | None:
        """What is there before a turn: not the turn's. None: nobody can tell."""
        if (looked := self._look()) is None:
            return None
        found = frozenset(map(_key, looked))
        if not self._uncounted or self._count(found):
            self._known = found
        return found

    def left_behind(self) -> list[wire.Process] | None:
        """What turns began and left running, and still runs. None: nobody can tell."""
        if (found := self._look()) is None:
            return None
        if self._uncounted and not self._count(frozenset(map(_key, found))):
            return None
        return [process for process in found if _key(process) in self._outlived]

    def _outliving(self, turn: Turn) -> list[wire.Process]:
        """Processes that the turn began and that live on; none where nobody can tell."""
        found = self._look()  # once: it reads all of /proc
        if found is None or turn.before is None or self._uncounted:
            self._uncounted = found is None or not self._count(frozenset(map(_key, found)))
            if found is None or turn.before is None:
                return []
        outlived = [process for process in found if _key(process) not in turn.before]
        self._outlived = self._outlived.intersection(map(_key, found)).union(map(_key, outlived))
        if not self._uncounted:
            self._known = frozenset(map(_key, found))
        return outlived

    def _count(self, found: frozenset[Key]) -> bool:
        """What is new since the last look that counts was left by a turn. False: there was no such look."""
        if self._known is None:
            return False
        self._outlived = (self._outlived & found) | (found - self._known)
        self._known, self._uncounted = found, False
        return True

    async def process_gone(self) -> None:
        """Nothing will run here any more: the journal's last frame closes what was open. Whoever waits for
        the turn's end has heard of it."""
        self._permissions.end_all()
        if (turn := self.current) is not None:
            self._finish(turn)
            if turn.operation is not None:
                await asyncio.wait({turn.operation}, timeout=self._settings.teardown_kill_s)

    # -- turns that the agent begins by itself ---------------------------------------------------

    async def _begin_own(self) -> Identity:
        if self.current is not None and not self.current.own:
            # A prompt is about to be written: the agent spoke first, and its words go with that turn.
            return self.current.identity
        turn = Turn(Identity(0, uuid4().hex), before=self.look_ahead(), said_at=_now())
        turn.taken.set()
        self.current = turn
        self._attribution.started(turn.identity)
        await self._record.write(wire.TurnStarted, turn.identity)
        self._tasks.start(self._await_silence(turn), "own turn")
        return turn.identity

    async def _await_silence(self, turn: Turn) -> None:
        while not turn.over.is_set():
            if self._is_silent(turn):
                await self._record.journal.room()
                if self._is_silent(turn):  # it may have spoken meanwhile; from here to the end nothing waits
                    self._end(turn, TurnEnd("idle"))
                    return
            left = self._settings.own_turn_silent_s - self.silent_for(turn)
            await _wait(turn.over, max(left, self._settings.own_turn_silent_s / 10, 0.001))

    def _is_silent(self, turn: Turn) -> bool:
        held = turn.saying or self._permissions.any_of(turn.identity) or turn.being_cancelled
        return not held and self.silent_for(turn) >= self._settings.own_turn_silent_s

    async def end_own(self, turn: Turn, stop_reason: str) -> None:
        await self._close(turn, TurnEnd(stop_reason))

    def silent_for(self, turn: Turn) -> float:
        """Seconds since the agent said something in this turn."""
        return _now() - turn.said_at


def _key(process: wire.Process) -> Key:
    return process.pid, process.start_time


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            return await event.wait()
    except TimeoutError:
        return False


def _now() -> float:
    return asyncio.get_running_loop().time()

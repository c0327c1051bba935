"""One instance: an execution's agent process from its launch to its proven end.

One task lives as long as the instance does: launch, wait for an exit or a wish to end, end the tree, let
the reader finish, write the journal's last frame. Not here: turns, prompts, cancels and permissions,
which have modules of their own.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from kandev.agentctl.adapters.base import Adapter, Started, StartFailed, WriteFailed
from kandev.agentctl.attribution import Identity
from kandev.agentctl.cancelling import NOT_RUNNING, Cancelling
from kandev.agentctl.dispatching import Agent, Claims, Dispatching
from kandev.agentctl.journal import Journal
from kandev.agentctl.launch import Launch
from kandev.agentctl.maker import Maker, Process
from kandev.agentctl.permissions import Permissions
from kandev.agentctl.record import Record
from kandev.agentctl.refusals import Refused, invalid, launch_failed
from kandev.agentctl.settings import Settings
from kandev.agentctl.tasks import Tasks
from kandev.agentctl.tunnel.bridge import is_bridge
from kandev.agentctl.tunnel.calls import Tunnel
from kandev.agentctl.turns import Turns
from kandev.wire import agentctl as wire

log = logging.getLogger(__name__)

EndAgain = Callable[[list[wire.Process]], Awaitable[list[wire.Process]]]
"""Tries to end survivors; those that are left."""

LOST = "agentctl ended unexpectedly while this agent ran."
BROKE = "an instance broke"
MISTAKE = "agentctl made a mistake with this execution; its log has the details."


class Instance:
    """Raises nothing by itself: what goes wrong is `state`, `error` and the journal's last frame."""

    def __init__(
        self, spec: wire.CreateInstance, journal: Journal, folder: Path, maker: Maker, settings: Settings
    ) -> None:
        self.spec = spec
        self.journal = journal
        self.state: wire.InstanceState = "starting"
        self.error: str | None = None
        self.ready = asyncio.Event()
        self.ended = asyncio.Event()
        self.streams: list[asyncio.Event] = []
        self.tunnel = Tunnel(spec.execution_id, settings, wanted=spec.mcp_mode is not None)
        self.inherited = False  # it stands for an execution of an earlier agentctl
        self._ids = {"ids": {name: getattr(spec, name) for name in ("execution_id", "session_id", "task_id")}}
        self._settings, self._maker = settings, maker
        self._tasks = Tasks()
        self._record = Record(journal)
        self._end_wanted = asyncio.Event()
        self._force = self._mute = False
        self._process: Process | None = None
        self._adapter: Adapter | None = None
        self._reader: asyncio.Task[None] | None = None
        self._started = Started(None)
        self._exit_code: int | None = None
        self._stderr: list[str] = []
        self._survivors: list[wire.Process] = []
        self._end_again: EndAgain | None = None
        acknowledge_s = spec.cancel_acknowledge_s
        acknowledge_s = settings.cancel_acknowledge_s if acknowledge_s is None else acknowledge_s
        self.permissions = Permissions(
            self._record, self._tasks, self.adapter, auto_approve=spec.auto_approve
        )
        self.turns = Turns(self._record, self.permissions, self._tasks, settings, self._look, self._heard_all)
        self._cancelling = Cancelling(
            self.turns, self.permissions, self._tasks, self.adapter, settings, acknowledge_s
        )
        agent = Agent(self.adapter, self._closed, self._broken)
        self.dispatching = Dispatching(Claims(folder / "claims"), self.turns, self._tasks, agent)

    # -- what it is -----------------------------------------------------------------------------

    def adapter(self) -> Adapter:
        if self._adapter is None:
            raise WriteFailed("There is no agent.")
        return self._adapter

    @property
    def works(self) -> bool:
        """A turn runs."""
        return self.turns.current is not None

    def describe(self) -> wire.Instance:
        turn = self.turns.current
        return wire.Instance(
            instance_id=self.spec.execution_id,
            session_id=self.spec.session_id,
            task_id=self.spec.task_id,
            state=self.state,
            journal_id=self.journal.meta.journal_id,
            last_seq=self.journal.last_seq,
            acknowledged_seq=self.journal.acknowledged_seq,
            generation_mark=self.dispatching.mark,
            turn_generation=None if turn is None or turn.own else turn.identity.generation,
            own_turn_id=None if turn is None else turn.identity.own_turn_id,
            pid=None if self._process is None else self._process.pid,
            agent_name=self._started.agent_name,
            agent_version=self._started.agent_version,
            resume_token=self._started.resume_token,
            memory=self._started.memory,
            open_permissions=self.permissions.ids(),
            survivors=self._survivors,
            error=self.error,
        )

    def stopped(self) -> wire.Stopped:
        return wire.Stopped(
            last_seq=self.journal.last_seq,
            journal_id=self.journal.meta.journal_id,
            survivors=self._survivors,
            exit_code=self._exit_code,
        )

    def launch_failure(self) -> Refused:
        return launch_failed(self.error, self._stderr, self._exit_code)

    def _closed(self) -> Refused | None:
        if self.state == "starting":
            return Refused(409, "not_ready", "The agent is still starting.")
        if self.state != "ready" or self._end_wanted.is_set():
            return Refused(409, "ended", "The execution is over or ending.")
        return None

    def _look(self) -> list[wire.Process] | None:
        with contextlib.suppress(OSError):  # no descriptor left: turns begin and end without this
            return [] if self._process is None else _besides_bridges(self._process.look())
        return None

    # -- what is asked of it ----------------------------------------------------------------------

    def begin(self) -> None:
        """Start living. `ready` is set when the launch is decided, `ended` when all is over."""
        self._life = asyncio.create_task(self._live(), name=f"instance {self.spec.execution_id}")

    def begin_ended(
        self, survivors: list[wire.Process], over: wire.ProcessExited | None, again: EndAgain
    ) -> None:
        """Stand for one of an earlier agentctl. `over`: its last frame, if any; `again` ends survivors."""
        self.state, self._survivors, self._end_again, self.inherited = "ended", survivors, again, True
        self.error = LOST if over is None else over.error
        self._exit_code = None if over is None else over.exit_code
        if over is None:
            self._record.put(wire.ProcessExited, error=LOST, survivors=survivors)
        self.ready.set()
        self.ended.set()

    async def cancel(self, asked: wire.Cancel) -> wire.CancelAnswer:
        generation, own = asked.prompt_generation, asked.own_turn_id
        if (generation is None) == (own is None):
            raise invalid("A cancel names a prompt_generation or an own_turn_id, exactly one of them.")
        turn = self.turns.current
        if turn is not None and turn.identity == Identity(generation or 0, own):
            return await self._cancelling.cancel(turn)
        if generation is not None:
            self.dispatching.void(generation)
        return NOT_RUNNING

    async def stop(self, *, force: bool) -> wire.Stopped:
        """End the tree, whatever goes on. Bounded by the ladder; the journal stays."""
        self._force = self._force or force
        self.journal.lift()
        self._end_wanted.set()
        if force and self._process is not None and not self.ended.is_set():
            self._tasks.start(self._process.end(force=True), "end at once")
        await self.ended.wait()
        if self._survivors and self._end_again is not None:
            self._survivors = await self._end_again(self._survivors)
        return self.stopped()

    async def sleep(self, after_seq: int) -> wire.Stopped:
        """As `stop`, if nothing goes on. Raises Refused: it does, or did behind `after_seq`."""
        lives, spoke = self.state in ("starting", "ready"), self.journal.last_seq > after_seq
        if lives and (why := _keeps_awake(self, self._started, spoke=spoke)) is not None:
            raise Refused(409, "awake", why)
        return await self.stop(force=False)

    def _broken(self, why: str) -> None:
        log.error("an instance ends: %s", why, extra=self._ids)
        self.error = self.error or why
        self.journal.lift()
        self._end_wanted.set()

    def _heard_all(self) -> None:
        """The agent's stdout is at its end: it can neither answer nor be understood any more."""
        self._mute = True
        self._end_wanted.set()

    # -- its life -------------------------------------------------------------------------------

    async def _live(self) -> None:
        try:
            if await self._launch():
                await self._until_over()
        except Exception:  # Around an instance: one that breaks ends, and no other notices.
            log.exception(BROKE, extra=self._ids)
            self.error = self.error or MISTAKE
        try:
            await self._end_tree()
        except Exception:  # Around the effect that ends it: Stop answers all the same.
            log.exception(BROKE, extra=self._ids)
            self.error = self.error or MISTAKE
            self._survivors = _unproven(self._process)
        try:
            await self._close()
        finally:
            self.ready.set()
            self.ended.set()

    async def _launch(self) -> bool:
        """True when the agent is ready."""
        launch = Launch(self.spec, self._maker, self.turns, self._tasks, self._settings, self.tunnel)
        try:
            self._started = await launch.run(self._end_wanted)
        except StartFailed as failure:
            self.error = self.error or str(failure)
            return False
        finally:
            self._process, self._adapter, self._reader = launch.process, launch.adapter, launch.reader
        self.turns.look_ahead()  # known before the first turn, should nobody be able to look at its begin
        self._announce()
        return True

    def _announce(self) -> None:
        started, self.turns.unproven = self._started, not self._started.proven
        self._record.put(wire.SessionStarted, resume_token=started.resume_token, memory=started.memory)
        for warning in started.warnings:
            self._record.put(wire.Notice, text=warning)
        self.state = "ready"
        self.ready.set()

    async def _until_over(self) -> None:
        exited = self._tasks.start(self._exit(), "await an exit")
        wanted = self._tasks.start(self._end_wanted.wait(), "end wanted")
        await asyncio.wait({exited, wanted}, return_when=asyncio.FIRST_COMPLETED)
        self._end_wanted.set()
        self.journal.lift()
        turn = self.turns.current
        polite = not (exited.done() or self._mute or self._force or self.error)  # we broke: not its choice
        if polite and turn is not None and turn.taken.is_set():
            await self._cancelling.politely(turn)

    async def _exit(self) -> None:
        if self._process is not None:
            self._exit_code = await self._process.exited()

    async def _end_tree(self) -> None:
        """The tree is gone or its survivors are named, and what the pipe still held is in the journal."""
        self._end_wanted.set()
        self.journal.lift()
        if (process := self._process) is None:
            return
        self._end_again = lambda _: process.end(force=True)
        self._survivors = await process.end(force=self._force)
        if self._survivors:
            log.warning("processes could not be ended: %s", _named(self._survivors), extra=self._ids)
        if self._reader is not None:
            # A survivor may hold the pipe open for ever.
            await asyncio.wait({self._reader}, timeout=self._settings.teardown_stdin_s)
            self._reader.cancel()
            await asyncio.wait({self._reader})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._settings.teardown_kill_s):
                await self._exit()
        self._stderr = process.stderr_tail()

    async def _close(self) -> None:
        """Every way out leads here: the journal gets its last frame."""
        await self.turns.process_gone()
        self._record.put(
            wire.ProcessExited,
            exit_code=self._exit_code,
            error=self.error,
            stderr_tail=self._stderr,
            survivors=self._survivors,
        )
        self.state = "ended" if self.state == "ready" else "failed"
        self._adapter = None  # nobody asks it any more, and what it knows may be much
        self.tunnel.close()
        await self._tasks.close()


def _keeps_awake(instance: Instance, started: Started, *, spoke: bool) -> str | None:
    if instance.state == "starting" or instance.works:
        return "The agent is at work."
    if instance.tunnel.waits:
        return "The agent waits for one of Kandev's tools."
    if spoke:
        return "The agent has said something since."
    if not started.resumable:
        return "The agent could not take its conversation up again."
    if (left := instance.turns.left_behind()) is None:
        return "Nobody can tell what its turns left running."
    return f"What a turn began still runs: {_named(left)}." if left else None


def _besides_bridges(processes: list[wire.Process]) -> list[wire.Process]:
    """An agent may start its bridge at its first tool call: it is no work that a turn leaves behind."""
    return [process for process in processes if not is_bridge(process.command)]


def _named(processes: list[wire.Process]) -> str:
    return ", ".join(f"{process.pid} {process.command}" for process in processes)


def _unproven(process: Process | None) -> list[wire.Process]:
    """What is told of a tree that could not be ended or looked at: the next stop tries again."""
    command = "(could not be looked at)"
    return [] if process is None else [wire.Process(pid=process.pid, start_time=0, command=command)]

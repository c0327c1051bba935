"""Prompts of one instance: each dispatch id has one answer for ever.

Order of checks: known dispatch id, owner's epoch, generation mark, ready, busy. A refusal, and a negative
answer about a dispatch, raise the generation mark, so that a delayed copy is refused too. A claim is
written before the first byte goes to the agent; a disk that does not take it refuses the prompt and leaves
the agent alone. A write to the agent that fails half-way is neither a yes nor a no: the process is ended and
the dispatch stays unsettled. Not here: what the turn does afterwards (`turns`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from kandev.agentctl.adapters.base import Adapter, WriteFailed
from kandev.agentctl.refusals import Refused, Unsettled, invalid
from kandev.agentctl.segments import append_line
from kandev.agentctl.tasks import Tasks
from kandev.agentctl.turns import Turn, Turns
from kandev.wire import agentctl as wire


@dataclass(eq=False)
class Dispatch:
    """`settled` with neither `accepted` nor `refused`: nobody can tell."""

    generation: int
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    accepted: bool = False
    refused: Refused | None = None
    unsettled: str = "agentctl ended while this prompt was written."

    async def answer(self, *, duplicate: bool) -> wire.PromptAccepted:
        await self.settled.wait()
        if self.accepted:
            return wire.PromptAccepted(duplicate=duplicate)
        if self.refused is not None:
            raise self.refused
        raise Unsettled(self.unsettled)

    def state(self) -> bool | None:
        if self.refused is not None:
            return False
        return True if self.accepted else None

    def settle(self, *, accepted: bool = False, refused: Refused | None = None, unsettled: str = "") -> None:
        if not self.settled.is_set():
            self.accepted, self.refused = accepted, refused
            self.unsettled = unsettled or self.unsettled
            self.settled.set()


class Claim(msgspec.Struct):
    """A prompt of this dispatch may have reached the agent."""

    dispatch_id: str
    generation: int


class Claims:
    """`claims` beside the journal: which dispatches may have reached the agent."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> list[Claim]:
        if not self._path.exists():
            return []
        lines = self._path.read_bytes().split(b"\n")[:-1]
        return [msgspec.json.decode(line, type=Claim) for line in lines]

    def add(self, claim: Claim) -> None:
        """It outlives agentctl. Not flushed: an agent that could have got the prompt does not outlive the
        machine, and neither does its journal. Raises OSError, and then nothing was claimed."""
        append_line(self._path, msgspec.json.encode(claim) + b"\n")


@dataclass(frozen=True)
class Agent:
    """What a prompt needs of the instance. `closed` says why no prompt is taken (None: it is ready);
    `broken` ends the process."""

    adapter: Callable[[], Adapter]
    closed: Callable[[], Refused | None]
    broken: Callable[[str], None]


class Dispatching:
    """The prompts of one instance."""

    def __init__(self, claims: Claims, turns: Turns, tasks: Tasks, agent: Agent) -> None:
        self.mark = 0
        self._claims = claims
        self._turns = turns
        self._tasks = tasks
        self._agent = agent
        self._known: dict[str, Dispatch] = {}

    def remember(self, dispatch_id: str, generation: int, *, accepted: bool) -> None:
        """What an earlier agentctl left: a claim whose prompt was journalled, or whose fate nobody knows."""
        dispatch = self._known[dispatch_id] = Dispatch(generation)
        dispatch.settle(accepted=accepted)
        self.mark = max(self.mark, generation)

    async def prompt(self, asked: wire.Prompt, check_epoch: Callable[[], None]) -> wire.PromptAccepted:
        """Raises Refused (`check_epoch` does too) or Unsettled. Goes on when the caller goes away."""
        if (known := self._known.get(asked.dispatch_id)) is not None:
            return await known.answer(duplicate=True)
        if asked.prompt_generation < 1 or not asked.dispatch_id:
            raise invalid("A prompt has a dispatch_id and a prompt_generation of at least 1.")
        dispatch = self._known[asked.dispatch_id] = Dispatch(asked.prompt_generation)
        try:
            check_epoch()
            self._check(asked.prompt_generation)
        except Refused as refused:
            dispatch.settle(refused=refused)
            self.mark = max(self.mark, asked.prompt_generation)
            raise
        self.mark = asked.prompt_generation
        before = self._turns.current
        turn = self._turns.begin(asked.prompt_generation, asked.dispatch_id)
        self._tasks.start(self._deliver(dispatch, turn, before, asked.content), "deliver a prompt")
        return await dispatch.answer(duplicate=False)

    def _check(self, generation: int) -> None:
        if generation <= self.mark:
            raise Refused(
                409, "old_generation", f"Generation {generation} is over: {self.mark} has been seen."
            )
        if (refused := self._agent.closed()) is not None:
            raise refused
        turn = self._turns.current
        if turn is not None and not turn.own:
            raise Refused(409, "busy", f"The agent works on generation {turn.identity.generation}.")

    async def _deliver(
        self, dispatch: Dispatch, turn: Turn, own: Turn | None, content: str | list[dict[str, object]]
    ) -> None:
        begun = False
        try:
            if own is not None:
                await self._turns.end_own(own, "idle")
            self._claim(turn)
            await self._turns.settle()
            if (refused := self._agent.closed()) is not None:
                raise refused
            begun = True
            self._turns.running(turn)
            await self._agent.adapter().prompt(content)
            self._turns.taken(turn)
            dispatch.settle(accepted=True)
        except Refused as refused:
            dispatch.settle(refused=refused)
            self._turns.give_up(turn)
        except WriteFailed as failure:
            dispatch.settle(unsettled=f"The agent did not take the whole prompt: {failure}")
            self._agent.broken(f"The agent no longer takes input: {failure}")
        finally:
            if not begun:
                dispatch.settle(
                    refused=Refused(409, "ended", "The execution ended before the prompt was written.")
                )
            dispatch.settle()
            if begun and not dispatch.accepted:
                self._agent.broken("The agent did not take a prompt.")

    def _claim(self, turn: Turn) -> None:
        try:
            self._claims.add(Claim(turn.dispatch_id or "", turn.identity.generation))
        except OSError as error:
            why = error.strerror or str(error)
            raise Refused(
                409, "not_recorded", f"agentctl cannot record it in Kandev's home: {why}."
            ) from error

    def state(self, dispatch_id: str, generation: int) -> wire.DispatchState:
        """A dispatch that is not known is refused from now on."""
        if (known := self._known.get(dispatch_id)) is not None:
            return wire.DispatchState(accepted=known.state())
        self.mark = max(self.mark, generation)
        dispatch = self._known[dispatch_id] = Dispatch(generation)
        dispatch.settle(
            refused=Refused(
                409, "old_generation", f"The dispatch {dispatch_id!r} was given up before it came."
            )
        )
        return wire.DispatchState(accepted=False)

    @property
    def untouched(self) -> bool:
        """No prompt, question or cancel about one has come yet."""
        return self.mark == 0 and not self._known

    def void(self, generation: int) -> None:
        """A cancel came first: a prompt of this generation will not be taken."""
        self.mark = max(self.mark, generation)

"""A sidecar and its agents as a model, with the fences that turn control relies on.

It answers requests, keeps journals, and lets its agent misbehave. `n` is its dice: it grows with every call
and decides moods, so a history is a function of its steps alone. Not here: the backend's side (`world`).
"""

from dataclasses import dataclass, field
from typing import Any

from kandev.core.effects import (
    AnswerPermission,
    CancelTurn,
    Doze,
    Follow,
    HandAnswer,
    Owed,
    Prompt,
    Start,
    Teardown,
)
from kandev.core.inputs import (
    Asleep,
    Awake,
    CancelFailed,
    CancelHeard,
    CancelUnheard,
    Ended,
    Exited,
    Gone,
    Input,
    LaunchFailed,
    Output,
    OwnTurn,
    PermissionAsked,
    PermissionDone,
    QuestionDone,
    Ready,
    Refused,
    Said,
    Taken,
)
from kandev.core.session import TurnRef
from kandev.core.transcript import Notice, PermissionAsk, Text

CHUNK = Text("message", "…")


@dataclass
class Instance:
    """One agent process and its journal."""

    execution: str
    alive: bool = True
    high: int = 0
    """The generation mark: nothing at or below it is accepted any more."""
    dispatched: set[int] = field(default_factory=set)
    turn: TurnRef | None = None
    calls: dict[str, bool] = field(default_factory=dict)
    """Questions that a tool call asked: whether it took the answer."""
    journal: list[Any] = field(default_factory=list)


class Sidecar:
    """Agentctl as far as the core can see it. `heard`: which entries an agent got, in which turn."""

    def __init__(self) -> None:
        self.instances: dict[str, Instance] = {}
        self.tombs: set[str] = set()
        self.heard: list[tuple[str, TurnRef]] = []
        self.n = 0
        self.fair = False
        """A fair sidecar refuses only what its fences forbid, and starts what it is asked to."""

    @property
    def live(self) -> list[Instance]:
        return [i for i in self.instances.values() if i.alive]

    def crash(self) -> None:
        """Everything it knew is gone; its processes are ended by the next incarnation."""
        self.instances, self.tombs = {}, set()

    def request(self, due: Owed) -> Input | None:
        """One call of the backend, and what is reported about it."""
        self.n += 1
        match due:
            case Start(execution):
                return self._start(execution)
            case Follow(execution):
                return None if execution in self.instances else Exited(execution, why="unknown")
            case Teardown(execution, unsettled):
                return self._teardown(execution, unsettled)
            case Doze(execution, seen):
                return self._doze(execution, seen)
            case Prompt(turn, entries):
                return self._prompt(turn, entries)
            case CancelTurn(turn, attempt):
                return self._cancel(turn, attempt)
            case HandAnswer(turn, question, entry):
                return self._hand(turn, question, entry)
            case AnswerPermission(turn, request, answer):
                it = self.instances.get(turn.execution)
                if it and it.alive and it.turn == turn:
                    said = "selected" if answer.option_id else "cancelled"
                    it.journal.append(PermissionDone(turn, request, said))
        return None

    def _hand(self, turn: TurnRef, question: str, entry: str) -> Input:
        it = self.instances.get(turn.execution)
        if it is None:  # it may have taken it before it crashed
            return QuestionDone(question, None)
        if not it.alive or question not in it.calls:
            return QuestionDone(question, False)
        if not it.calls[question]:
            it.calls[question] = True
            self.heard.append((entry, turn))
        return QuestionDone(question, True)

    def _start(self, execution: str) -> Input:
        if execution not in self.instances and (execution in self.tombs or self._mood(8)):
            self.tombs.add(execution)
            return LaunchFailed(execution, "it exited with code 1")
        it = self.instances.setdefault(execution, Instance(execution))
        if not it.alive:
            return LaunchFailed(execution, "it exited with code 1")
        return Ready(execution, f"journal of {execution}", "conversation")

    def _teardown(self, execution: str, unsettled: TurnRef | None) -> Input:
        it = self.instances.get(execution)
        self.tombs.add(execution)
        if it is None:
            return Gone(execution, None)
        it.alive, it.turn = False, None
        taken = unsettled.generation in it.dispatched if unsettled else None
        return Gone(execution, taken)

    def _doze(self, execution: str, seen: int) -> Input:
        it = self.instances.get(execution)
        if it is None:
            return Exited(execution, why="unknown")
        if it.alive and (it.turn is not None or len(it.journal) > seen or self._mood(3)):
            return Awake(execution, "something goes on")
        if it.alive:
            it.alive = False
            it.journal.append(Exited(execution, 0))
        return Asleep(execution)

    def _prompt(self, turn: TurnRef, entries: tuple[str, ...]) -> Input:
        it = self.instances.get(turn.execution)
        if it is None:
            return Exited(turn.execution, why="unknown")
        if turn.generation in it.dispatched:
            return Taken(turn)
        busy = not it.alive or (it.turn is not None and it.turn.own is None) or self._mood(9)
        if turn.generation <= it.high or busy:
            it.high = max(it.high, turn.generation)
            return Refused(turn, "busy")
        if it.turn is not None:  # its own turn makes way
            self.end(it, "idle")
        it.high = turn.generation
        it.dispatched.add(turn.generation)
        it.turn = turn
        self.heard += [(e, turn) for e in entries]
        it.journal.append(Taken(turn))
        return Taken(turn)

    def _cancel(self, turn: TurnRef, attempt: int) -> Input:
        it = self.instances.get(turn.execution)
        if it is None:
            return Exited(turn.execution, why="unknown")
        it.high = max(it.high, turn.generation)
        if not it.alive or it.turn != turn:
            return CancelHeard(turn, attempt)
        match self.n % 4:
            case 0:
                return CancelFailed(turn, attempt, "the pipe is full")
            case 1:
                return CancelUnheard(turn, attempt)
            case 2:
                self.end(it, "end_turn")
            case _:
                self.end(it, "cancelled")
        return CancelHeard(turn, attempt)

    def _mood(self, seldom: int) -> bool:
        return not self.fair and self.n % seldom == 0

    # -- the agent ------------------------------------------------------------------------------

    def end(self, it: Instance, reason: str, error: str | None = None) -> None:
        assert it.turn is not None
        it.journal.append(Ended(it.turn, reason, error))
        it.turn = None
        it.calls = {question: True for question, served in it.calls.items() if served}

    def act(self, what: int) -> None:
        """The agent does something by itself."""
        self.n += 1
        if not self.live:
            return
        it = self.live[0]
        if what % 10 == 9:
            it.journal.append(Exited(it.execution, 7))
            it.alive, it.turn = False, None
        elif it.turn is None:
            self._idles(it, what)
        else:
            self._works(it, it.turn, what)

    def _idles(self, it: Instance, what: int) -> None:
        late = [e for e in it.journal if isinstance(e, Ended)]
        match what % 4:
            case 0:
                it.turn = TurnRef(it.execution, 0, f"own{self.n}")
                it.journal.append(OwnTurn(it.turn))
            case 1:
                it.journal.append(Said(it.execution, Notice(f"notice {self.n}")))
            case 2 if late:
                it.journal.append(Output(late[-1].turn, CHUNK))
            case 3 if late:
                it.journal.append(late[-1])

    def _works(self, it: Instance, turn: TurnRef, what: int) -> None:
        match what % 10:
            case 0 | 1 | 2:
                self.end(it, "end_turn")
            case 3:
                self.end(it, "error", "401")
            case 4:
                self.end(it, "cancelled")
            case 5 | 6:
                it.journal.append(PermissionAsked(turn, PermissionAsk(f"p{self.n}", "rm -r")))
            case _:
                it.journal.append(Output(turn, Text("message", f"chunk {self.n}")))

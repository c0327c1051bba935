"""Sessions that take messages without any agent: the core's decisions, booked into a store.

Not here: measuring (`store`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from kandev.core.board import Step, Task, Workflow, Workspace
from kandev.core.decide import decide
from kandev.core.inputs import Draft, Ended, Frame, Input, Output, Ready, Send, Taken
from kandev.core.records import SessionRecord
from kandev.core.session import Entry, Session, TurnRef
from kandev.core.transcript import Text
from kandev.execution.clock import SystemClock, TimeIds
from kandev.ports.store import Store, Tx
from kandev.runtime.deadlines import Deadlines
from kandev.runtime.keeper import StoreKeeper

AT: Final = "2026-01-01T00:00:00.000Z"


async def seed(store: Store, count: int) -> list[str]:
    """So many sessions that wait, each on a task of its own; their ids."""
    ids = [f"session_{number}" for number in range(count)]

    def insert(tx: Tx) -> None:
        tx.workspaces.insert(Workspace("workspace_1", "Default", AT, AT))
        step = Step("step_1", "workflow_1", "Backlog", 0)
        tx.workflows.insert(Workflow("workflow_1", "workspace_1", "Kanban", "kanban", (step,), AT, AT))
        for number, id in enumerate(ids):
            tx.tasks.insert(_task(number))
            tx.sessions.insert(_session(id, number))

    await store.write(insert)
    for id in ids:
        writer = await Writer.of(store, id)
        await writer.launch()
    return ids


def _task(number: int) -> Task:
    return Task(
        id=f"task_{number}",
        workspace_id="workspace_1",
        workflow_id="workflow_1",
        workflow_step_id="step_1",
        title="A task",
        description="",
        state="TODO",
        priority="medium",
        position=number,
        created_at=AT,
        updated_at=AT,
    )


def _session(id: str, number: int) -> SessionRecord:
    return SessionRecord(
        id=id,
        task_id=f"task_{number}",
        workspace_id="workspace_1",
        name="Session 1",
        agent_profile_id="profile_1",
        is_primary=True,
        value=Session(id),
        state="CREATED",
        created_at=AT,
        updated_at=AT,
        since=AT,
    )


class Writer:
    """The only writer of one session, as an actor is, without anything outside."""

    def __init__(self, keeper: StoreKeeper, record: SessionRecord) -> None:
        self._keeper, self._record = keeper, record
        self._ids = TimeIds()
        self._waits: list[float] = []

    @staticmethod
    async def of(store: Store, id: str) -> Writer:
        """As it is stored."""
        keeper = StoreKeeper(id, store, SystemClock(), TimeIds(), Deadlines())
        return Writer(keeper, await keeper.load())

    async def launch(self) -> None:
        """Its first message, until its agent would wait again."""
        await self._decide(self._message())
        await self._decide(Ready(self._record.value.execution, "journal", "conversation"))
        for step in self.STEPS[1:]:
            await self._decide(step(self))

    async def write(self, messages: int) -> list[float]:
        """So many messages, four decisions each; the seconds of each decision until it was committed."""
        self._waits = []
        for _ in range(messages):
            for step in self.STEPS:
                await self._decide(step(self))
        return self._waits

    async def _decide(self, given: Input) -> None:
        began = time.monotonic()
        decided = decide(self._record.value, given)
        self._record, _ = await self._keeper.commit(self._record, decided, (given,))
        self._waits.append(time.monotonic() - began)

    def _message(self) -> Input:
        draft = Draft("What a person says in one line or two.", self._ids.new("message"))
        return Send("ask", Entry(self._ids.new("entry")), draft)

    def _turn(self) -> TurnRef:
        turn = self._record.value.turn
        if turn is None:
            raise RuntimeError("the session has no turn")
        return turn.ref

    def _taken(self) -> Input:
        return Taken(self._turn())

    def _output(self) -> Input:
        said = Text("message", "What an agent says, a line of some eighty characters, as they often do.", "m")
        return self._framed(Output(self._turn(), said))

    def _ended(self) -> Input:
        return self._framed(Ended(self._turn()))

    def _framed(self, report: Output | Ended) -> Input:
        value = self._record.value
        return Frame(value.execution, value.seen + 1, report)

    STEPS: tuple[Callable[[Writer], Input], ...] = (_message, _taken, _output, _ended)

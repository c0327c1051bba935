"""What a session's decision means for its task, in the session's own transaction.

First the steps, in the order of the notes (`core.workflow`), then the task's state (`core.task`); written
once, with one event for each thing that changed. What entering a step means for this session itself is
decided together with the turn's end (`followed`), what it means for others is owed on the task's row.
Synchronous over the transaction: no await can lie between reading the task's row and writing it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import structlog

from kandev.core import task as task_rules
from kandev.core import workflow
from kandev.core.board import OwedEnter, Task
from kandev.core.effects import (
    Claimed,
    Enqueued,
    LaunchOver,
    Note,
    Review,
    TurnClosed,
    TurnOpened,
)
from kandev.core.following import Follow, fold
from kandev.core.inputs import Draft, Input
from kandev.core.records import SessionRecord
from kandev.core.session import Entry, Session, TurnRef
from kandev.core.steps import Step
from kandev.core.views import asks_a_person, turn_id, wire_state
from kandev.core.workflow import Moved, Snapshot, enter_id
from kandev.ports.clock import Ids
from kandev.ports.store import Tx
from kandev.runtime import places

log = structlog.get_logger(__name__)


@dataclass
class Plan:
    """What is to be written of the task. `began`: `entered` of the turns that begin. `follow`: what the end
    of a turn of this session has to be decided with."""

    before: Task | None = None
    task: Task | None = None
    position: int | None = None
    began: dict[TurnRef, int] = field(default_factory=dict)
    follow: dict[TurnRef, Follow] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)

    @property
    def owes(self) -> bool:
        """Somebody has to be told that there is something to do."""
        due = self.task.owed_enter if self.task else None
        return due is not None and (self.before is None or due != self.before.owed_enter)


def followed(
    tx: Tx, record: SessionRecord, decided: Step, inputs: Sequence[Input], ids: Ids
) -> tuple[Step, Plan]:
    """The decision together with what follows from it for this session, and what all of it means for the
    task."""
    follow: dict[TurnRef, Follow] = {}
    while True:
        plan = planned(tx, record, decided, ids)
        fresh = {turn: then for turn, then in plan.follow.items() if turn not in follow}
        if not fresh or not inputs:
            return decided, plan
        # One at a time: what follows the first end changes what comes behind it.
        turn, then = next(iter(fresh.items()))
        follow[turn] = then
        decided = fold(record.value, inputs, follow)


def planned(tx: Tx, record: SessionRecord, decided: Step, ids: Ids) -> Plan:
    """Reads only."""
    after, notes = decided
    state = wire_state(after)
    works = state != record.state and state in task_rules.WORKING_SESSIONS
    told = (TurnOpened, TurnClosed, Enqueued, LaunchOver, Review)
    if not works and not any(isinstance(note, told) for note in notes):
        return Plan()
    task = tx.tasks.get(record.task_id)
    if task is None:
        return Plan()
    planner = _Planner(tx, record, task, notes, ids)
    for note in notes:
        planner.note(note, after)
    moved = planner.task
    fresh = _state(tx, record, state, notes, moved, entered=moved.entered != task.entered)
    return replace(planner.plan, before=task, task=fresh)


class _Planner:
    """The steps, note by note."""

    def __init__(self, tx: Tx, record: SessionRecord, task: Task, notes: Sequence[Note], ids: Ids) -> None:
        self._tx, self._record, self._ids = tx, record, ids
        self.task, self.plan = task, Plan()
        self._claimed = {n.turn: n.entries for n in notes if isinstance(n, Claimed)}
        self._sent = {n.entry.id for n in notes if isinstance(n, Enqueued)}

    def note(self, note: Note, after: Session) -> None:
        task = self.task
        match note:
            case Enqueued(entry) if entry.by == "workflow":
                self.task = workflow.prompted(task, entry.id)
            case Enqueued():
                self.task = workflow.said(task)
            case TurnOpened(turn):
                by_step = enter_id(task.id, task.entered) in self._claimed.get(turn, ())
                self._take(workflow.turn_opened(self._snapshot(task), by_step=by_step))
                self.plan.began[turn] = self.task.entered
            case TurnClosed(turn):
                held = asks_a_person(after)  # an answer goes on with the work
                self._take(workflow.turn_closed(self._snapshot(task), note, self._entered(turn), held=held))
                self._follow(task, turn)

    def _take(self, moved: Moved) -> None:
        if moved.task != self.task:
            self.plan.position = moved.position
        self.task = moved.task
        self.plan.ignored += moved.ignored

    def _entered(self, turn: TurnRef) -> int:
        if turn in self.plan.began:
            return self.plan.began[turn]
        row = self._tx.turns.get(turn_id(turn))
        return row.entered if row else 0

    def _snapshot(self, task: Task) -> Snapshot:
        pending = self._tx.workflows.step(task.pending_move.step_id) if task.pending_move else None
        named = {task.workflow_id, *((pending.workflow_id,) if pending else ())}
        found = (self._tx.workflows.get(id) for id in sorted(named))
        return Snapshot(task, tuple(row for row in found if row is not None))

    def _follow(self, before: Task, turn: TurnRef) -> None:
        """What the step owes to this session is taken off the row."""
        task = self.task
        due = task.owed_enter
        if due is None or due == before.owed_enter:
            return
        entry = enter_id(task.id, due.entered)
        if entry in self._sent:
            self.task = workflow.prompted(task, entry)
        sessions = self._tx.sessions.of_task(task.id)
        others = [s for s in sessions if s.id != self._record.id]
        if due.parks and not any(s.value.queue for s in others):
            self.task = workflow.parked(self.task)
        own = workflow.agent_for(
            [(s.id, s.is_primary, "RUNNING" if s.id == self._record.id else s.state) for s in sessions]
        )
        if then := self._then(due, entry, own == self._record.id, task):
            self.plan.follow[turn] = then

    def _then(self, due: OwedEnter, entry: str, own: bool, task: Task) -> Follow | None:
        if due.completes:
            step = self._tx.workflows.step(due.step_id)
            return Follow(finishes=f"the task reached {step.name!r}" if step else "the task is completed")
        prompt = None
        if due.prompt is not None and own:
            prompt = (Entry(entry, "workflow"), Draft(due.prompt, self._ids.new("message")))
        return Follow(prompt, due.parks) if prompt or due.parks else None


def _state(
    tx: Tx, record: SessionRecord, state: str, notes: Sequence[Note], task: Task, *, entered: bool
) -> Task:
    """After the steps, the state that the sessions give the task."""
    changed = state != record.state
    if state == "STARTING" and changed:
        task = task_rules.launching(task)
    if state == "RUNNING" and (changed or entered):
        task = task_rules.working(task)
    over = next((n for n in reversed(notes) if isinstance(n, LaunchOver)), None)
    review = any(isinstance(n, Review) for n in notes) or (over is not None and over.cancelled)
    if over is None and not review:
        return task
    states = [state, *(s.state for s in tx.sessions.of_task(task.id) if s.id != record.id)]
    if over is not None and not over.cancelled:
        task = task_rules.launch_over(task, states, over.error)
    return task_rules.to_review(task, states) if review else task


def book_task(tx: Tx, plan: Plan, at: str) -> None:
    """Write it."""
    before, task = plan.before, plan.task
    if before is None or task is None:
        return
    for sentence in plan.ignored:
        log.warning("workflow", task_id=task.id, ignored=sentence)
    if plan.position is not None:
        places.put(tx, before, task, plan.position, at)
        return
    if task.workflow_step_id != before.workflow_step_id:
        task = replace(task, position=tx.tasks.next_position(task.workflow_step_id))
    places.write(tx, before, task, at)

"""How a task moves over its board. Pure, over one snapshot: the task's row and its workflows.

A rule here gives the task's new row, with what entering a step owes on it (`board.OwedEnter`); who runs it
writes the row in the same transaction. What a turn's end means for a card is decided by how it ended:
completed runs the step, a person's cancel runs what says so, a silent one nothing at all, and no other end
moves a card.

Not here: a task's state while sessions work (`task`), which events there are (`step_events`), doing what is
owed (`runtime.task_booking`, `usecases.owed_steps`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from kandev.core.board import OwedEnter, PendingMove, Step, Task, Workflow
from kandev.core.effects import TurnClosed
from kandev.core.step_events import Action, actions
from kandev.core.task import FINAL

AUTOMATIC_PROMPTS: Final = 20
"""So many prompts the workflow sends to a task without anybody saying something in between: steps that start
each other go round once an hour or a thousand times, and nobody is asked."""


@dataclass(frozen=True)
class Snapshot:
    """What a rule sees. `workflows`: the task's own, and the one that a move goes to."""

    task: Task
    workflows: tuple[Workflow, ...]

    def step(self, id: str) -> Step | None:
        """A step of one of the workflows."""
        return next((s for w in self.workflows for s in w.steps if s.id == id), None)

    @property
    def here(self) -> Step | None:
        """The step in which the task is."""
        return self.step(self.task.workflow_step_id)

    def workflow_of(self, step: Step) -> Workflow:
        """The one that the step belongs to."""
        return next(w for w in self.workflows if w.id == step.workflow_id)


@dataclass(frozen=True)
class Moved:
    """The task's new row. `position`: in its step, when somebody named one (None: last). `ignored`: sentences
    for the log about what could not be followed."""

    task: Task
    position: int | None = None
    ignored: tuple[str, ...] = ()


def completed(end: TurnClosed) -> bool:
    """The agent did what it was asked to: neither we nor a fault ended the turn."""
    return end.cause == "agent" and end.error is None and end.stop_reason != "cancelled"


def enter_id(task_id: str, entered: int) -> str:
    """The id of the entry that carries a step's prompt: there is one for each entering, however often it is
    sent."""
    return f"enter:{task_id}:{entered}"


# -- turns --------------------------------------------------------------------------------------


def turn_opened(now: Snapshot, *, by_step: bool) -> Moved:
    """A turn begins: `on_turn_start`. No on_enter: the agent works already. `by_step`: the turn carries the
    prompt of the step itself, which was sent to be worked at in this step."""
    if by_step or _left_alone(now.task):
        return Moved(now.task)
    target, ignored = _target(now, "on_turn_start", cancelled=False)
    if target is not None and target.final:
        sentence = f"A turn that begins does not end its task: it is not moved to {target.name!r}."
        return Moved(now.task, ignored=(*ignored, sentence))
    if target is None:
        return Moved(now.task, ignored=ignored)
    return _entered(now, target, enters=False, ignored=ignored)


def turn_closed(now: Snapshot, end: TurnClosed, entered: int, *, held: bool) -> Moved:
    """A turn is over. `entered`: the task's at the turn's start. `held`: a question is open, and its answer
    goes on with the work."""
    task, cancelled = now.task, end.cause == "user"
    if task.archived_at is not None or not (cancelled or completed(end)):
        return Moved(task)
    if task.pending_move is not None:
        return _pending(now, task.pending_move, enters=not cancelled)
    if held or entered != task.entered or _left_alone(task):
        return Moved(task)
    target, ignored = _target(now, "on_turn_complete", cancelled=cancelled)
    if target is None:
        return Moved(task, ignored=ignored)
    return _entered(now, target, enters=not cancelled, ignored=ignored)


def _pending(now: Snapshot, move: PendingMove, *, enters: bool) -> Moved:
    """Applied once, and that is all that this turn's end does to the card."""
    free = replace(now, task=replace(now.task, pending_move=None))
    target = now.step(move.step_id)
    if target is None:
        return Moved(free.task, ignored=("The step that a move waited for is gone.",))
    if target.id == now.task.workflow_step_id:
        return Moved(free.task, move.position)
    return replace(_entered(free, target, enters=enters), position=move.position)


def _left_alone(task: Task) -> bool:
    return task.archived_at is not None or task.state in FINAL


def _target(now: Snapshot, event: str, *, cancelled: bool) -> tuple[Step | None, tuple[str, ...]]:
    here = now.here
    if here is None:
        return None, ()
    found, ignored = actions(here, event)
    for action in found:
        if cancelled and not action.on_cancel:
            continue
        target = _where(now, here, action)
        if target is not None and target.id != here.id:
            return target, ignored
        ignored = (*ignored, f"Step {here.name!r}: {event}: {action.type} leads to no other step.")
    return None, ignored


def _where(now: Snapshot, here: Step, action: Action) -> Step | None:
    steps = sorted(now.workflow_of(here).steps, key=lambda s: s.position)
    at = next(i for i, step in enumerate(steps) if step.id == here.id)
    match action.type:
        case "move_to_next":
            return steps[at + 1] if at + 1 < len(steps) else None
        case "move_to_previous":
            return steps[at - 1] if at else None
        case _:
            return next((s for s in steps if s.id == action.step_id), None)


# -- moves ----------------------------------------------------------------------------------------


def move(now: Snapshot, to: Step, *, by_person: bool) -> Moved:
    """At once; a move that waited is withdrawn. A person's counts as a word: the workflow may go on."""
    task = replace(now.task, pending_move=None)
    if by_person:
        task = replace(task, automatic=0)
    if to.id == task.workflow_step_id:
        return Moved(task)
    return _entered(replace(now, task=task), to, enters=True)


def later(task: Task, pending: PendingMove) -> Task:
    """At the end of the turn that runs; instead of one that waited already."""
    return replace(task, pending_move=pending)


def said(task: Task) -> Task:
    """Somebody else than the workflow has sent a message."""
    return task if not task.automatic else replace(task, automatic=0)


def settled(task: Task, entered: int) -> Task:
    """What entering the step owed is done."""
    due = task.owed_enter
    return task if due is None or due.entered != entered else replace(task, owed_enter=None)


def cannot_start(task: Task, why: str) -> Task:
    """No agent can be started for the step's prompt: the card says why."""
    return replace(prompted(task, enter_id(task.id, task.entered)), error=why)


def parked(task: Task) -> Task:
    """No queue is to be parked any more."""
    due = task.owed_enter
    if due is None or due.parks is None:
        return task
    rest = replace(due, parks=None)
    return replace(task, owed_enter=rest if rest.completes or rest.prompt else None)


def prompted(task: Task, entry: str) -> Task:
    """The step's prompt is stored as this entry: nobody sends it again."""
    due = task.owed_enter
    if due is None or due.prompt is None or entry != enter_id(task.id, due.entered):
        return task
    rest = replace(due, prompt=None)
    return replace(task, owed_enter=rest if rest.completes or rest.parks else None)


def _entered(now: Snapshot, to: Step, *, enters: bool, ignored: tuple[str, ...] = ()) -> Moved:
    """The card goes from one step to another."""
    left, workflow = now.here, now.workflow_of(to)
    leaving, strange = actions(left, "on_exit") if left else ((), ())
    ignored = (*ignored, *strange)
    task = replace(
        now.task,
        workflow_id=workflow.id,
        workflow_step_id=to.id,
        office=workflow.style == "office",
        state=_state(now.task, left, to),
        entered=now.task.entered + 1,
        pending_move=None,
    )
    parks = f"the task left the step {left.name!r}" if left and leaving else None
    due = OwedEnter(task.entered, to.id, completes=to.final, parks=parks)
    if enters and not to.final:
        task, due, more = _auto_start(task, due, to)
        ignored = (*ignored, *more)
    owes = due.prompt is not None or due.completes or due.parks is not None
    return Moved(replace(task, owed_enter=due if owes else None), ignored=ignored)


def _state(task: Task, left: Step | None, to: Step) -> str:
    """Entering a step marked as final completes the task, leaving it opens it again."""
    if to.final:
        return "COMPLETED"
    reopened = task.state == "COMPLETED" and left is not None and left.final
    return "TODO" if reopened else task.state


def _auto_start(task: Task, due: OwedEnter, to: Step) -> tuple[Task, OwedEnter, tuple[str, ...]]:
    found, ignored = actions(to, "on_enter")
    start = next(iter(found), None)
    if start is None or task.archived_at is not None:
        return task, due, ignored
    if task.state == "BLOCKED":
        sentence = (
            f"The step {to.name!r} did not start the agent: the task is BLOCKED; give it another state and "
            "send a message to go on."
        )
        return replace(task, error=sentence), due, (*ignored, sentence)
    if task.automatic >= AUTOMATIC_PROMPTS:
        sentence = (
            f"The step {to.name!r} did not start the agent: the workflow has sent {task.automatic} prompts "
            "without a word from anybody; send a message, or move the task yourself, to go on."
        )
        return replace(task, error=sentence), due, (*ignored, sentence)
    return (
        replace(task, automatic=task.automatic + 1),
        replace(due, prompt=text_of(start.prompt, task)),
        ignored,
    )


def text_of(prompt: str | None, task: Task) -> str:
    """The step's prompt with `{title}` and `{description}` of the task in it; without one the task's own
    words."""
    own = task.description.strip() or task.title
    if prompt is None:
        return own
    # One pass: what a title says is not looked through for placeholders again.
    parts = prompt.split("{title}")
    return task.title.join(part.replace("{description}", task.description.strip()) for part in parts)


# -- to whom a step's prompt goes ---------------------------------------------------------------------


def agent_for(sessions: Sequence[tuple[str, bool, str]]) -> str | None:
    """The session that a step's prompt goes to, of `(id, is primary, state)`, newest first: the primary one
    unless it is over by a stop or a fault, else the newest that is not. None: a new one is launched."""
    usable = [row for row in sessions if row[2] not in ("FAILED", "CANCELLED")]
    primary = next((id for id, is_primary, _ in usable if is_primary), None)
    return primary or next((id for id, _, _ in usable), None)

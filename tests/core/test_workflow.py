"""How a card moves: by turns, by people and tools, alone and in every order of two sessions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kandev.core import workflow as rules
from kandev.core.board import OwedEnter, PendingMove, Step, Task, Workflow
from kandev.core.effects import TurnClosed
from kandev.core.session import TurnRef
from kandev.core.workflow import AUTOMATIC_PROMPTS, Moved, Snapshot, enter_id
from tests.core.test_task import CARD

T = TurnRef("x.1", 1)
COMPLETED = TurnClosed(T, "end_turn", "agent")
CANCELLED = TurnClosed(T, "cancelled", "user")
NOTHING = [
    TurnClosed(T, "cancelled", "interrupted"),
    TurnClosed(T, "end_turn", "interrupted"),
    TurnClosed(T, "error", "agent", "quota"),
    TurnClosed(T, "cancelled", "agent"),
    TurnClosed(T, "process_ended", "process", "killed"),
    TurnClosed(T, "process_ended", "lost"),
    TurnClosed(T, "stopped", "stopped"),
    TurnClosed(T, "refused", "refused"),
]
NEXT = {"type": "move_to_next"}


def steps(*events: dict[str, Any], of: str = "k") -> tuple[Step, ...]:
    """Backlog, Build, Check, Done."""
    names = ("Backlog", "Build", "Check", "Done")
    given = (*events, *({},) * (len(names) - len(events)))
    return tuple(
        Step(name.lower(), of, name, at, said, final=name == "Done")
        for at, (name, said) in enumerate(zip(names, given, strict=True))
    )


def board(*events: dict[str, Any], **card: Any) -> Snapshot:
    card.setdefault("workflow_step_id", "build")
    columns = Workflow("k", "w", "K", "kanban", steps(*events), "", "")
    return Snapshot(replace(CARD, **card), (columns,))


def closed(now: Snapshot, end: TurnClosed = COMPLETED, entered: int = 0, held: bool = False) -> Task:
    return rules.turn_closed(now, end, entered, held=held).task


def on(event: str, *actions: dict[str, Any]) -> dict[str, Any]:
    return {event: list(actions)}


# -- a turn's end -------------------------------------------------------------------------------------


def test_a_completed_turn_moves_the_card_on() -> None:
    task = closed(board({}, on("on_turn_complete", NEXT)))
    assert (task.workflow_step_id, task.entered, task.owed_enter) == ("check", 1, None)


@pytest.mark.parametrize("end", NOTHING, ids=str)
@pytest.mark.field("D39")
def test_no_other_end_moves_the_card_or_applies_a_move_that_waits(end: TurnClosed) -> None:
    now = board(
        {}, on("on_turn_complete", {**NEXT, "on_cancel": True}), pending_move=PendingMove("done", "a")
    )
    assert closed(now, end) == now.task
    free = replace(now, task=replace(now.task, pending_move=None))
    assert closed(free, end) == free.task


def test_a_persons_cancel_runs_the_step_only_where_the_step_says_so_and_starts_no_agent() -> None:
    start = on("on_enter", {"type": "auto_start_agent"})
    assert closed(board({}, on("on_turn_complete", NEXT), start), CANCELLED).workflow_step_id == "build"
    task = closed(board({}, on("on_turn_complete", {**NEXT, "on_cancel": True}), start), CANCELLED)
    assert (task.workflow_step_id, task.owed_enter, task.automatic) == ("check", None, 0)


def test_a_move_that_waited_is_applied_once_and_is_all_that_the_end_does() -> None:
    now = board({}, on("on_turn_complete", NEXT), pending_move=PendingMove("backlog", "a", 2))
    moved = rules.turn_closed(now, COMPLETED, 0, held=False)
    assert (moved.task.workflow_step_id, moved.position) == ("backlog", 2)
    assert moved.task.pending_move is None and moved.task.entered == 1
    assert closed(replace(now, task=moved.task), entered=1).workflow_step_id == "backlog"


def test_a_move_that_waited_starts_no_agent_after_a_persons_cancel() -> None:
    waits = PendingMove("check", "a")
    now = board({}, {}, on("on_enter", {"type": "auto_start_agent"}), pending_move=waits)
    assert closed(now).owed_enter == OwedEnter(1, "check", CARD.title)
    task = closed(now, CANCELLED)
    assert (task.workflow_step_id, task.pending_move, task.owed_enter) == ("check", None, None)


def test_a_move_that_waits_for_a_step_that_is_gone_is_dropped_with_a_word() -> None:
    moved = rules.turn_closed(board(pending_move=PendingMove("gone", "a")), COMPLETED, 0, held=False)
    assert (moved.task, len(moved.ignored)) == (replace(CARD, workflow_step_id="build"), 1)


def test_an_open_question_holds_the_step_but_not_a_move_that_waited() -> None:
    now = board({}, on("on_turn_complete", NEXT))
    assert closed(now, held=True) == now.task
    waits = replace(now, task=replace(now.task, pending_move=PendingMove("done", "a")))
    assert closed(waits, held=True).workflow_step_id == "done"


def test_a_turn_that_began_in_another_entering_does_not_move_the_card() -> None:
    now = board({}, on("on_turn_complete", NEXT), entered=4)
    assert closed(now, entered=3) == now.task
    assert closed(now, entered=4).workflow_step_id == "check"


@pytest.mark.parametrize("card", [{"archived_at": "then"}, {"state": "COMPLETED"}, {"state": "CANCELLED"}])
def test_a_task_that_is_over_or_put_away_is_left_alone_by_turns(card: dict[str, Any]) -> None:
    now = board({}, {"on_turn_complete": [NEXT], "on_turn_start": [NEXT]}, **card)
    assert closed(now) == now.task
    assert rules.turn_opened(now, by_step=False).task == now.task


def test_a_move_that_waits_is_not_applied_to_a_task_that_was_put_away() -> None:
    now = board(archived_at="then", pending_move=PendingMove("check", "a"))
    assert closed(now) == now.task


def test_a_final_step_completes_the_task_and_owes_the_end_of_its_sessions() -> None:
    now = board({}, {}, on("on_turn_complete", NEXT), workflow_step_id="check", state="IN_PROGRESS")
    task = closed(now)
    assert (task.state, task.owed_enter) == ("COMPLETED", OwedEnter(1, "done", completes=True))


# -- a turn's start -----------------------------------------------------------------------------------


def test_a_turn_that_begins_moves_the_card_without_starting_an_agent_beside_it() -> None:
    start = on("on_enter", {"type": "auto_start_agent"})
    now = board(on("on_turn_start", NEXT), start, workflow_step_id="backlog")
    task = rules.turn_opened(now, by_step=False).task
    assert (task.workflow_step_id, task.entered, task.owed_enter) == ("build", 1, None)


def test_the_steps_own_prompt_is_worked_at_in_the_step() -> None:
    now = board({}, on("on_turn_start", NEXT))
    assert rules.turn_opened(now, by_step=True).task == now.task
    assert rules.turn_opened(now, by_step=False).task.workflow_step_id == "check"


def test_a_turn_that_begins_never_completes_its_task() -> None:
    now = board({}, {}, on("on_turn_start", NEXT), workflow_step_id="check")
    moved = rules.turn_opened(now, by_step=False)
    assert (moved.task, len(moved.ignored)) == (now.task, 1)


def test_the_template_is_the_board_that_people_expect() -> None:
    now = board(
        on("on_turn_start", NEXT),
        on("on_turn_complete", NEXT),
        on("on_turn_start", {"type": "move_to_previous"}),
        workflow_step_id="backlog",
    )
    seen = []
    for turn in range(3):
        opened = rules.turn_opened(now, by_step=False).task
        ended = closed(replace(now, task=opened), entered=opened.entered)
        seen += [opened.workflow_step_id, ended.workflow_step_id]
        now = replace(now, task=ended)
        assert ended.entered == 2 * (turn + 1)
    assert seen == ["build", "check"] * 3


# -- where an action leads ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "at", "to"),
    [
        (NEXT, "build", "check"),
        (NEXT, "done", "done"),
        ({"type": "move_to_previous"}, "check", "build"),
        ({"type": "move_to_previous"}, "backlog", "backlog"),
        ({"type": "move_to_step", "step_id": "done"}, "backlog", "done"),
        ({"type": "move_to_step", "step_id": "gone"}, "backlog", "backlog"),
        ({"type": "move_to_the_moon"}, "backlog", "backlog"),
        ({"type": "move_to_next", "fast": True}, "backlog", "backlog"),
        ("move_to_next", "backlog", "backlog"),
    ],
)
def test_an_action_leads_to_its_step_or_nowhere_and_then_says_so(action: Any, at: str, to: str) -> None:
    now = board(*(on("on_turn_complete", action),) * 4, workflow_step_id=at)
    moved = rules.turn_closed(now, COMPLETED, 0, held=False)
    assert moved.task.workflow_step_id == to
    assert bool(moved.ignored) == (to == at)


@pytest.mark.parametrize("stored", ["move_to_next", {"type": "move_to_next"}, None, 7])
def test_stored_events_of_another_shape_are_ignored_with_a_word(stored: Any) -> None:
    moved = rules.turn_closed(board({}, {"on_turn_complete": stored}), COMPLETED, 0, held=False)
    assert moved.task.workflow_step_id == "build"
    assert "Build" in moved.ignored[0]


def test_next_is_by_position_not_by_the_order_of_rows() -> None:
    now = board({}, on("on_turn_complete", NEXT))
    columns = replace(now.workflows[0], steps=tuple(reversed(now.workflows[0].steps)))
    assert closed(replace(now, workflows=(columns,))).workflow_step_id == "check"


# -- moves by people and tools ------------------------------------------------------------------------


def _to(now: Snapshot, id: str, by_person: bool = True) -> Moved:
    step = now.step(id)
    assert step is not None
    return rules.move(now, step, by_person=by_person)


def test_a_move_runs_the_steps_actions_and_withdraws_one_that_waited() -> None:
    start = on("on_enter", {"type": "auto_start_agent", "prompt": "Check {title}: {description}"})
    waits = PendingMove("done", "a")
    now = board({}, on("on_exit", {"type": "park_queue"}), start, description="all of it", pending_move=waits)
    task = _to(now, "check").task
    assert task.pending_move is None
    assert task.owed_enter == OwedEnter(
        1, "check", f"Check {CARD.title}: all of it", parks="the task left the step 'Build'"
    )


def test_a_move_within_the_step_enters_nothing() -> None:
    now = board({}, on("on_enter", {"type": "auto_start_agent"}), pending_move=PendingMove("done", "a"))
    assert _to(now, "build").task == replace(now.task, pending_move=None)


def test_entering_and_leaving_a_final_step_completes_and_reopens() -> None:
    done = _to(board(state="REVIEW"), "done").task
    assert (done.state, done.owed_enter) == ("COMPLETED", OwedEnter(1, "done", completes=True))
    back = _to(board(**vars(done)), "build").task
    assert (back.state, back.owed_enter, back.entered) == ("TODO", None, 2)


def test_a_move_to_another_workflow_takes_its_style() -> None:
    other = Workflow("o", "w", "O", "office", (Step("desk", "o", "Desk", 0),), "", "")
    now = replace(board(), workflows=(*board().workflows, other))
    task = _to(now, "desk").task
    assert (task.workflow_id, task.workflow_step_id, task.office) == ("o", "desk", True)


@pytest.mark.parametrize(
    ("prompt", "says"),
    [
        (None, "Do it."),
        ("{title}!", "A {description}!"),
        ("{description}{title}", "Do it.A {description}"),
        ("{{title}} {other} {", "{A {description}} {other} {"),
    ],
)
def test_a_prompt_names_the_task_and_what_the_task_says_is_never_a_placeholder(
    prompt: str | None, says: str
) -> None:
    task = replace(CARD, title="A {description}", description=" Do it. ")
    assert rules.text_of(prompt, task) == says


def test_without_a_description_the_title_is_the_prompt() -> None:
    assert rules.text_of(None, replace(CARD, description=" ")) == CARD.title


# -- what is owed -------------------------------------------------------------------------------------


def test_what_is_owed_is_settled_by_its_own_entering_only() -> None:
    owed = replace(CARD, owed_enter=OwedEnter(3, "build", "go", completes=False))
    assert rules.settled(owed, 2) == owed
    assert rules.settled(owed, 3).owed_enter is None
    assert rules.prompted(owed, enter_id("t", 2)) == owed
    assert rules.prompted(owed, enter_id("t", 3)).owed_enter is None
    more = replace(owed, owed_enter=OwedEnter(3, "build", "go", parks="why"))
    assert rules.prompted(more, enter_id("t", 3)).owed_enter == OwedEnter(3, "build", parks="why")


def test_steps_that_start_each_other_end_after_so_many_prompts_with_the_reason_on_the_card() -> None:
    start = {"type": "auto_start_agent", "prompt": "go"}
    there = {"on_enter": [start], "on_turn_complete": [{"type": "move_to_step", "step_id": "check"}]}
    back = {"on_enter": [start], "on_turn_complete": [{"type": "move_to_step", "step_id": "build"}]}
    now, sent = board({}, there, back), 0
    task = now.task
    for _ in range(3 * AUTOMATIC_PROMPTS):
        task = closed(now, entered=now.task.entered)
        if task.owed_enter is None:
            break
        sent += 1
        now = replace(now, task=rules.prompted(task, enter_id(task.id, task.entered)))
    assert sent == AUTOMATIC_PROMPTS
    assert task.error is not None and "without a word from anybody" in task.error
    again = closed(replace(now, task=rules.said(task)), entered=task.entered)
    assert again.owed_enter is not None, "somebody said something"
    other = "build" if task.workflow_step_id == "check" else "check"
    assert _to(replace(now, task=task), other, by_person=False).task.owed_enter is None
    assert _to(replace(now, task=task), other).task.owed_enter is not None, "a person moved it"


@pytest.mark.field("D39")
def test_the_agent_of_a_blocked_task_is_not_started_and_the_card_says_why() -> None:
    task = _to(board({"on_enter": [{"type": "auto_start_agent"}]}, state="BLOCKED"), "backlog").task
    assert (task.workflow_step_id, task.owed_enter) == ("backlog", None) and "BLOCKED" in (task.error or "")


@pytest.mark.parametrize(
    ("sessions", "agent"),
    [
        ([], None),
        ([("b", False, "RUNNING"), ("a", True, "WAITING_FOR_INPUT")], "a"),
        ([("b", False, "RUNNING"), ("a", True, "CANCELLED")], "b"),
        ([("c", False, "COMPLETED"), ("b", False, "RUNNING"), ("a", True, "FAILED")], "c"),
        ([("a", True, "CANCELLED")], None),
        ([("a", True, "COMPLETED")], "a"),
    ],
)
def test_a_steps_prompt_goes_to_the_primary_session_or_the_newest_that_takes_messages(
    sessions: list[tuple[str, bool, str]], agent: str | None
) -> None:
    assert rules.agent_for(sessions) == agent


# -- two sessions, every order of their transactions --------------------------------------------------


@dataclass
class House:
    now: Snapshot = field(
        default_factory=lambda: board({}, on("on_turn_complete", NEXT), on("on_turn_complete", NEXT))
    )
    began: dict[str, int] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    """That were entered."""

    def keep(self, task: Task) -> None:
        if task.entered != self.now.task.entered:
            self.steps.append(task.workflow_step_id)
        self.now = replace(self.now, task=task)


Op = Callable[[House], Iterator[None]]


def turn(name: str, end: TurnClosed = COMPLETED) -> Op:
    """A turn of a session: its start and its end are each one transaction."""

    def op(house: House) -> Iterator[None]:
        house.keep(rules.turn_opened(house.now, by_step=False).task)
        house.began[name] = house.now.task.entered
        yield
        house.keep(closed(house.now, end, house.began[name]))

    return op


def asked(house: House) -> Iterator[None]:
    """A tool's move, while one of them works."""
    yield
    house.keep(rules.later(house.now.task, PendingMove("backlog", "a")))


def orders(*ops: Op) -> Iterator[tuple[House, tuple[int, ...]]]:
    lengths = [sum(1 for _ in op(House())) + 1 for op in ops]
    turns = [i for i, n in enumerate(lengths) for _ in range(n)]
    for order in sorted(set(itertools.permutations(turns))):
        house = House()
        live = [op(house) for op in ops]
        for i in order:
            next(live[i], None)
        yield house, order


@pytest.mark.proves("HOLE-32")
def test_two_turns_that_complete_in_one_step_move_the_card_once() -> None:
    for house, order in orders(turn("a"), turn("b")):
        beside = order in {(0, 1, 0, 1), (0, 1, 1, 0), (1, 0, 0, 1), (1, 0, 1, 0)}
        # One behind the other they are two turns in two steps.
        assert house.now.task.workflow_step_id == ("check" if beside else "done"), order
        assert house.now.task.entered == (1 if beside else 2), order


def test_a_turn_that_was_interrupted_beside_one_that_completes_changes_nothing() -> None:
    for house, order in orders(turn("a"), turn("b", TurnClosed(T, "cancelled", "interrupted"))):
        assert house.now.task.workflow_step_id == "check", order


def test_a_move_that_waits_is_applied_by_the_next_end_of_two_and_once() -> None:
    for house, order in orders(turn("a"), turn("b"), asked):
        last = {op: len(order) - 1 - order[::-1].index(op) for op in range(3)}
        waits = last[2] > max(last[0], last[1])
        assert (house.now.task.pending_move is not None) == waits, order
        assert house.steps.count("backlog") == (0 if waits else 1), order

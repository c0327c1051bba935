"""The rules of a task's state, alone and in every order of its sessions' transactions."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from kandev.core import task as rules
from kandev.core.board import Task

CARD = Task(
    id="t",
    workspace_id="w",
    workflow_id="k",
    workflow_step_id="backlog",
    title="A task",
    description="",
    state="TODO",
    priority="medium",
    position=0,
    created_at="",
    updated_at="",
)


def card(state: str, **more: Any) -> Task:
    return replace(CARD, state=state, **more)


@pytest.mark.proves("STATE-task")
def test_a_task_follows_a_session_from_its_launch_to_the_end_of_its_turn() -> None:
    task = rules.launching(card("TODO"))
    assert task.state == "SCHEDULING"
    task = rules.working(task)
    assert task.state == "IN_PROGRESS"
    assert rules.to_review(task, ["WAITING_FOR_INPUT"]).state == "REVIEW"


@pytest.mark.proves("STATE-task")
@pytest.mark.parametrize("before", ["TODO", "REVIEW", "BLOCKED", "CREATED"])
def test_a_failed_launch_puts_the_card_back_with_the_error_on_it(before: str) -> None:
    task = rules.launch_over(rules.launching(card(before)), ["FAILED"], "no such file")
    assert (task.state, task.error, task.state_before) == (before, "no such file", None)


@pytest.mark.parametrize("before", ["TODO", "BLOCKED", "SCHEDULING", "IN_PROGRESS", "FAILED"])
def test_the_operators_stop_puts_a_card_in_review_that_is_neither_final_nor_put_away(before: str) -> None:
    stopped = rules.stopped_by_operator(card(before, state_before="TODO"), ["CANCELLED", "FAILED"])
    assert (stopped.state, stopped.state_before) == ("REVIEW", None)
    assert rules.stopped_by_operator(card(before), ["CANCELLED", "RUNNING"]) == card(before), "one works"
    for kept in (
        card("COMPLETED"),
        card("CANCELLED"),
        card(before, archived_at="then"),
        card(before, office=True),
    ):
        assert rules.stopped_by_operator(kept, ["CANCELLED"]) == kept


def test_a_launch_with_nothing_to_say_puts_the_card_back_without_an_error() -> None:
    task = rules.launch_over(rules.launching(card("REVIEW")), ["WAITING_FOR_INPUT"], None)
    assert (task.state, task.error) == ("REVIEW", None)


def test_a_failed_launch_beside_a_working_session_only_leaves_the_error() -> None:
    task = rules.launch_over(card("IN_PROGRESS"), ["FAILED", "RUNNING"], "no")
    assert (task.state, task.error) == ("IN_PROGRESS", "no")
    task = rules.launch_over(rules.launching(card("TODO")), ["FAILED", "STARTING"], "no")
    assert (task.state, task.error) == ("SCHEDULING", "no")


def test_work_that_begins_takes_the_error_off_the_card() -> None:
    assert rules.launching(card("TODO", error="no")).error is None
    assert rules.working(card("TODO", error="no")).error is None


@pytest.mark.parametrize("sibling", ["STARTING", "RUNNING"])
def test_no_review_while_another_session_works(sibling: str) -> None:
    assert rules.to_review(card("IN_PROGRESS"), ["WAITING_FOR_INPUT", sibling]).state == "IN_PROGRESS"


@pytest.mark.parametrize(
    "task",
    [
        card("IN_PROGRESS", office=True),
        card("IN_PROGRESS", archived_at="2026-01-01T00:00:00Z"),
        card("REVIEW"),
        card("TODO"),
        card("BLOCKED"),
        card("COMPLETED"),
        card("CANCELLED"),
    ],
)
def test_review_is_written_over_work_in_progress_only(task: Task) -> None:
    assert rules.to_review(task, []) == task


@pytest.mark.parametrize(
    "task", [card("COMPLETED"), card("CANCELLED"), card("TODO", office=True), card("TODO", archived_at="now")]
)
def test_a_task_that_is_over_archived_or_of_an_office_is_left_alone(task: Task) -> None:
    assert rules.launching(task) == task and rules.working(task) == task
    assert rules.launch_over(task, [], None) == task


# -- every order of transactions ----------------------------------------------------------------------


@dataclass
class Board:
    task: Task = field(default_factory=lambda: card("IN_PROGRESS"))
    sessions: dict[str, str] = field(
        default_factory=lambda: {"a": "RUNNING", "b": "WAITING_FOR_INPUT", "c": "RUNNING"}
    )


Op = Callable[[Board], Iterator[None]]
"""A yield is the end of a transaction: others may come between."""


def orders(*ops: Op) -> Iterator[tuple[Board, tuple[int, ...]]]:
    """The board after each interleaving of these."""
    lengths = [sum(1 for _ in op(Board())) + 1 for op in ops]
    turns = [i for i, n in enumerate(lengths) for _ in range(n)]
    for order in sorted(set(itertools.permutations(turns))):
        board = Board()
        live = [op(board) for op in ops]
        for i in order:
            next(live[i], None)
        yield board, order


def ends(name: str) -> Op:
    """A session's turn ends: its state and the task's in one transaction."""

    def op(board: Board) -> Iterator[None]:
        yield
        board.sessions[name] = "WAITING_FOR_INPUT"
        board.task = rules.to_review(board.task, board.sessions.values())

    return op


def works(name: str) -> Op:
    """A message to a session: launch, then its turn."""

    def op(board: Board) -> Iterator[None]:
        yield
        board.sessions[name] = "STARTING"
        board.task = rules.launching(board.task)
        yield
        board.sessions[name] = "RUNNING"
        board.task = rules.working(board.task)

    return op


def fails(name: str) -> Op:
    """A launch that fails."""

    def op(board: Board) -> Iterator[None]:
        board.sessions[name] = "STARTING"
        board.task = rules.launching(board.task)
        yield
        board.sessions[name] = "WAITING_FOR_INPUT"
        board.task = rules.launch_over(board.task, board.sessions.values(), "no")

    return op


def works_in_two(board: Board) -> Iterator[None]:
    """As it must not be done: the task in a transaction before the session's."""
    board.task = rules.working(board.task)
    yield
    board.sessions["b"] = "RUNNING"


@pytest.mark.proves("STATE-task", "HOLE-31")
def test_a_task_never_lands_in_review_beside_work() -> None:
    for board, order in orders(ends("a"), ends("c"), works("b")):
        assert board.task.state == "IN_PROGRESS", order


@pytest.mark.proves("STATE-task")
def test_when_all_have_ended_the_task_is_in_review() -> None:
    for board, order in orders(ends("a"), ends("c")):
        assert board.task.state == "REVIEW", order


def test_a_launch_that_fails_beside_ends_leaves_no_work_behind() -> None:
    for board, order in orders(ends("a"), ends("c"), fails("b")):
        working = {"STARTING", "RUNNING"} & set(board.sessions.values())
        assert not working
        assert board.task.state == "REVIEW", (order, board.task.state)


@pytest.mark.proves("HOLE-31")
def test_in_two_transactions_a_working_task_would_land_in_review() -> None:
    states = {board.task.state for board, _ in orders(ends("a"), ends("c"), works_in_two)}
    assert "REVIEW" in states

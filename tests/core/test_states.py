"""The session's states on the wire: every row of the table as a story, and nothing beside the table."""

from collections.abc import Callable

import pytest

from kandev.core import machines
from kandev.core.effects import Timer
from kandev.core.inputs import Cancel, Ended, Exited, Expired, Gone, LaunchFailed, Refused, Resume, Stop
from kandev.core.session import Outcome
from tests.core.judge import ALLOWED
from tests.core.story import Story, asleep, dispatching, message, refused_once, running, starting, up, waiting


def completed() -> Story:
    return running()(Stop("done", Outcome.COMPLETED))(Gone("s.1"))


def failed() -> Story:
    return starting()(LaunchFailed("s.1", "no"))(Gone("s.1"))


def cancelled() -> Story:
    return running()(Stop("stop"))(Gone("s.1"))


def _ends(s: Story) -> None:
    s(Ended(s.ref))


def _is_refused(s: Story) -> None:
    s(Refused(s.ref, "busy"))


def _is_cancelled(s: Story) -> None:
    s(Cancel("c"))(Ended(s.ref))


def _fails(s: Story) -> None:
    s(Ended(s.ref, "error", "401"))


def _dies(s: Story) -> None:
    s(Exited("s.1"))(Gone("s.1"))


def _is_replaced_with_a_message(s: Story) -> None:
    s(Cancel("c"))(message("H"))(Expired(Timer("end", (s.ref, 1))))(Gone("s.1"))


def _launches(s: Story) -> None:
    s(message("A"))


def _resumes(s: Story) -> None:
    s(Resume("r"))


def _comes_up(s: Story) -> None:
    s(up(s.s.execution))


def _cancelled_start(s: Story) -> None:
    s(Cancel("c"))(up())


def _does_not_start(s: Story) -> None:
    s(LaunchFailed(s.s.execution, "no"))


def _finished(s: Story) -> None:
    s(Stop("x", Outcome.COMPLETED))


def _stopped(s: Story) -> None:
    s(Stop("x"))


def _relaunching() -> Story:
    return asleep()(message("A"))


def _retries(s: Story) -> None:
    s(Expired(Timer("retry", s.s.generation)))


ROWS: list[tuple[Callable[[], Story], str, Callable[[Story], None], str]] = [
    (Story, "CREATED", _launches, "STARTING"),
    (Story, "CREATED", _resumes, "STARTING"),
    (starting, "STARTING", _comes_up, "RUNNING"),
    (starting, "STARTING", _cancelled_start, "WAITING_FOR_INPUT"),
    (lambda: Story(Resume("r")), "STARTING", _comes_up, "WAITING_FOR_INPUT"),
    (_relaunching, "STARTING", _does_not_start, "WAITING_FOR_INPUT"),
    (starting, "STARTING", _does_not_start, "FAILED"),
    (running, "RUNNING", _ends, "WAITING_FOR_INPUT"),
    (running, "RUNNING", _is_cancelled, "WAITING_FOR_INPUT"),
    (running, "RUNNING", _fails, "WAITING_FOR_INPUT"),
    (running, "RUNNING", _dies, "WAITING_FOR_INPUT"),
    (dispatching, "RUNNING", _is_refused, "WAITING_FOR_INPUT"),
    (running, "RUNNING", _is_replaced_with_a_message, "STARTING"),
    (waiting, "WAITING_FOR_INPUT", _launches, "RUNNING"),
    (refused_once, "WAITING_FOR_INPUT", _retries, "RUNNING"),
    (asleep, "WAITING_FOR_INPUT", _launches, "STARTING"),
    (asleep, "WAITING_FOR_INPUT", _resumes, "STARTING"),
    (completed, "COMPLETED", _launches, "STARTING"),
    (completed, "COMPLETED", _resumes, "STARTING"),
    (failed, "FAILED", _resumes, "STARTING"),
    (cancelled, "CANCELLED", _resumes, "STARTING"),
    (starting, "STARTING", _stopped, "CANCELLED"),
    (running, "RUNNING", _stopped, "CANCELLED"),
    (waiting, "WAITING_FOR_INPUT", _stopped, "CANCELLED"),
    (running, "RUNNING", _finished, "COMPLETED"),
    (waiting, "WAITING_FOR_INPUT", _finished, "COMPLETED"),
]


@pytest.mark.proves("STATE-table", "HOLE-25")
@pytest.mark.parametrize("begin, old, happens, new", ROWS)
def test_each_row_of_the_state_table_can_happen(
    begin: Callable[[], Story], old: str, happens: Callable[[Story], None], new: str
) -> None:
    s = begin()
    assert s.wire == old
    happens(s)
    assert s.wire == new


@pytest.mark.proves("STATE-table")
def test_the_table_in_the_code_is_the_specification() -> None:
    assert {old: set(new) for old, new in machines.WIRE_MOVES.items()} == ALLOWED


@pytest.mark.proves("STATE-terminal")
@pytest.mark.parametrize(
    "begin, state", [(completed, "COMPLETED"), (failed, "FAILED"), (cancelled, "CANCELLED")]
)
def test_a_terminal_state_is_left_by_nobody_else(begin: Callable[[], Story], state: str) -> None:
    s = begin()
    for name, outcome in enumerate((Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED)):
        s.refuses(Stop(f"x{name}", outcome), "not_running")
    s.refuses(Cancel("c"), "not_running")
    for late in (Exited("s.1"), Gone("s.1"), up(), LaunchFailed("s.1", "no")):
        s.ignores(late)
    assert s.wire == state

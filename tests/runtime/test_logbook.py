"""The log names launches, turns and ends with their ids."""

import pytest
import structlog

from kandev.core.effects import Claimed, ExecutionOver, LaunchOver, Note, TurnClosed, TurnOpened
from kandev.core.session import TurnRef
from kandev.runtime.logbook import tell_the_log

TURN = TurnRef("s.1", 7)


@pytest.mark.parametrize(
    ("note", "told"),
    [
        (TurnOpened(TURN), {"execution_id": "s.1", "prompt_generation": 7}),
        (TurnClosed(TURN, "cancelled", "user"), {"prompt_generation": 7, "cause": "user"}),
        (LaunchOver("no such command"), {"error": "no such command", "log_level": "warning"}),
        (ExecutionOver("s.1", 3, ()), {"execution_id": "s.1", "exit_code": 3}),
        (ExecutionOver("s.1", None, ("7 sleep",)), {"survivors": ["7 sleep"], "log_level": "warning"}),
    ],
)
def test_what_an_operator_looks_for_is_in_the_log(note: Note, told: dict[str, object]) -> None:
    with structlog.testing.capture_logs() as lines:
        tell_the_log(note)
    assert lines[-1].items() >= told.items()


def test_the_rest_is_not() -> None:
    with structlog.testing.capture_logs() as lines:
        tell_the_log(Claimed(TURN, ("m",)))
        tell_the_log(LaunchOver(None))
    assert lines == []

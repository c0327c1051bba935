"""The tests of the rules can fail: each planted bug is noticed by a story or by the hostile world."""

import inspect
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from tests.core import (
    test_arranging,
    test_cancelling,
    test_following,
    test_interrupting,
    test_questions,
    test_sending,
    test_sleeping,
    test_starting,
    test_states,
    test_step_events,
    test_stopping,
    test_task,
    test_workflow,
)
from tests.core.mutants import MUTANTS, Mutant, planted
from tests.core.mutants_of_queues import MUTANTS_OF_QUEUES
from tests.core.mutants_of_steps import MUTANTS_OF_STEPS
from tests.core.test_any_history import schedule

SUITES = (
    test_sending,
    test_interrupting,
    test_arranging,
    test_questions,
    test_cancelling,
    test_sleeping,
    test_stopping,
    test_starting,
    test_states,
    test_task,
    test_workflow,
    test_step_events,
    test_following,
)
SEEDS = range(40)


def _cases(test: Callable[..., None]) -> Iterator[Callable[[], None]]:
    """A story with each set of its parameters."""
    marks = [m for m in getattr(test, "pytestmark", []) if m.name == "parametrize"]
    if not marks:
        yield test
        return
    for values in marks[0].args[1]:
        names = marks[0].args[0]
        one = isinstance(names, str) and "," not in names
        arguments = (values,) if one else values
        yield partial(test, *arguments)


def stories() -> list[Callable[[], None]]:
    tests = [
        function
        for module in SUITES
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if name.startswith("test_") and function.__module__ == module.__name__
    ]
    return [case for test in tests for case in _cases(test)]


def noticed(by: Callable[[], object]) -> bool:
    """Whether this fails: by an assertion, or because the rules leave their tables or break."""
    try:
        by()
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - whatever it is, it was noticed
        return True
    return False


def by_stories() -> bool:
    return any(noticed(story) for story in stories())


def by_world() -> bool:
    return any(noticed(partial(schedule, seed)) for seed in SEEDS)


@pytest.mark.parametrize("mutant", (*MUTANTS, *MUTANTS_OF_QUEUES, *MUTANTS_OF_STEPS), ids=lambda m: m.name)
def test_a_planted_bug_is_noticed(mutant: Mutant) -> None:
    with planted(mutant):
        assert by_stories() or by_world()


def test_without_a_bug_nothing_is_noticed() -> None:
    assert not by_stories()
    assert not any(noticed(partial(schedule, seed)) for seed in range(5))


def test_the_rules_are_healthy_again_afterwards() -> None:
    for mutant in MUTANTS[:3]:
        with planted(mutant):
            pass
    assert not by_stories()

"""The rules against a hostile world: any history keeps the invariants, and ends in quiet."""

import os
import random

import pytest
from hypothesis import HealthCheck, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.core.world import ACTS, ASKS, World

SCHEDULES = int(os.environ.get("KANDEV_SCHEDULES", "1000"))
BLOCK = 100
INVARIANTS = ("INV-1", "INV-2", "INV-3", "INV-4", "INV-5", "INV-7", "INV-8", "INV-9", "STATE-table")
"""What the judge of a history looks at; what is durable, or a real process, is none of its business."""


class AnyHistory(RuleBasedStateMachine):
    """People, the network, the agent and death take turns; then the world becomes fair."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @rule(choice=st.integers(0, ASKS - 1), arg=st.integers(0, 11))
    def somebody_asks(self, choice: int, arg: int) -> None:
        self.world.act(choice, arg)

    @rule(choice=st.integers(ASKS, ACTS - 1), arg=st.integers(0, 11))
    def the_world_goes_on(self, choice: int, arg: int) -> None:
        self.world.act(choice, arg)

    @rule()
    def all_goes_well_for_a_while(self) -> None:
        self.world.calm()

    def teardown(self) -> None:
        try:
            self.world.settle()
        finally:
            note("\n".join(self.world.log))


TestAnyHistory = pytest.mark.proves(*INVARIANTS)(AnyHistory.TestCase)
TestAnyHistory.settings = settings(
    max_examples=300,
    stateful_step_count=50,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def schedule(seed: int, steps: int = 300) -> World:
    """One random history. Each seed has its own taste: some people never cancel, some agents die often."""
    rng = random.Random(seed)
    world = World()
    weights = [rng.choice([0.2, 0.5, 1, 3]) if c < ASKS else rng.choice([2, 4, 6]) for c in range(ACTS)]
    weights[6] = rng.choice([0, 0.2, 1])
    weights[ACTS - 1] = rng.choice([0, 0.5, 2])
    for _ in range(steps):
        world.act(rng.choices(range(ACTS), weights)[0], rng.randrange(12))
        if rng.random() < 0.04:
            world.calm()
    world.settle()
    return world


@pytest.mark.proves(*INVARIANTS)
@pytest.mark.parametrize("first", range(0, SCHEDULES, BLOCK))
def test_no_random_schedule_breaks_an_invariant(first: int) -> None:
    for seed in range(first, min(first + BLOCK, SCHEDULES)):
        try:
            schedule(seed)
        except Exception as wrong:
            wrong.add_note(f"schedule({seed}) shows it")
            raise

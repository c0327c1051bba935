"""From a failing schedule to a short one that breaks the same rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulation.actions import Action
from tests.simulation.driver import Outcome, play

RUNS_AT_MOST = 400
OTHER_SEEDS = 3
"""A shorter schedule meets another order; a few are tried."""


@dataclass
class Shrunk:
    """The shortest found."""

    seed: int
    actions: list[Action]
    outcome: Outcome


def shrink(seed: int, actions: Sequence[Action], outcome: Outcome) -> Shrunk:
    """Drop halves, then quarters, … then single actions, as long as the same rule breaks."""
    best = Shrunk(seed, list(actions), outcome)
    runs = 0
    size = max(1, len(best.actions) // 2)
    while runs < RUNS_AT_MOST:
        before = len(best.actions)
        start = 0
        while start < len(best.actions) and runs < RUNS_AT_MOST:
            shorter = best.actions[:start] + best.actions[start + size :]
            runs += 1 + OTHER_SEEDS
            found = _breaks(best, shorter)
            best, start = (found, start) if found else (best, start + size)
        if size == 1 and len(best.actions) == before:
            break
        size = max(1, size // 2)
    return best


def _breaks(best: Shrunk, shorter: list[Action]) -> Shrunk | None:
    rule = best.outcome.violation.rule if best.outcome.violation else ""
    for seed in (best.seed, *range(OTHER_SEEDS)):
        outcome = play(seed, shorter)
        if outcome.violation is not None and outcome.violation.rule == rule:
            return Shrunk(seed, shorter, outcome)
    return None

"""A few rounds with fixed seeds break no rule, and torture can fail: bugs in the running programs are found.

`just torture N` plays as many rounds as you let it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.torture import rounds
from tests.torture.plan import ENDINGS, FAULTS, LINES, Deed, Plan, Size, make
from tests.torture.planted import environment
from tests.torture.rounds import Outcome, play_round

SEEDS = (4, 8, 22)
SMALL = Size(deeds=9, task_deeds=1, faults=4)


def told(outcome: Outcome) -> str:
    """For whoever reads the failure: what broke, and what was planned."""
    return "\n".join((*outcome.violations, str(outcome.plan), *outcome.ledger.happened))


@pytest.mark.proves("SURVIVE-torture", "SURVIVE-backend-kill", "INV-2", "INV-10")
@pytest.mark.parametrize("seed", SEEDS)
async def test_after_random_load_and_random_kills_everything_adds_up(seed: int, tmp_path: Path) -> None:
    plan = replace(make(seed, SMALL), tight=False)  # whatever the machine is busy with
    outcome = await play_round(plan, tmp_path / "round")
    assert not outcome.violations, told(outcome)
    assert outcome.figures["messages"] >= 10 and outcome.figures["turns"] >= 1, outcome.figures


def calm(script: str) -> Plan:
    """One message to each of five agents, nothing else, and everything stopped at the end."""
    slots = tuple((Deed("message", 0.1, script),) for _ in range(5))
    return Plan(0, slots, (), (), (), releases=False, ending="stop sessions", patience_s=60)


async def test_a_calm_round_shows_every_word_and_leaves_nothing(tmp_path: Path) -> None:
    plan = calm("think hard\nstream 20 1\ntool build 0\nsay done")
    outcome = await play_round(plan, tmp_path / "round")
    assert not outcome.violations, told(outcome)
    assert outcome.figures["entries delivered"] == outcome.figures["messages"] >= 5
    assert outcome.figures["turns ended: agent"] == outcome.figures["turns"]


@pytest.mark.parametrize(
    ("bug", "script", "rule"),
    [
        ("only the first process", "spawn 600", "gone: "),
        ("frames are lost", "stream 40 0", "transcript: "),
        ("nothing is forgotten", "say hello", "files: "),
    ],
)
async def test_a_bug_in_the_running_programs_is_found(
    bug: str, script: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "END_S", 2.0)  # what is left by a bug does not go
    outcome = await play_round(calm(script), tmp_path / "round", environment(bug))
    assert [said for said in outcome.violations if said.startswith(rule)], told(outcome)


def test_a_seed_means_the_same_plan_each_time_and_plans_reach_everything() -> None:
    assert str(make(5)) == str(make(5))
    plans = [make(seed) for seed in range(300)]
    deeds = [deed for plan in plans for slot in plan.slots for deed in slot]
    words = {line.split()[0] for deed in deeds for line in deed.script.splitlines() if line}
    assert {name.split()[0] for name in LINES} - {"echo"} <= words
    assert {fault.kind for plan in plans for fault in plan.faults} == set(FAULTS)
    assert {plan.ending for plan in plans} == set(ENDINGS)
    assert [plan for plan in plans if not plan.faults], "some rounds kill nothing: all must be whole then"

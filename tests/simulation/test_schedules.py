"""Some thousand schedules keep every rule, and the simulation can fail: it finds each bug that is planted.

Run apart, with a fixed hash seed, so that a seed that is printed here means the same on the command line.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.actions import schedule
from tests.simulation.driver import play
from tests.simulation.planted import BUGS

ROOT = Path(__file__).parents[2]
SCHEDULES = int(os.environ.get("TEST_SCHEDULES", "2000"))
"""About a minute of one core; `python -m tests.simulation --schedules N` plays as many as you let it."""
FOUND_WITHIN = 1500
DEADLINE_S = 600.0


def simulated(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, to its end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


@pytest.mark.proves(*(f"INV-{number}" for number in range(1, 10)), "STATE-table", "TURN-intent-decides")
def test_thousands_of_schedules_with_faults_break_no_rule() -> None:
    ran = simulated("--schedules", str(SCHEDULES), "--seed", "1", "--steps", "14")
    sys.stdout.write(ran.stdout)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    assert f"{SCHEDULES} schedules (seeds 1 to {SCHEDULES})" in ran.stdout


@pytest.mark.parametrize("bug", sorted(BUGS))
def test_a_planted_bug_is_found(bug: str) -> None:
    ran = simulated("--plant", bug, "--schedules", str(FOUND_WITHIN), "--seed", "1", "--no-shrink")
    assert ran.returncode == 1, f"not found within {FOUND_WITHIN} schedules: {ran.stdout}{ran.stderr}"
    assert "breaks a rule" in ran.stdout


def test_a_failure_is_told_with_its_seed_and_a_shorter_history() -> None:
    ran = simulated("--plant", "full is no limit", "--schedules", "300", "--seed", "1")
    assert ran.returncode == 1
    assert "breaks a rule: refused: queue_full changed" in ran.stdout
    _, _, shortest = ran.stdout.partition("The shortest history found")
    actions = [line for line in shortest.partition("It breaks")[0].splitlines() if " s  " in line]
    assert 2 <= len(actions) <= 10, shortest


def test_a_seed_means_the_same_schedule_each_time() -> None:
    for seed in (3, 17, 42):
        first, second = (play(seed, schedule(seed, 16)) for _ in range(2))
        assert first.violation is None
        assert (first.history, first.steps, first.commits) == (second.history, second.steps, second.commits)

"""`python -m tests.simulation --schedules N [--seed S] [--steps K]`: plays N schedules; 1 at a failure.

A failure prints its seed and the shortest history found; `--schedules 1 --seed THAT` plays it again.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.simulation.actions import schedule
from tests.simulation.driver import Outcome, play
from tests.simulation.planted import BUGS, planted
from tests.simulation.shrinking import shrink

PROGRESS_S = 5.0


def main() -> int:
    """The exit code."""
    given = _arguments()
    began = told = time.monotonic()
    totals = {"steps": 0, "commits": 0, "prompts": 0, "virtual_s": 0.0}
    with planted(given.plant):
        for number in range(given.schedules):
            seed = given.seed + number
            outcome = play(seed, schedule(seed, given.steps))
            for name in totals:
                totals[name] += getattr(outcome, name)
            if outcome.violation is not None:
                _report(seed, given.steps, outcome, shorten=not given.no_shrink)
                return 1
            if time.monotonic() - told > PROGRESS_S:
                told = time.monotonic()
                _err(f"{number + 1} of {given.schedules} schedules, {(number + 1) / (told - began):.0f}/s")
    seconds = time.monotonic() - began
    last = given.seed + given.schedules - 1
    _out(
        f"{given.schedules} schedules (seeds {given.seed} to {last}) in {seconds:.1f} s: "
        f"{totals['commits']:.0f} commits, {totals['prompts']:.0f} prompts, "
        f"{totals['virtual_s'] / 3600:.0f} virtual hours, no violation"
    )
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=16, help="actions per schedule, at most")
    parser.add_argument("--plant", choices=sorted(BUGS), help="break the product on purpose")
    parser.add_argument("--no-shrink", action="store_true")
    return parser.parse_args()


def _report(seed: int, steps: int, outcome: Outcome, *, shorten: bool) -> None:
    _out(f"seed {seed} (--steps {steps}) breaks a rule: {outcome.violation}")
    if not shorten:
        _out("\n".join(outcome.history))
        return
    _err("looking for a shorter history")
    shortest = shrink(seed, schedule(seed, steps), outcome)
    _out(f"\nThe shortest history found (order drawn from seed {shortest.seed}):")
    _out("\n".join(str(action) for action in shortest.actions))
    _out(f"\nIt breaks: {shortest.outcome.violation}\n")
    _out("\n".join(shortest.outcome.history))


def _out(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def _err(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # Sets of names are ordered by their hashes: a seed must mean the same in every process.
        arguments = [sys.executable, "-m", "tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())

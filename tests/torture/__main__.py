"""`python -m tests.torture --rounds N [--seed S] [--minutes M] [--side-by-side 2] [--keep] [--stop]`.

Plays N rounds, the seeds counted up from S, and prints what broke and the figures; 1 when something broke.
The home, the agents' logs and the plan of a broken round stay in the folder that is named. SIGTERM or Ctrl-C:
the rounds that run are the last.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from tests.torture.plan import Size
from tests.torture.planted import NAMES
from tests.torture.rounds import Played, by_itself, play_and_tidy


def main() -> int:
    """The exit code."""
    campaign = Campaign(_arguments())
    campaign.run()
    campaign.report()
    return 1 if campaign.broken else 0


class Campaign:
    """Rounds side by side, each in a process of a pool."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.broken = 0
        self._given = given
        self._folder = Path(given.folder or tempfile.mkdtemp(prefix="torture-"))
        self._seeds = iter(range(given.seed, given.seed + given.rounds))
        self._totals: Counter[str] = Counter()
        self._began = time.monotonic()
        self._told_to_end = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)

    def _end(self, *_: object) -> None:
        self._told_to_end = True

    def run(self) -> None:
        """Until there is no round left to be played."""
        spawn = multiprocessing.get_context("spawn")
        running: set[Future[Played]] = set()
        with ProcessPoolExecutor(self._given.side_by_side, spawn, by_itself) as pool:
            while True:
                while len(running) < self._given.side_by_side and (seed := self._next()) is not None:
                    running.add(self._begin(pool, seed))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._tell(*future.result())

    def _next(self) -> int | None:
        late = self._given.minutes and time.monotonic() - self._began > self._given.minutes * 60
        over = self._told_to_end or late or (self._given.stop and self.broken)
        return None if over else next(self._seeds, None)

    def _begin(self, pool: ProcessPoolExecutor, seed: int) -> Future[Played]:
        given = self._given
        size = Size(given.deeds, 2, given.faults)
        folder = self._folder / str(seed)
        return pool.submit(play_and_tidy, seed, folder, size, keep=given.keep, bug=given.plant)

    def _tell(self, seed: int, violations: list[str], figures: dict[str, int]) -> None:
        self._totals.update(figures)
        self._totals["rounds"] += 1
        self.broken += bool(violations)
        if not violations:
            _out(f"round {seed}: ok")
            return
        _out(f"round {seed} BROKEN, kept in {self._folder / str(seed)}:")
        for said in violations:
            _out(f"  {said[:3000]}")

    def report(self) -> None:
        """The figures of all rounds."""
        seconds = time.monotonic() - self._began
        _out(f"{self._totals['rounds']} rounds in {seconds:.0f} s, {self.broken} broken")
        for name, count in sorted(self._totals.items()):
            _out(f"  {name}: {count}")
        if not self.broken and not self._given.keep:
            shutil.rmtree(self._folder, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="begin no round after so long")
    parser.add_argument("--side-by-side", type=int, default=2)
    parser.add_argument("--deeds", type=int, default=14, help="of each session's person, per round")
    parser.add_argument("--faults", type=int, default=5, help="per round, at most")
    parser.add_argument("--plant", choices=NAMES, help="break the programs on purpose")
    parser.add_argument("--folder", help="where homes are made; a new one in the temporary folder")
    parser.add_argument("--keep", action="store_true", help="keep the homes of good rounds too")
    parser.add_argument("--stop", action="store_true", help="begin no round after one broke")
    return parser.parse_args()


def _out(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

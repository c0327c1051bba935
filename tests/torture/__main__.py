"""`python -m tests.torture --rounds N [--seed S] [--minutes M] [--side-by-side 2] [--keep] [--stop]`.

Plays N rounds, the seeds counted up from S; prints what broke and the figures; 1 when something broke. The
home, the agents' logs and the plan of a broken round stay in the folder that is named.
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from tests.torture.plan import Size
from tests.torture.planted import NAMES
from tests.torture.rounds import play_and_tidy


def main() -> int:
    """The exit code."""
    given = _arguments()
    folder = Path(given.folder or tempfile.mkdtemp(prefix="torture-"))
    totals: Counter[str] = Counter()
    began = time.monotonic()
    broken = 0
    size = Size(given.deeds, 2, given.faults)
    spawn = multiprocessing.get_context("spawn")
    seeds = iter(range(given.seed, given.seed + given.rounds))
    with ProcessPoolExecutor(given.side_by_side, mp_context=spawn) as pool:
        running: set[Future[tuple[int, list[str], dict[str, int]]]] = set()
        while True:
            over = given.minutes and time.monotonic() - began > given.minutes * 60
            stopped = given.stop and broken
            while len(running) < given.side_by_side and not over and not stopped:
                seed = next(seeds, None)
                if seed is None:
                    break
                running.add(
                    pool.submit(
                        play_and_tidy, seed, folder / str(seed), size, keep=given.keep, bug=given.plant
                    )
                )
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                seed, violations, figures = future.result()
                totals.update(figures)
                totals["rounds"] += 1
                broken += bool(violations)
                _tell(seed, violations, folder / str(seed))
    _out(f"{totals['rounds']} rounds in {time.monotonic() - began:.0f} s, {broken} broken")
    for name, count in sorted(totals.items()):
        _out(f"  {name}: {count}")
    if not broken and not given.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 1 if broken else 0


def _tell(seed: int, violations: list[str], folder: Path) -> None:
    if not violations:
        _out(f"round {seed}: ok")
        return
    _out(f"round {seed} BROKEN, kept in {folder}:")
    for said in violations:
        _out(f"  {said[:3000]}")


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

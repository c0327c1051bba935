"""`python -m bench`: runs benchmarks and prints one table; `just bench` calls it.

Each benchmark's figures go to stderr as one line of JSON when it is done. Exits 1 when a benchmark failed
or left a process behind, never for a budget.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import adoption, disk, growth, interrupt, latency, memory, startup, stopping, store, streaming
from bench.figures import Result
from bench.ground import FULL, QUICK, Benchmark, Ground, Sizes
from bench.processes import end_all
from bench.table import show

BENCHMARKS: dict[str, Benchmark] = {
    "disk": disk.measure,
    "startup": startup.measure,
    "latency": latency.measure,
    "interrupt": interrupt.measure,
    "stopping": stopping.measure,
    "streaming": streaming.measure,
    "memory": memory.measure,
    "adoption": adoption.measure,
    "growth": growth.measure,
    "store": store.measure,
}
INTERRUPTED = 130
WIDTH = 200
"""Columns of the table, where no terminal says how many there are."""


@dataclass
class Outcome:
    """What a run came to. `failed` names benchmarks, `left` processes."""

    results: list[Result] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def code(self) -> int:
        """The exit code."""
        if self.interrupted:
            return INTERRUPTED
        return 1 if self.failed or self.left else 0


def main(words: Sequence[str]) -> int:
    """The exit code."""
    chosen = _arguments(words)
    names, sizes = chosen.only or list(BENCHMARKS), QUICK if chosen.quick else FULL
    outcome = Outcome()
    with tempfile.TemporaryDirectory(prefix="kandev-bench-", dir=chosen.folder) as name:
        folder = Path(name).resolve()
        try:
            asyncio.run(_run(names, folder, sizes, outcome))
        except (KeyboardInterrupt, asyncio.CancelledError):
            outcome.interrupted = True
        finally:
            outcome.left = end_all(folder)
    if not outcome.interrupted:
        _report(outcome, sizes, chosen.json)
    for process in outcome.left:
        print(f"bench: left behind, and ended now: {process}", file=sys.stderr)
    for name in outcome.failed:
        print(f"bench: {name} failed; the lines above say why.", file=sys.stderr)
    return outcome.code


def _arguments(words: Sequence[str]) -> argparse.Namespace:
    known = ", ".join(BENCHMARKS)
    parser = argparse.ArgumentParser(
        prog="just bench", description=f"Measures Kandev beside its floors: {known}."
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything to FILE as JSON too")
    parser.add_argument("--only", action="append", choices=BENCHMARKS, metavar="NAME", help="may be repeated")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, to see that it works; judges nothing"
    )
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="where the homes are made, instead of TMPDIR"
    )
    return parser.parse_args(words)


async def _run(names: Sequence[str], folder: Path, sizes: Sizes, outcome: Outcome) -> None:
    task = asyncio.current_task()
    if task is not None:  # as Ctrl-C does
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    for name in names:
        own = folder / name
        own.mkdir()
        began = time.monotonic()
        try:
            rows = await BENCHMARKS[name](Ground(own, sizes))
        except Exception:  # noqa: BLE001 - around a benchmark: the others are of use all the same
            traceback.print_exc()
            outcome.failed.append(name)
            continue
        result = Result(name, rows, time.monotonic() - began)
        print(json.dumps(result.document(), ensure_ascii=False), file=sys.stderr, flush=True)
        outcome.results.append(result)


def _report(outcome: Outcome, sizes: Sizes, file: Path | None) -> None:
    machine: dict[str, Any] = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "load": [round(value, 2) for value in os.getloadavg()],
        "python": platform.python_version(),
        "quick": not sizes.judged,
    }
    load = f"{machine['processors']} processors, load {machine['load'][0]} at the end"
    note = "" if sizes.judged else "; quick, so that the figures say little"
    show(outcome.results, f"Kandev beside its floors ({load}{note})", Console(width=_width()))
    if file is not None:
        document = {"machine": machine, "results": [result.document() for result in outcome.results]}
        file.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _width() -> int | None:
    return None if sys.stdout.isatty() else WIDTH


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

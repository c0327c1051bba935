"""Where a benchmark runs and how much it does.

Not here: what it does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.figures import Budget, Percentile, Row


@dataclass(frozen=True)
class Sizes:
    """How much is measured. Budgets are about the full sizes only."""

    judged: bool = True
    starts: int = 10
    """Starts of each program."""
    live: tuple[int, ...] = (1, 50)
    """Live sessions beside which latency and updates are measured."""
    rounds: int = 200
    """Prompts, cancels and interrupts, each."""
    stops: int = 100
    ladder: Mapping[str, str] = field(default_factory=dict)
    """Other times than the defaults for the steps of ending an agent."""
    updates: int = 50_000
    """Streamed at full speed, all sessions together."""
    paced_s: float = 10.0
    paced: tuple[int, ...] = (1_000, 5_000)
    """Updates a second, all sessions together, beside each of `live`."""
    crowds: tuple[int, ...] = (0, 50, 200)
    """Sessions beside which memory is looked at, growing."""
    idle_s: float = 5.0
    """For which processor time is counted."""
    adopted: int = 50
    adoptions: int = 3
    boards: tuple[int, ...] = (10, 100, 1_000, 10_000)
    """Tasks on the board."""
    asked: int = 50
    """How often each operation is asked for, on each board."""
    writers: tuple[int, ...] = (1, 50)
    decisions: int = 1_500
    """Of all writers together."""
    flushes: int = 200


FULL = Sizes()
QUICK = Sizes(
    judged=False,
    starts=1,
    live=(1, 2),
    rounds=3,
    stops=2,
    ladder={f"KANDEV_TEARDOWN_{step}_S": "0.1" for step in ("PROTOCOL", "STDIN", "TERM")},
    updates=200,
    paced_s=0.5,
    paced=(100, 200),
    crowds=(0, 1, 2),
    idle_s=0.2,
    adopted=2,
    adoptions=1,
    boards=(2, 4),
    asked=2,
    writers=(1, 2),
    decisions=12,
    flushes=3,
)


@dataclass(frozen=True)
class Ground:
    """A benchmark's own folder, which exists, and its sizes."""

    folder: Path
    sizes: Sizes

    def budget(self, limit: float, at: Percentile | None = None, *, at_least: bool = False) -> Budget | None:
        """A target, where the sizes are those that it is about."""
        return Budget(limit, at, at_least) if self.sizes.judged else None


Benchmark = Callable[[Ground], Awaitable[Sequence[Row]]]

"""What a benchmark finds: rows of figures with their floors and budgets, and how they read as JSON.

Not here: measuring, printing (`table`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Unit = Literal["µs", "ms", "s", "MB", "%", "/s", ""]
Percentile = Literal["p50", "p95", "p99"]


@dataclass(frozen=True)
class Spread:
    """Percentiles of a number of samples (nearest rank)."""

    p50: float
    p95: float
    p99: float
    worst: float
    count: int

    @staticmethod
    def of(samples: Sequence[float]) -> Spread:
        """At least one sample."""
        ordered = sorted(samples)

        def rank(share: float) -> float:
            return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

        return Spread(statistics.median(ordered), rank(0.95), rank(0.99), ordered[-1], len(ordered))

    def members(self) -> dict[str, float]:
        return {**vars(self)}


@dataclass(frozen=True)
class Budget:
    """A target. `at`: which percentile of a spread it is about."""

    limit: float
    at: Percentile | None = None
    at_least: bool = False

    def met(self, figure: Spread | float) -> bool:
        """Whether a figure is within it."""
        value = figure if not isinstance(figure, Spread) else getattr(figure, self.at or "p50")
        return bool(value >= self.limit if self.at_least else value <= self.limit)


@dataclass(frozen=True)
class Row:
    """One line of the table. `floor` is measured in the same run; `floor_is` says what it is."""

    what: str
    unit: Unit
    figure: Spread | float
    floor: Spread | float | None = None
    floor_is: str = ""
    budget: Budget | None = None

    @property
    def ratio(self) -> float | None:
        """Of the figure to the floor; of the medians where there are several."""
        if self.floor is None or not _middle(self.floor):
            return None
        return _middle(self.figure) / _middle(self.floor)

    @property
    def holds(self) -> bool | None:
        """Whether the budget holds; None without one."""
        return None if self.budget is None else self.budget.met(self.figure)

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        budget = None
        if self.budget is not None:
            budget = {"limit": self.budget.limit, "at": self.budget.at, "at_least": self.budget.at_least}
        return {
            "what": self.what,
            "unit": self.unit,
            "figure": _plain(self.figure),
            "floor": None if self.floor is None else _plain(self.floor),
            "floor_is": self.floor_is,
            "ratio": self.ratio,
            "budget": budget,
            "holds": self.holds,
        }


@dataclass(frozen=True)
class Result:
    """What one benchmark found, and how long it took."""

    name: str
    rows: Sequence[Row]
    took_s: float

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        rows = [row.document() for row in self.rows]
        return {"benchmark": self.name, "took_s": round(self.took_s, 1), "rows": rows}


def _middle(figure: Spread | float) -> float:
    return figure.p50 if isinstance(figure, Spread) else figure


def _plain(figure: Spread | float) -> dict[str, float] | float:
    return figure.members() if isinstance(figure, Spread) else figure


def ms(seconds: Sequence[float]) -> Spread:
    """A spread in milliseconds of samples in seconds."""
    return Spread.of([1000 * sample for sample in seconds])


def beyond(samples: Sequence[float], floor: Sequence[float]) -> Spread:
    """Our share, in milliseconds: each sample less the floor's median (both in seconds)."""
    middle = statistics.median(floor)
    return Spread.of([1000 * max(0.0, sample - middle) for sample in samples])

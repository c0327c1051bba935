"""What a figure, its ratio and its budget say."""

from __future__ import annotations

import io

from rich.console import Console

from bench.figures import Budget, Result, Row, Spread, beyond
from bench.stamps import Stamps, lost_of
from bench.table import number, show


def _spread(*samples: float) -> Spread:
    return Spread.of(samples)


def test_percentiles_are_samples_that_were_taken() -> None:
    hundred = _spread(*range(1, 101))
    assert (hundred.p50, hundred.p95, hundred.p99, hundred.worst, hundred.count) == (50.5, 95, 99, 100, 100)
    assert _spread(7) == Spread(7, 7, 7, 7, 1)


def test_a_ratio_compares_medians_and_needs_a_floor() -> None:
    assert Row("", "ms", _spread(1, 4, 9), _spread(2, 2, 8)).ratio == 2
    assert Row("", "/s", 50.0, 200.0).ratio == 0.25
    assert Row("", "s", 1.0).ratio is None
    assert Row("", "s", 1.0, 0.0).ratio is None


def test_a_budget_is_about_its_percentile_and_its_direction() -> None:
    spread = _spread(*range(1, 101))
    assert Row("", "ms", spread, budget=Budget(95, "p95")).holds is True
    assert Row("", "ms", spread, budget=Budget(94, "p95")).holds is False
    assert Row("", "/s", 4_999.0, budget=Budget(5_000, at_least=True)).holds is False
    assert Row("", "/s", 5_000.0, budget=Budget(5_000, at_least=True)).holds is True
    assert Row("", "ms", spread).holds is None


def test_our_share_is_what_lies_beyond_the_floor_and_never_less_than_nothing() -> None:
    assert beyond([0.005, 0.001], [0.002, 0.002, 0.9]).worst == 3
    assert beyond([0.001], [0.002]).worst == 0


def test_numbers_are_short_and_plain() -> None:
    assert [number(n) for n in (0, 0.000123456, 1.23456, 12.3456, 1234.5, 1234567)] == [
        "0",
        "0.000123",
        "1.23",
        "12.3",
        "1,234",
        "1,234,567",
    ]


def test_the_table_says_which_budget_holds() -> None:
    console = Console(file=io.StringIO(), width=160)
    rows = [
        Row("kept", "ms", _spread(1, 2, 3), _spread(1), "the floor", Budget(5, "p95")),
        Row("broken", "MB", 9.0, budget=Budget(5)),
        Row("without", "s", 9.0),
    ]
    show([Result("bench", rows, 1.0)], "A title", console)
    assert isinstance(console.file, io.StringIO)
    lines = [line for line in console.file.getvalue().splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in line.strip("│").split("│")] for line in lines]
    assert cells == [
        ["bench", "kept", "2 / 3 / 3 ms", "1 / 1 / 1 ms", "the floor", "× 2", "p95 ≤ 5 ms", "yes"],
        ["", "broken", "9 MB", "", "", "", "≤ 5 MB", "no"],
        ["", "without", "9 s", "", "", "", "", ""],
    ]


def test_a_chunk_that_is_missing_or_comes_twice_is_lost() -> None:
    ear = Stamps()
    ear.take(2.0, "1:1000000000 2:1500000000 ")
    assert (ear.lags, ear.skipped) == ([1.0, 0.5], 0)
    ear.take(2.0, "4:1 ")
    assert ear.skipped == 1
    ear.take(2.0, "4:1 ")
    assert ear.skipped == 2
    assert lost_of("1:1 2:1 3:1 ", 3) == 0
    assert lost_of("1:1 3:1 ", 3) == 2
    assert lost_of("1:1 2:1 2:1 3:1", 3) == 2

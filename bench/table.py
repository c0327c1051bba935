"""The one table that a run prints."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.figures import Budget, Result, Row, Spread, Unit

DIGITS = 3
"""Significant ones: what is beyond them is noise."""


def show(results: Sequence[Result], title: str, console: Console) -> None:
    """All rows of all benchmarks."""
    table = Table(title=title, title_justify="left", pad_edge=False)
    table.add_column("Benchmark")
    table.add_column("What")
    table.add_column("Figure\n[dim]p50 / p95 / p99[/dim]", justify="right")
    table.add_column("Floor", justify="right")
    table.add_column("Floor is")
    table.add_column("Ratio", justify="right")
    table.add_column("Budget", justify="right")
    table.add_column("Holds")
    for result in results:
        for number, row in enumerate(result.rows):
            last = number == len(result.rows) - 1
            table.add_row("" if number else result.name, *_cells(row), end_section=last)
    console.print(table)


def _cells(row: Row) -> list[str]:
    return [
        row.what,
        _value(row.figure, row.unit),
        "" if row.floor is None else _value(row.floor, row.unit),
        row.floor_is,
        "" if row.ratio is None else f"× {number(row.ratio)}",
        "" if row.budget is None else _budget(row.budget, row.unit),
        {None: "", True: "yes", False: "[bold red]no[/bold red]"}[row.holds],
    ]


def _value(figure: Spread | float, unit: Unit) -> str:
    if isinstance(figure, Spread):
        words = " / ".join(number(value) for value in (figure.p50, figure.p95, figure.p99))
        return f"{words} {unit}".strip()
    return f"{number(figure)} {unit}".strip()


def _budget(budget: Budget, unit: Unit) -> str:
    sign = "≥" if budget.at_least else "≤"
    return f"{budget.at or ''} {sign} {number(budget.limit)} {unit}".strip()


def number(value: float) -> str:
    """With a few significant digits, and never in powers of ten."""
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (DIGITS - 1):
        return f"{value:,.0f}"
    return f"{float(f'{value:.{DIGITS}g}'):g}"

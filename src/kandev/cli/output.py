"""What people and programs see on stdout: JSON, tables, facts. Text of agents is shown, never obeyed.

Not here: live transcripts (`transcript`), sentences about failures (`failures`).
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import click

# Escape sequences in an agent's text could rewrite the screen or the window's title.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
SHORT = 8
"""Letters of an id shown to people: its last ones, which are random and enough to name it."""
COLOURS = {
    "RUNNING": "green",
    "IN_PROGRESS": "green",
    "STARTING": "cyan",
    "SCHEDULING": "cyan",
    "WAITING_FOR_INPUT": "yellow",
    "REVIEW": "yellow",
    "BLOCKED": "red",
    "FAILED": "red",
    "CANCELLED": "magenta",
    "COMPLETED": "blue",
}
NOTE_MIN = 24
"""Letters of a note that are shown, however narrow the terminal is."""
WORDS = 60
"""Letters of a message that a table shows."""
UNITS = (("d", 86400), ("h", 3600), ("min", 60))
Row = Sequence[object]


def is_terminal() -> bool:
    """Whether a person looks at stdout."""
    return sys.stdout.isatty()


def has_colour() -> bool:
    """Colours are for terminals, and for nobody who set NO_COLOR."""
    return is_terminal() and not os.environ.get("NO_COLOR")


def clean(text: object) -> str:
    """Text without control characters, newlines and tabs kept."""
    return CONTROL.sub("", str(text).replace("\r\n", "\n").replace("\r", "\n"))


def line_of(text: object) -> str:
    """Text on one line."""
    return " ".join(clean(text).split())


def first_words(text: object) -> str:
    """The beginning of a text, on one line."""
    line = line_of(str(text)[: 4 * WORDS])
    return line if len(line) <= WORDS and len(str(text)) <= 4 * WORDS else f"{line[: WORDS - 1].rstrip()}…"


def age_of(at: object) -> str:
    """How long a time (RFC 3339) is ago, in its largest unit; empty when it is no time."""
    try:
        seconds = (datetime.now(UTC) - datetime.fromisoformat(str(at))).total_seconds()
    except (ValueError, TypeError):
        return ""
    unit, size = next(((u, s) for u, s in UNITS if seconds >= s), ("s", 1))
    return f"{max(0, int(seconds // size))} {unit}"


def paint(text: str, colour: str | None = None, *, dim: bool = False, bold: bool = False) -> str:
    """The text with colour, where colours are wanted."""
    if not has_colour():
        return text
    return click.style(text, fg=colour, dim=dim or None, bold=bold or None)


def dumps(value: object) -> str:
    """JSON: indented for a person, on one line for a program."""
    return json.dumps(value, ensure_ascii=False, indent=2 if is_terminal() else None)


def shown_id(id: object) -> str:
    """An id for a person: short on a terminal, whole in a pipe."""
    return str(id)[-SHORT:] if is_terminal() else str(id)


@dataclass(frozen=True)
class Output:
    """Where answers go. `as_json`: the payload as it came, and nothing else."""

    as_json: bool

    def say(self, text: str) -> None:
        """A line for a person."""
        if not self.as_json:
            click.echo(text, color=has_colour())

    def data(self, payload: object) -> bool:
        """Prints the payload when a program asked; True when that was all."""
        if self.as_json:
            click.echo(dumps(payload))
        return self.as_json

    def table(self, columns: Sequence[str], rows: Iterable[Row], empty: str) -> None:
        """A table for a person; `empty` is said when there are no rows.

        A last column "note" is left out when nobody has one, and on a terminal cut to the width.
        """
        texts = [[line_of("" if cell is None else cell) for cell in row] for row in rows]
        if texts and columns[-1] == "note" and not any(row[-1] for row in texts):
            columns, texts = columns[:-1], [row[:-1] for row in texts]
        if not texts:
            self.say(empty)
        elif is_terminal():
            _rich_table(columns, _cut(texts) if columns[-1] == "note" else texts)
        else:
            _plain_table(columns, texts)

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Names and values, one to a line; what is None is left out."""
        known = {name: value for name, value in facts.items() if value not in (None, "", [], {})}
        width = max(map(len, known), default=0)
        for name, value in known.items():
            text = clean(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            shown = text.replace("\n", "\n" + " " * (width + 2))
            self.say(f"{paint(name.ljust(width), dim=True)}  {paint(shown, COLOURS.get(text))}")


def _cut(rows: list[list[str]]) -> list[list[str]]:
    """The last cells, as long as they fit behind the longest of the others."""
    taken = sum(max(len(row[i]) for row in rows) + 2 for i in range(len(rows[0]) - 1))
    left = max(NOTE_MIN, shutil.get_terminal_size().columns - taken)
    return [[*row[:-1], row[-1] if len(row[-1]) <= left else f"{row[-1][: left - 1]}…"] for row in rows]


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column.upper(), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    Console(no_color=not has_colour(), highlight=False).print(table)


def _plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [[column.upper() for column in columns], *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(cells).rstrip())

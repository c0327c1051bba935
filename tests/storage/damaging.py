"""Ways in which a database gets damaged on a disk. Each changes the file that is given, and nothing else."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

PAGE = 4096
Damage = Callable[[Path], None]


def damage(path: Path, at: float = 0.5) -> None:
    """Garbage over one page, `at` so much of the file."""
    pages = path.stat().st_size // PAGE
    _write(path, int(pages * at) * PAGE, bytes(range(256)) * (PAGE // 256))


def root_of(path: Path, name: str) -> int:
    """The page at which a table or an index begins, from 1."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        found: int = database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)
        ).fetchone()[0]
        return found


def damage_root(path: Path, name: str) -> None:
    """Garbage where a table or an index begins."""
    _write(path, (root_of(path, name) - 1) * PAGE, b"\xa5" * PAGE)


def cut(path: Path) -> None:
    """Half of it is gone."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2 // PAGE * PAGE)


def cut_within_a_page(path: Path) -> None:
    """The last write did not reach the disk whole."""
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 100)


def cut_to_nothing(path: Path) -> None:
    """Zero bytes."""
    with path.open("r+b") as file:
        file.truncate(0)


def only_the_header(path: Path) -> None:
    """The first page is there, the others are zeros."""
    size = path.stat().st_size
    _write(path, PAGE, bytes(size - PAGE))


def bad_beginning(path: Path) -> None:
    """The first page is garbage."""
    _write(path, 0, b"\xa5" * PAGE)


def bad_first_page(path: Path) -> None:
    """The header is fine, the table of tables is not."""
    _write(path, 100, b"\xa5" * (PAGE - 100))


def index_without_a_row(path: Path) -> None:
    """An index of a task's column does not hold what the table holds."""
    root = root_of(path, "ix_tasks_created_at_id")
    at = (root - 1) * PAGE
    page = bytearray(path.read_bytes()[at : at + PAGE])
    count = int.from_bytes(page[3:5], "big")
    page[3:5] = (count - 1).to_bytes(2, "big")
    _write(path, at, bytes(page))


def _write(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)

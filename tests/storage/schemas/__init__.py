"""A database of every version that was ever released, as SQL, and what the program of that version read in
it.

`<revision>.sql` is a dump with rows of all kinds; `<revision>.json` is what `reading.everything` told of it
then. A new migration gets both from `python -m tests.storage.schemas [DATABASE]`. They are never changed
afterwards.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

FOLDER = Path(__file__).parent
NOTED = """INSERT INTO "notes" VALUES('restored',"""


def revisions() -> list[str]:
    """Those that have a fixture, oldest first."""
    return sorted(path.stem for path in FOLDER.glob("*.sql"))


def lay(revision: str, path: Path) -> Path:
    """Makes the database of this revision, as a backend leaves one."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.executescript((FOLDER / f"{revision}.sql").read_text(encoding="utf-8"))
        database.execute("PRAGMA journal_mode = WAL")
    path.chmod(0o600)
    return path


def dump(path: Path) -> str:
    """The database as SQL."""
    with closing(sqlite3.connect(path)) as database:
        return "\n".join(database.iterdump()) + "\n"


def dump_of_copy(path: Path) -> str:
    """The same of a copy, without the note that says so."""
    lines = dump(path).splitlines(keepends=True)
    assert sum(line.startswith(NOTED) for line in lines) == 1, "it is marked as a copy"
    return "".join(line for line in lines if not line.startswith(NOTED))

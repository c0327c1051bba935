"""A chain of two versions to upgrade along: the present one, and one before it that never was.

The one before has all tables but `worktrees`. Works whatever the present version is. Not here: the versions
that were released (`schemas`).
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kandev.storage import schema
from kandev.storage.sql.engine import connect
from kandev.storage.sql.tables import metadata

BEFORE = "0000"
HEAD_OF_SCRIPT = """
from alembic import op
from kandev.storage.sql.tables import metadata

revision, down_revision, branch_labels, depends_on = {revision!r}, {down!r}, None, None


def upgrade():
    metadata.create_all(op.get_bind(), tables=[{tables}], checkfirst=False)
    {more}
"""


class Chain:
    """The migrations, in a folder of their own; `step` is what the second one does behind its table."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(schema.MIGRATIONS, folder, ignore=shutil.ignore_patterns("0*.py", "__pycache__"))
        self._versions = folder / "versions"
        before = "*(t for t in metadata.sorted_tables if t.name != 'worktrees')"
        self._write(BEFORE, None, before, "")
        self.step("")

    def step(self, more: str) -> None:
        """The second migration."""
        self._write(schema.REVISIONS[-1], BEFORE, "metadata.tables['worktrees']", more)

    def _write(self, revision: str, down: str | None, tables: str, more: str) -> None:
        text = HEAD_OF_SCRIPT.format(revision=revision, down=down, tables=tables, more=more)
        (self._versions / f"{revision}.py").write_text(text)


def chained(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Chain:
    """From here on the program has these two versions."""
    chain = Chain(folder)
    monkeypatch.setattr(schema, "MIGRATIONS", folder)
    monkeypatch.setattr(schema, "REVISIONS", (BEFORE, schema.HEAD))
    return chain


def lay_before(path: Path) -> Path:
    """A database of the version before, with two workspaces in it."""
    with connect(path, busy_s=1, writing=True) as connection, connection.begin():
        schema.upgrade(connection, BEFORE)
        rows = [{"id": w, "name": w, "created_at": "2026", "updated_at": "2026"} for w in ("w1", "w2")]
        connection.execute(metadata.tables["workspaces"].insert(), rows)
    path.chmod(0o600)
    return path


def workspaces(path: Path) -> list[str]:
    """Ids in it, whatever its version."""
    with closing(sqlite3.connect(path)) as database:
        return [id for (id,) in database.execute("SELECT id FROM workspaces ORDER BY id")]

"""Copies of a database: made while others read and write it, looked through before they count, bounded.

A copy is one file that needs no log beside it. It appears under its name only when it is whole, on the disk
and free of damage. Not here: going back to one (`restoring`), when one is made (`opening`, the command line).
"""

import contextlib
import filecmp
import os
import re
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from kandev.core.errors import StoreFault
from kandev.runtime.restored import NOTE
from kandev.storage.faults import reason
from kandev.storage.files import BESIDE, add_name, belongs, beside, give, make_folder, remove, sync
from kandev.storage.sql.engine import damages, driver_of, look

KEPT: Final = 5
"""Copies made before upgrades. Each is as large as the database, and nobody goes back further than so many
upgrades; those that a person asked for are never taken away."""
PARTIAL: Final = ".partial"
DRAFT: Final = re.compile(rf"\..+\.[a-z0-9_]{{8}}{re.escape(PARTIAL)}")
"""As `tempfile` names them; a folder may hold other people's half-made files."""
STALE_S: Final = 24 * 60 * 60
"""What a killed program left half-made is taken away when it is so old: no copy takes that long."""
TIME: Final = re.compile(r"-(\d{8}T\d{6}Z)(?:-(\d+))?\.db")


class CopyFailed(StoreFault):
    """No copy was made, and nothing was left behind. The message is half a sentence: why."""


def folder_of(database: Path) -> Path:
    """Where its copies are, unless a person names another place."""
    return database.parent / "backups"


def copies_of(database: Path) -> list[Path]:
    """Those in its folder, newest first."""
    begin = f"{database.stem}-"
    try:
        found = [path for path in folder_of(database).iterdir() if path.name.startswith(begin)]
    except OSError:
        return []
    dated = [(match[-1], path) for path in found if (match := TIME.findall(path.name))]
    return [path for _, path in sorted(dated, key=lambda each: _order(each[0]), reverse=True)]


def _order(time_and_number: tuple[str, str]) -> tuple[str, int]:
    return time_and_number[0], int(time_and_number[1] or 1)


def free_name(folder: Path, stem: str) -> Path:
    """A name that tells the time, in UTC, and that nothing has."""
    at, number = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"), 1
    path = folder / f"{stem}-{at}.db"
    while os.path.lexists(path):
        number += 1
        path = folder / f"{stem}-{at}-{number}.db"
    return path


def copy(source: Path, target: Path, *, busy_s: float) -> None:
    """Makes `target`, which must not be there yet, with a note in it: also whoever puts it in place by hand
    goes back in time, which nothing else tells when no backend was started since. Raises CopyFailed."""
    if belongs(target, source):
        raise CopyFailed(f"the name {target} belongs to the database itself: choose another one")
    for path in (target, *(beside(target, suffix) for suffix in BESIDE)):
        if os.path.lexists(path):
            raise CopyFailed(f"{path} is there already")
    with draft(source, target.parent, busy_s=busy_s) as partial:
        note(partial)
        sync(partial)
        _publish(partial, target)


def note(copied: Path) -> None:
    """In a database that nobody has open yet: the first start on it has to know that it is a copy."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    with contextlib.closing(sqlite3.connect(copied, isolation_level=None)) as driver:
        driver.execute("INSERT OR REPLACE INTO notes (key, value) VALUES (?, ?)", (NOTE, now))


def before_upgrade(database: Path, revision: str, *, busy_s: float) -> Path:
    """A copy in its folder, or the newest one when that is the same: a start that fails again and again makes
    one. Older ones than the newest few are taken away. Raises CopyFailed."""
    folder = ready_folder(database)
    earlier = _automatic(database, re.escape(revision))
    with draft(database, folder, busy_s=busy_s) as partial:
        if earlier and filecmp.cmp(partial, earlier[0], shallow=False):
            return earlier[0]
        made = free_name(folder, f"{database.stem}-{revision}")
        _publish(partial, made)
    for old in _automatic(database, "[^-]+")[KEPT:]:
        with contextlib.suppress(OSError):
            old.unlink()
    return made


def ready_folder(database: Path) -> Path:
    """Its folder for copies, made when it is missing. Raises CopyFailed."""
    folder = folder_of(database)
    try:
        make_folder(folder, like=database.parent)
        drop_stale(folder)
    except OSError as error:
        raise CopyFailed(f"the folder {folder} cannot be used ({error.strerror})") from error
    return folder


def drop_stale(folder: Path) -> None:
    """What killed programs left half-made. OSError."""
    for path in folder.iterdir():
        if not DRAFT.fullmatch(path.name):
            continue
        # Another command may take its own, or the same, away at this moment.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_mtime < time.time() - STALE_S:
                remove(path)


@contextlib.contextmanager
def draft(
    source: Path, folder: Path, *, busy_s: float, immutable: bool = False, like: Path | None = None
) -> Iterator[Path]:
    """A whole copy under a name that nobody looks for; gone behind this unless it was renamed. `immutable`
    as in `engine.look`; `like`: whose it will be, else the source's owner's. Raises CopyFailed."""
    try:
        descriptor, name = tempfile.mkstemp(PARTIAL, f".{source.stem}.", folder)
    except OSError as error:
        raise CopyFailed(f"nothing can be written in {folder} ({error.strerror})") from error
    os.close(descriptor)
    partial = Path(name)
    try:
        with look(source, busy_s=busy_s, immutable=immutable) as reading:
            _fill(partial, reading)
        give(partial, like=like or source)
        sync(partial)
        yield partial
    except (DBAPIError, sqlite3.Error) as error:
        raise CopyFailed(reason(error)) from error
    except OSError as error:
        raise CopyFailed(f"{folder} does not take it ({error.strerror})") from error
    finally:
        remove(partial)


def _fill(partial: Path, reading: Connection) -> None:
    # The snapshot, and the only moment at which somebody's lock has to be waited for.
    reading.exec_driver_sql("SELECT count(*) FROM sqlite_master").all()
    with contextlib.closing(sqlite3.connect(partial, isolation_level=None)) as target:
        # Nobody looks at it before it is whole and synced.
        target.execute("PRAGMA synchronous = OFF")
        target.execute("PRAGMA journal_mode = OFF")
        driver_of(reading).backup(target)
        # Its own mode came along; this one needs no log, and can be read where nothing can be written.
        target.execute("PRAGMA journal_mode = DELETE")
    with look(partial, busy_s=0, immutable=True) as made:
        if wrong := damages(made, thorough=True):
            raise CopyFailed(f"it is damaged ({wrong[0]})")


def _publish(partial: Path, target: Path) -> None:
    """Under its name, unless somebody else has taken it meanwhile. OSError."""
    try:
        add_name(partial, target)
    except FileExistsError:
        raise CopyFailed(f"{target} is there already") from None
    sync(target.parent)


def _automatic(database: Path, revision: str) -> list[Path]:
    """Those made before upgrades from revisions of this pattern, newest first."""
    name = re.compile(rf"{re.escape(database.stem)}-{revision}{TIME.pattern}")
    return [path for path in copies_of(database) if name.fullmatch(path.name)]

"""Goes back to a copy: the present database is put aside, never overwritten, and at no moment is there none.

What is to happen is written down before it begins (`<database>.restore`), so that a kill between any two
steps is made good by whoever opens the database next (`finish`). What is put in place is a fresh copy of the
copy, with a note in it: the first start behind it has to know.

Not here: that no backend uses the home meanwhile (its lock), what it means to sessions (`runtime.restored`).
"""

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kandev.storage.copies import CopyFailed, draft, drop_stale, free_name, note
from kandev.storage.examination import check, refuse_other_files
from kandev.storage.faults import DatabaseRefused
from kandev.storage.files import BESIDE, PLAN, add_name, beside, holder, is_alone, sync

FRESH: Final = ".restored"
FRESHLY: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@dataclass(frozen=True)
class Restored:
    """`kept`: where that is now which was there before; None when nothing was."""

    revision: str
    kept: Path | None


def plan_of(database: Path) -> Path:
    """There while a restore is under way, or was killed."""
    return beside(database, PLAN)


def restore(copy: Path, database: Path, *, busy_s: float) -> Restored:
    """Raises DatabaseRefused, one sentence: then the present database is in force as before."""
    try:
        finish(database)
        _refuse_open(database)
        refuse_other_files(copy)
        if database.exists() and copy.samefile(database):
            raise DatabaseRefused(f"{copy} is the present database: name a copy of it.")
        drop_stale(database.parent)
        immutable = is_alone(copy) and holder(copy) is None
        folder = database.parent
        with draft(copy, folder, busy_s=busy_s, immutable=immutable, like=folder) as partial:
            revision = _sound(partial, copy)
            _mark(partial)
            # Again: a large copy takes minutes, and another home's backend may use this database.
            _refuse_open(database)
            partial.rename(_fresh(database))
        kept = _write_plan(database)
        finish(database)
    except CopyFailed as fault:
        raise DatabaseRefused(f"{copy} cannot be taken: {fault.message}; nothing was changed.") from fault
    except OSError as error:
        raise DatabaseRefused(
            f"The database cannot be put into {database.parent} ({error.filename}: {error.strerror}): "
            "make room there and see that it can be written, then try again."
        ) from error
    return Restored(revision, kept)


def finish(database: Path) -> Path | None:
    """Does what is left of a restore that was killed, if there is one: then it returns what was put in place.
    DatabaseRefused, OSError."""
    plan, fresh = plan_of(database), _fresh(database)
    if not plan.exists():
        return None
    kept = _planned(plan, database)
    if fresh.exists():
        # Its log belongs to the old database until the very moment at which the new one takes its name.
        if database.exists() and not kept.exists():
            add_name(database, kept)
        for suffix in BESIDE:
            if os.path.lexists(beside(database, suffix)):
                beside(database, suffix).rename(beside(kept, suffix))
        sync(database.parent)
        fresh.replace(database)
        sync(database.parent)
    plan.unlink()
    sync(database.parent)
    return database


def _planned(plan: Path, database: Path) -> Path:
    """Where the database of before is kept. Raises DatabaseRefused for what no restore wrote, OSError."""
    try:
        name = json.loads(plan.read_bytes())["kept"]
    except (ValueError, KeyError, TypeError):
        name = None
    if not isinstance(name, str) or not name.startswith(f"{database.stem}-replaced-") or "/" in name:
        raise DatabaseRefused(f"{plan} is no plan of a restore: move it away, then try again.")
    return database.with_name(name)


def _fresh(database: Path) -> Path:
    return database.with_name(f".{database.name}{FRESH}")


def _refuse_open(database: Path) -> None:
    if database.is_dir():
        raise DatabaseRefused(f"{database} is a folder: name a file for the database.")
    if database.exists() and (pid := holder(database)) is not None:
        raise DatabaseRefused(f"{database} is in use by process {pid}: end that one first, then try again.")


def refuse_unfit(copy: Path, *, busy_s: float) -> None:
    """Raises DatabaseRefused for a file that cannot be taken: asked before anything is ended for it."""
    refuse_other_files(copy)
    _sound(copy, copy, busy_s=busy_s, immutable=is_alone(copy) and holder(copy) is None)


def _sound(partial: Path, copy: Path, *, busy_s: float = 0, immutable: bool = True) -> str:
    """The copy's revision. Raises DatabaseRefused."""
    found = check(partial, busy_s=busy_s, immutable=immutable, name=str(copy))
    if found.revision is None or found.problems:
        why = found.problems[0] if found.problems else "it is no database of Kandev's"
        raise DatabaseRefused(f"{copy} cannot be taken: {why}; nothing was changed, choose another copy.")
    return found.revision


def _mark(partial: Path) -> None:
    """With the note, and in the mode that the backend uses: changing the mode later could be cut short."""
    note(partial)
    with closing(sqlite3.connect(partial, isolation_level=None)) as driver:
        driver.execute("PRAGMA journal_mode = WAL")
    sync(partial)


def _write_plan(database: Path) -> Path | None:
    """From here on it happens, whoever does it. Returns where the present database will be."""
    present = database.exists()
    kept = free_name(database.parent, f"{database.stem}-replaced")
    begun = beside(database, f"{PLAN}.begun")
    # Never through a link, which whoever owns the folder may have left there.
    begun.unlink(missing_ok=True)
    with os.fdopen(os.open(begun, FRESHLY, 0o600), "w", encoding="utf-8") as file:
        json.dump({"kept": kept.name}, file)
        file.flush()
        os.fsync(file.fileno())
    begun.rename(plan_of(database))
    sync(database.parent)
    return kept if present else None

"""What can be wrong with the database, each as one sentence.

Not here: what a use case refuses. An error that is a mistake in our own SQL is not translated: it stays
what it is.
"""

import sqlite3

from sqlalchemy.exc import DBAPIError

from kandev.core.errors import StaleVersion, StoreFault, Unavailable


class DatabaseRefused(StoreFault):
    """The database cannot be opened by this program. Nothing in it was changed."""


class DatabaseTooNew(DatabaseRefused):
    """A newer program wrote it."""


class DatabaseDamaged(Unavailable):
    """Its pages do not hold what SQLite wrote there. Nothing may be written to it any more."""


DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
IS_DAMAGED = "The database is damaged: stop Kandev, then go back to a copy with `kandev db restore`."
SENTENCES = {
    sqlite3.SQLITE_BUSY: "The database is locked by another program: close that one, then try again.",
    sqlite3.SQLITE_LOCKED: "The database is locked by another program: close that one, then try again.",
    sqlite3.SQLITE_READONLY: "The database cannot be written: make its disk, folder and file writable.",
    sqlite3.SQLITE_IOERR: "The disk of the database failed: look at the system's log.",
    sqlite3.SQLITE_CORRUPT: IS_DAMAGED,
    sqlite3.SQLITE_NOTADB: IS_DAMAGED,
    sqlite3.SQLITE_FULL: "The disk of the database is full: make room, then try again.",
    sqlite3.SQLITE_CANTOPEN: "A file of the database cannot be opened: it is gone, or no descriptor is left.",
    sqlite3.SQLITE_NOMEM: "There is no memory left for the database: end other programs.",
    sqlite3.SQLITE_INTERRUPT: "The database stopped in the middle of its work: try again.",
    sqlite3.SQLITE_PROTOCOL: "The database is locked by another program: close that one, then try again.",
    sqlite3.SQLITE_TOOBIG: "The text is too large for the database: send less at once.",
}
REASONS = {
    sqlite3.SQLITE_BUSY: "another program has it locked",
    sqlite3.SQLITE_LOCKED: "another program has it locked",
    sqlite3.SQLITE_READONLY: "it cannot be written",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is damaged",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_NOMEM: "there is no memory left",
}
NO_ROOM = {sqlite3.SQLITE_IOERR_SHMSIZE: sqlite3.SQLITE_FULL}
"""What a full disk looks like when the database is opened: its index of the log (-shm) finds no place."""
TAKEN = {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID"}


def told(error: BaseException) -> BaseException:
    """The same error, or the StoreFault that says what the driver's error means."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        kind = _kind(cause)
        if (sentence := SENTENCES.get(kind)) is not None:
            fault = DatabaseDamaged(sentence) if kind in DAMAGED else Unavailable(sentence)
            fault.__cause__ = error
            return fault
    return error


def reason(error: DBAPIError | sqlite3.Error) -> str:
    """The same in half a sentence about one file, with SQLite's own words."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if getattr(cause, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY_ROLLBACK:
        return "an unfinished transaction lies beside it (-journal): let its own program open it first"
    words = str(cause) or type(cause).__name__
    meant = REASONS.get(_kind(cause))
    return words if meant is None else f"{meant} ({words})"


def is_damage(error: BaseException) -> bool:
    """Whether the driver says that pages do not hold what was written there."""
    return _kind(error.orig if isinstance(error, DBAPIError) else error) in DAMAGED


def _kind(cause: object) -> int:
    """The low byte of SQLite's code is the kind of an error, the others tell which call failed."""
    code = int(getattr(cause, "sqlite_errorcode", None) or 0)
    return NO_ROOM.get(code, code & 0xFF)


def conflict(error: DBAPIError, what: str) -> BaseException:
    """What a violated constraint of `what` (a row's noun and id) means to the writer."""
    name = getattr(error.orig, "sqlite_errorname", "")
    if name in TAKEN:
        return StaleVersion(f"{what} is there already.")
    if name == "SQLITE_CONSTRAINT_FOREIGNKEY":
        return StaleVersion(f"{what} belongs to something that is gone, or something still needs it.")
    return error

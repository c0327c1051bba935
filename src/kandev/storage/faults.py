"""What can be wrong with the database, each as one sentence.

Not here: what a use case refuses. An error that is a mistake in our own SQL is not translated: it stays
what it is.
"""

import sqlite3

from sqlalchemy.exc import DBAPIError

from kandev.core.errors import StaleVersion, StoreFault


class DatabaseRefused(StoreFault):
    """The database cannot be opened by this program. Nothing in it was changed."""


class DatabaseTooNew(DatabaseRefused):
    """A newer program wrote it."""


SENTENCES = {
    sqlite3.SQLITE_BUSY: "The database is locked by another program: close that one, then try again.",
    sqlite3.SQLITE_LOCKED: "The database is locked by another program: close that one, then try again.",
    sqlite3.SQLITE_READONLY: "The database cannot be written: make its file and its folder writable.",
    sqlite3.SQLITE_IOERR: "The disk of the database failed: look at the system's log.",
    sqlite3.SQLITE_CORRUPT: "The database is damaged: restore it from a backup.",
    sqlite3.SQLITE_NOTADB: "The database is damaged: restore it from a backup.",
    sqlite3.SQLITE_FULL: "The disk of the database is full: make room, then try again.",
    sqlite3.SQLITE_CANTOPEN: "The database cannot be opened: its file is gone or may not be read.",
    sqlite3.SQLITE_NOMEM: "There is no memory left for the database: end other programs.",
    sqlite3.SQLITE_INTERRUPT: "The database stopped in the middle of its work: try again.",
    sqlite3.SQLITE_PROTOCOL: "The database is locked by another program: close that one, then try again.",
    sqlite3.SQLITE_TOOBIG: "The text is too large for the database: send less at once.",
}
TAKEN = {"SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_ROWID"}


def told(error: BaseException) -> BaseException:
    """The same error, or the StoreFault that says what the driver's error means."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if isinstance(cause, sqlite3.Error):
        # The low byte is the kind, the others tell which call failed.
        sentence = SENTENCES.get(getattr(cause, "sqlite_errorcode", 0) & 0xFF)
        if sentence is not None:
            fault = StoreFault(sentence)
            fault.__cause__ = error
            return fault
    return error


def conflict(error: DBAPIError, what: str) -> BaseException:
    """What a violated constraint of `what` (a row's noun and id) means to the writer."""
    name = getattr(error.orig, "sqlite_errorname", "")
    if name in TAKEN:
        return StaleVersion(f"{what} is there already.")
    if name == "SQLITE_CONSTRAINT_FOREIGNKEY":
        return StaleVersion(f"{what} belongs to something that is gone, or something still needs it.")
    return error

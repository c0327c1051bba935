"""Functions run in transactions: several writes in one commit, a read in a snapshot.

Not here: where this runs (`threads`, `inline`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from sqlalchemy import Connection

from kandev.core.errors import StoreFault, Unavailable
from kandev.core.records import Notification
from kandev.ports.clock import Clock
from kandev.ports.store import Tx
from kandev.storage.faults import told
from kandev.storage.sql.engine import in_transaction
from kandev.storage.sql.notes import SqlNotes
from kandev.storage.sql.tx import SqlTx

Function = Callable[[Tx], Any]
ENDED = "The database gave up in the middle of a transaction: nothing of it was written. Try again."
TAKEN_OVER = "Another backend has taken over this home: this one writes nothing any more, and ends."


class Attempt:
    """What a function came to. As a context manager it keeps what is raised inside, to be handed to whoever
    waits.
    """

    def __init__(self, failure: BaseException | None = None) -> None:
        self.value: Any = None
        self.failure = failure

    def __enter__(self) -> "Attempt":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if isinstance(raised, StopIteration):
            # A future cannot carry it, as it would end the generator that awaits.
            self.failure = RuntimeError("a function of the store raised StopIteration")
            self.failure.__cause__ = raised
        elif raised is not None:
            self.failure = told(raised)
        return True

    def result(self) -> Any:
        """The function's value, or what it raised."""
        if self.failure is not None:
            raise self.failure
        return self.value


@dataclass(frozen=True)
class Committed:
    """What a group came to: one attempt per function, what is to be published, in order, and why nothing was
    written at all."""

    attempts: Sequence[Attempt]
    notifications: Sequence[Notification]
    failure: BaseException | None = None


class TakenOver(Unavailable):
    """The database has another owner by now."""


def write_together(
    connection: Connection, clock: Clock, functions: Sequence[Function], owner: int | None = None
) -> Committed:
    """Runs all in one transaction. One that raises is undone alone; when the commit fails, all have
    failed. With another epoch in the database than `owner` nothing is run.
    """
    attempts = [Attempt() for _ in functions]
    notifications: list[Notification] = []
    with Attempt() as whole, connection.begin():
        _check_owner(connection, owner)
        for attempt, function in zip(attempts, functions, strict=True):
            notifications += _write_one(connection, clock, attempt, function)
    if whole.failure is None:
        return Committed(attempts, notifications)
    for attempt in attempts:
        attempt.failure = whole.failure
    return Committed(attempts, (), whole.failure)


def _check_owner(connection: Connection, owner: int | None) -> None:
    if owner is not None and SqlNotes(connection).epoch() != owner:
        raise TakenOver(TAKEN_OVER)


def read_snapshot(connection: Connection, clock: Clock, function: Function) -> Attempt:
    """Runs it in a transaction that is never committed."""
    with Attempt() as attempt, connection.begin() as transaction:
        attempt.value = function(SqlTx(connection, clock))
        transaction.rollback()
    return attempt


def _write_one(
    connection: Connection, clock: Clock, attempt: Attempt, function: Function
) -> Sequence[Notification]:
    tx = SqlTx(connection, clock)
    run = connection.exec_driver_sql
    run("SAVEPOINT one")
    with attempt:
        attempt.value = function(tx)
    if not in_transaction(connection):
        fault = attempt.failure if isinstance(attempt.failure, StoreFault) else Unavailable(ENDED)
        raise fault
    if attempt.failure is not None:
        run("ROLLBACK TO SAVEPOINT one")
    run("RELEASE SAVEPOINT one")
    return tx.added if attempt.failure is None else ()

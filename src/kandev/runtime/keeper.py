"""An actor's value in the store: loading and committing, each with its deadline."""

from collections.abc import Callable, Sequence

from kandev.core.decide import recovered
from kandev.core.effects import Note
from kandev.core.inputs import Input
from kandev.core.records import SessionRecord
from kandev.core.steps import Step
from kandev.ports.clock import Clock, Ids
from kandev.ports.store import Store, Tx
from kandev.runtime.actor import Vanished
from kandev.runtime.booking import Stamp, book
from kandev.runtime.deadlines import Deadlines
from kandev.runtime.task_booking import followed


class StoreKeeper:
    """Implements `actor.Keeper` for one session."""

    def __init__(self, session_id: str, store: Store, clock: Clock, ids: Ids, deadlines: Deadlines) -> None:
        self._id, self._store, self._clock, self._ids = session_id, store, clock, ids
        self._deadlines = deadlines
        self.owes: Callable[[], None] = lambda: None
        """Called when the task's step owes something behind a commit."""

    async def commit(
        self, record: SessionRecord, decided: Step, inputs: Sequence[Input]
    ) -> tuple[SessionRecord, tuple[Note, ...]]:
        """One transaction. Raises StoreFault: then nobody knows whether it was written."""
        stamp = Stamp(self._clock.now(), self._ids, self._deadlines.queue_max)

        def write(tx: Tx) -> tuple[SessionRecord, tuple[Note, ...], bool]:
            (after, notes), owes = followed(tx, record, decided, inputs, self._ids)
            return book(tx, record, after, notes, stamp), notes, owes

        written, notes, owes = await self._store.write(write, self._deadlines.commit_s)
        if owes:
            self.owes()
        return written, notes

    async def load(self) -> SessionRecord:
        """Through the writer, so that it comes behind every write that was begun."""
        return await self._store.write(self._read, self._deadlines.commit_s)

    def _read(self, tx: Tx) -> SessionRecord:
        found = tx.sessions.get(self._id)
        if found is None:
            raise Vanished(self._id)
        return found


async def first_load(keeper: StoreKeeper) -> SessionRecord:
    """The value for a new actor: whoever waited on an earlier one is gone."""
    record = await keeper.load()
    return SessionRecord(**{**vars(record), "value": recovered(record.value)})

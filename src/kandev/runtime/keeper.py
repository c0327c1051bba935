"""An actor's value in the store: loading and committing, each with its deadline."""

from collections.abc import Callable, Sequence

from kandev.core.decide import recovered
from kandev.core.effects import Note
from kandev.core.errors import Conflict
from kandev.core.inputs import Ask, Input
from kandev.core.records import SessionRecord
from kandev.core.session import Session
from kandev.core.steps import Step
from kandev.core.task import ARCHIVED, WORKING_SESSIONS
from kandev.core.views import wire_state
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
        """One transaction. Raises StoreFault: then nobody knows whether it was written; Conflict for an ask
        that would begin work on an archived task: then nothing was written."""
        stamp = Stamp(self._clock.now(), self._ids, self._deadlines.queue_max)

        def write(tx: Tx) -> tuple[SessionRecord, tuple[Note, ...], bool]:
            (after, notes), plan = followed(tx, record, decided, inputs, self._ids)
            if any(isinstance(given, Ask) for given in inputs):
                _refuse_off_board(tx, record, after)
            return book(tx, record, (after, notes), stamp, plan), notes, plan.owes

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


def _refuse_off_board(tx: Tx, record: SessionRecord, after: Session) -> None:
    """It may have been archived since the asker looked: whether it is, is seen where it counts."""
    begins = wire_state(after) in WORKING_SESSIONS and record.state not in WORKING_SESSIONS
    task = tx.tasks.get(record.task_id) if begins else None
    if task is not None and task.archived_at is not None:
        raise Conflict(ARCHIVED)


async def first_load(keeper: StoreKeeper) -> SessionRecord:
    """The value for a new actor: whoever waited on an earlier one is gone."""
    record = await keeper.load()
    return SessionRecord(**{**vars(record), "value": recovered(record.value)})

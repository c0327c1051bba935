"""What a decision does to entries, as rows: a message on its way, from the queue to its fate.

Not here: the session's other rows (`booking`), which entry comes when (`core`).
"""

from dataclasses import replace

from kandev.core.effects import Claimed, Edited, Enqueued, Fate, Placed, Returned
from kandev.core.records import EntryRecord, SessionRecord
from kandev.core.views import dispatch_id, turn_id
from kandev.ports.store import Tx
from kandev.runtime.scribe import Scribe

Change = Enqueued | Claimed | Returned | Fate | Edited | Placed


class Entries:
    """Of one session, within one transaction."""

    def __init__(self, tx: Tx, record: SessionRecord, scribe: Scribe, at: str) -> None:
        self._tx, self._record, self._scribe, self._at = tx, record, scribe, at
        self.reworded = False
        """One that waits says something else."""

    def note(self, note: Change) -> None:
        """Written at once."""
        match note:
            case Enqueued():
                self._enqueued(note)
            case Claimed():
                self._claimed(note)
            case Returned():
                self._returned(note)
            case Fate():
                self._ended(note)
            case Edited():
                self._edited(note)
            case Placed(places):
                for id, place in places:
                    for row in self._rows((id,)):
                        self._tx.entries.update(replace(row, place=place))

    def _enqueued(self, note: Enqueued) -> None:
        entry, draft, at = note.entry, note.draft, self._at
        self._tx.entries.insert(
            EntryRecord(
                id=entry.id,
                session_id=self._record.id,
                task_id=self._record.task_id,
                message_id=draft.message_id,
                content=draft.content,
                queued_by={"person": "user", "peer": "agent"}.get(entry.by, entry.by),
                place=entry.place,
                state="queued",
                queued_at=at,
                at=at,
                sender_task_id=draft.sender_task_id,
                key=draft.key,
                coalesce=entry.coalesce,
                sender_session_id=draft.sender_session_id,
            )
        )

    def _claimed(self, note: Claimed) -> None:
        for row in self._rows(note.entries):
            claim = replace(
                row, state="claimed", dispatch_id=dispatch_id(note.turn), turn_id=turn_id(note.turn)
            )
            self._tx.entries.update(replace(claim, at=self._at))
            metadata = {"entry_id": row.id, "queued_by": row.queued_by}
            if row.sender_task_id:
                metadata["sender_task_id"] = row.sender_task_id
                if row.sender_session_id:
                    metadata["sender_session_id"] = row.sender_session_id
                if (sender := self._tx.tasks.get(row.sender_task_id)) is not None:
                    metadata["sender_title"] = sender.title
            self._scribe.user(row.message_id, row.content, note.turn, metadata)

    def _returned(self, note: Returned) -> None:
        for row in self._rows(note.entries):
            back = replace(row, state="queued", dispatch_id=None, turn_id=None, at=self._at)
            self._tx.entries.update(back)
            self._scribe.delivery(row.message_id, "waiting")

    def _edited(self, note: Edited) -> None:
        self.reworded = True
        for row in self._rows((note.entry,)):
            self._tx.entries.update(replace(row, content=note.content, first_content=row.as_sent))
            self._scribe.reworded(row.message_id, note.content)

    def _ended(self, note: Fate) -> None:
        for row in self._rows((note.entry,)):
            end = replace(row, state=note.fate, by=note.by, at=self._at)
            self._tx.entries.update(replace(end, turn_id=turn_id(note.turn)) if note.turn else end)
            if note.fate != "delivered":
                self._scribe.delivery(row.message_id, note.fate)

    def _rows(self, entries: tuple[str, ...]) -> list[EntryRecord]:
        found = (self._tx.entries.get(e) for e in entries)
        return [row for row in found if row is not None]

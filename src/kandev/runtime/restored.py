"""The first start on a database that went back in time: restored from a copy, or put there by hand.

agentctl's files in the home have seen what the database no longer knows: epochs, executions. That tells it
from an ordinary one, and says from where on numbers are new. Not here: what it means to one session
(`core.restoring`), ending the agents that are left, which comes before `settle`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from kandev.core.records import SessionRecord
from kandev.core.restoring import numbered, restored
from kandev.core.views import needs_actor, wire_state
from kandev.ports.store import Tx
from kandev.runtime.booking import Stamp, book
from kandev.runtime.task_booking import planned

NOTE: Final = "restored"
"""In the store from a restore until the first start behind it."""
SETTLED: Final = ""


@dataclass(frozen=True)
class Seen:
    """What the agentctls of this home have seen, whatever the database says."""

    epoch: int = 0
    executions: Mapping[str, int] = field(default_factory=dict)
    """Session id → the highest number of an execution."""
    newest: Mapping[str, int] = field(default_factory=dict)
    """Of those the ones that were seen last."""


def went_back(tx: Tx, seen: Seen) -> bool:
    """Whether the database is older than what happened: what agentctl has seen was committed before."""
    if tx.note(NOTE) or tx.epoch() < seen.epoch:
        return True
    known = ((tx.sessions.get(session_id), number) for session_id, number in seen.newest.items())
    return any(record is not None and record.value.executions < number for record, number in known)


def settle(tx: Tx, seen: Seen, stamp: Stamp) -> int:
    """Makes the database true again, in one transaction; may be repeated. Returns how many sessions had
    something under way."""
    count = 0
    for record in list(_sessions(tx)):
        count += needs_actor(record.value)
        decided = after, notes = restored(record.value)
        written = record
        if notes or after != record.value:
            written = book(tx, record, decided, stamp, planned(tx, record, decided, stamp.ids))
        value = numbered(written.value, seen.executions.get(written.id, 0))
        if value != written.value:
            tx.sessions.update(replace(written, value=value, state=wire_state(value)))
    tx.notifications.leap(_position(stamp.at))
    # With the rest of it: a start that is killed behind this finds an ordinary database.
    tx.next_epoch(seen.epoch)
    tx.set_note(NOTE, SETTLED)
    return count


def _sessions(tx: Tx) -> Iterator[SessionRecord]:
    for workspace in tx.workspaces.list():
        yield from tx.sessions.of_workspace(workspace.id)


def _position(at: str) -> int:
    """Microseconds since 1970: no stream has got so far by counting, nor since an earlier restore."""
    return int(datetime.fromisoformat(at).timestamp() * 1_000_000)

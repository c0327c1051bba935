"""The text of a prompt: what its entries say, in order, with what Kandev adds for the agent alone.

Not here: how that reads (`core.context_block`), handing it over (`effects`).
"""

from typing import Final

from kandev.core.context_block import Receiver, Said, Sender, prompt_text
from kandev.core.effects import Prompt
from kandev.core.records import EntryRecord
from kandev.core.toolbox import mode_of
from kandev.ports.store import Tx

ANSWER: Final = "answer:"
"""Before the name of a question: the id of the entry that answers it."""


def prompt_of(tx: Tx, session_id: str, effect: Prompt) -> str:
    """The same text however often it is asked for, as long as nothing is renamed."""
    rows = [tx.entries.get(e) for e in effect.entries]
    said = [Said(_words(tx, session_id, row), _sender(tx, row)) for row in rows if row is not None]
    return prompt_text(said, _receiver(tx, session_id), introduces=effect.introduces)


def _words(tx: Tx, session_id: str, row: EntryRecord) -> str:
    """An answer that comes after its tool call was given up says to which question."""
    if row.queued_by != "answer":
        return row.content
    pending = row.id.removeprefix(ANSWER)
    asked = tx.messages.find(session_id, "clarification_request", pending)
    return f"The answer to your question {asked.content!r}:\n{row.content}" if asked else row.content


def _receiver(tx: Tx, session_id: str) -> Receiver:
    session = tx.sessions.get(session_id)
    task = tx.tasks.get(session.task_id) if session else None
    if task is None:  # deleted meanwhile: the prompt has nobody to go to
        return Receiver("", session_id, "")
    return Receiver(task.id, session_id, task.title, mode_of(task))


def _sender(tx: Tx, row: EntryRecord) -> Sender | None:
    if row.sender_task_id is None:
        return None
    task = tx.tasks.get(row.sender_task_id)
    return Sender(row.sender_task_id, row.sender_session_id, task.title if task else "")

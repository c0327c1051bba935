"""Lines of a session's transcript, each written and announced in one step.

Not here: what becomes a line (`scribe`), text that grows (`growth`).
"""

from dataclasses import replace
from typing import Any

from kandev.core import payloads
from kandev.core.transcript import Author, Message, MessageType
from kandev.ports.clock import Ids
from kandev.ports.store import Tx


class Lines:
    """Of one session, within one transaction."""

    def __init__(self, tx: Tx, ids: Ids, session_id: str, at: str) -> None:
        self.tx = tx
        self.session_id = session_id
        self._ids, self._at = ids, at

    def made(
        self, author: Author, type: MessageType, content: str, metadata: dict[str, Any], turn: str | None
    ) -> Message:
        """A message that is not written yet."""
        id = self._ids.new("message")
        return Message(id, self.session_id, turn, author, type, content, metadata, 0, self._at)

    def add(
        self,
        author: Author,
        type: MessageType,
        content: str,
        metadata: dict[str, Any],
        turn: str | None,
        *,
        id: str | None = None,
    ) -> Message:
        """The session's next message."""
        message = self.made(author, type, content, metadata, turn)
        return self.store(message if id is None else replace(message, id=id))

    def store(self, message: Message) -> Message:
        """As the session's next message."""
        stored = self.tx.messages.add(message)
        self.notify("session.message.added", {"message": payloads.message(stored)})
        return stored

    def replace(self, message: Message) -> None:
        """The message of this id, whole."""
        self.tx.messages.replace(message)
        payload = {"message_id": message.id, "message": payloads.message(message)}
        self.notify("session.message.updated", payload)

    def append(self, id: str, text: str) -> None:
        """A piece of a text that grows."""
        offset = self.tx.messages.append(id, text)
        self.notify("session.message.updated", {"message_id": id, "offset": offset, "append": text})

    def notify(self, action: str, payload: dict[str, Any]) -> None:
        """On the session's stream."""
        named = {"session_id": self.session_id, **payload}
        self.tx.notifications.add("session", self.session_id, action, named)

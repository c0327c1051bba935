"""Text that grows: chunks of one agent message are one message, until something else is said.

What an open message holds already is not read: a piece costs what it costs alone. Pieces that come in one
commit are written and announced once.
"""

from dataclasses import dataclass, replace
from typing import Final

from kandev.core.transcript import GROWS_TO, Message, Text
from kandev.runtime.lines import Lines

NAME_MAX: Final = 1000
"""Characters of an agent's id for its message. It is read with every piece: a longer one is none."""


@dataclass
class _Open:
    """A message that is being written to, and what this commit adds to it."""

    message: Message
    """Without its text."""
    length: int
    """Of its text with the pieces, in characters."""
    pieces: list[str]
    fresh: bool


class Growth:
    """The open message of a session, within one transaction. `flush` must be called."""

    def __init__(self, lines: Lines, open_id: str | None) -> None:
        self.open_id = open_id
        """The message that may go on growing."""
        self._lines = lines
        self._open: _Open | None = None

    def add(self, content: Text, turn: str | None) -> None:
        """A piece of text."""
        name = content.message_id
        if name is not None and len(name) > NAME_MAX:
            content = replace(content, message_id=None)
        growing = self._continued(content, turn)
        if growing is None:
            growing = self._begin(content, turn)
        elif growing.length and growing.length + len(content.text) > GROWS_TO:
            growing = self._begin(content, turn, continues=growing.message.id)
        growing.pieces.append(content.text)
        growing.length += len(content.text)

    def close(self) -> None:
        """Nothing is appended to the open message any more."""
        self.flush()
        self.open_id = None

    def flush(self) -> None:
        """Write what is left."""
        growing, self._open = self._open, None
        if growing is None or not (growing.pieces or growing.fresh):
            return
        text = "".join(growing.pieces)
        if growing.fresh:
            self._lines.store(replace(growing.message, content=text))
        else:
            self._lines.append(growing.message.id, text)

    def _continued(self, content: Text, turn: str | None) -> _Open | None:
        """The open message if this belongs to it."""
        if self._open is None and self.open_id is not None:
            found = self._lines.tx.messages.outline(self.open_id)
            self._open = _Open(*found, [], fresh=False) if found else None
        if self._open is None:
            return None
        message = self._open.message
        same = message.type == content.kind and message.turn_id == turn
        return self._open if same and message.metadata.get("message_id") == content.message_id else None

    def _begin(self, content: Text, turn: str | None, **metadata: str) -> _Open:
        self.close()
        if content.message_id is not None:
            metadata["message_id"] = content.message_id
        message = self._lines.made("agent", content.kind, "", metadata, turn)
        self._open, self.open_id = _Open(message, 0, [], fresh=True), message.id
        return self._open

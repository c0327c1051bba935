"""Output becomes messages: what the agent says, and Kandev's own lines, written in the session's transaction.

Chunks of one agent message are one message whose content grows, until another kind of update, another message
id of the agent, or the turn's end; pieces that come in one commit are written and announced once. What an
open message holds already is not read: a piece costs what it costs alone.
"""

from dataclasses import dataclass, replace
from typing import Any

from kandev.core import payloads
from kandev.core.effects import Line, PermissionClosed, PermissionOpened, Told
from kandev.core.session import TurnRef
from kandev.core.transcript import (
    GROWS_TO,
    Author,
    Message,
    MessageType,
    Meta,
    Notice,
    Plan,
    Text,
    ToolCall,
    ToolChange,
)
from kandev.core.views import turn_id
from kandev.ports.clock import Ids
from kandev.ports.store import Tx


@dataclass
class _Growing:
    """A message that is being written to, and what this commit adds to it."""

    message: Message
    """Without its text."""
    length: int
    """Of its text with the pieces, in characters."""
    pieces: list[str]
    fresh: bool


class Scribe:
    """Writes one session's transcript within one transaction. `finish` must be called."""

    def __init__(self, tx: Tx, ids: Ids, session_id: str, at: str, open_message: str | None) -> None:
        self._tx, self._ids, self._session, self._at = tx, ids, session_id, at
        self._open_id = open_message
        self._growing: _Growing | None = None
        self.meta: dict[str, Any] = {}

    def told(self, note: Told) -> None:
        """A piece of output."""
        content, turn = note.content, turn_id(note.turn) if note.turn else None
        match content:
            case Text():
                self._text(content, turn)
            case ToolCall():
                self.close()
                self._tool(content, turn)
            case ToolChange():
                self.close()
                self._tool_change(content, turn)
            case Plan(entries):
                self.close()
                self._plan(entries, turn)
            case Notice(text, data):
                self.close()
                self._add("system", "status", text, data or {}, turn)
            case Meta(kind, data):
                self.close()
                self.meta[kind] = data

    def line(self, note: Line) -> None:
        """Kandev's own words."""
        self.close()
        self._add("system", note.type, note.text, note.metadata, turn_id(note.turn) if note.turn else None)

    def permission(self, note: PermissionOpened) -> None:
        """The agent waits for a decision."""
        self.close()
        asked = note.asked
        metadata = {
            "key": asked.request_id,
            "request_id": asked.request_id,
            "options": list(asked.options),
            "tool_call_id": asked.tool_call_id,
            "kind": asked.kind,
            "raw_input": asked.raw_input,
            "status": "pending",
        }
        message = self._add("agent", "permission_request", asked.title, metadata, turn_id(note.turn))
        payload = {"request_id": asked.request_id, "title": asked.title, "options": list(asked.options)}
        self._notify("session.permission_requested", {**payload, "message_id": message.id})

    def permission_closed(self, note: PermissionClosed) -> None:
        """How it was settled."""
        found = self._tx.messages.find(self._session, "permission_request", note.request)
        if found is None or found.metadata.get("status") != "pending":
            return
        kinds = {o.get("option_id"): str(o.get("kind")) for o in found.metadata["options"]}
        rejected = kinds.get(note.option_id, "").startswith("reject")
        status = "rejected" if rejected else note.outcome
        settled = {"status": status, "by": note.by, "option_id": note.option_id}
        self._replace(replace(found, metadata={**found.metadata, **settled}))

    def user(self, message_id: str, content: str, turn: TurnRef, metadata: dict[str, Any]) -> None:
        """A message that was handed to a turn (again, when an earlier attempt was refused)."""
        self.close()
        found = self._tx.messages.get(message_id)
        if found is not None:
            self._replace(replace(found, turn_id=turn_id(turn), metadata=metadata))
            return
        self._add("user", "message", content, metadata, turn_id(turn), id=message_id)

    def delivery(self, message_id: str, word: str) -> None:
        """What became of a message that stands in the transcript."""
        found = self._tx.messages.get(message_id)
        if found is not None:
            self._replace(replace(found, metadata={**found.metadata, "delivery": word}))

    def close(self) -> None:
        """Nothing is appended to the open message any more."""
        self._flush()
        self._open_id = None

    def finish(self) -> str | None:
        """Write what is left; returns the message that may go on growing."""
        self._flush()
        return self._open_id

    # -- growing text -------------------------------------------------------------------------

    def _text(self, content: Text, turn: str | None) -> None:
        if content.block is not None:
            self.close()
            metadata = {"block": content.block, "message_id": content.message_id}
            self._add("agent", content.kind, content.text, metadata, turn)
            return
        if not self._continues(content, turn):
            self.close()
            self._begin(content, turn)
        assert self._growing is not None  # noqa: S101 - both branches set it
        if self._growing.length and self._growing.length + len(content.text) > GROWS_TO:
            full = self._growing.message.id
            self.close()
            self._begin(content, turn, continues=full)
        self._growing.pieces.append(content.text)
        self._growing.length += len(content.text)

    def _continues(self, content: Text, turn: str | None) -> bool:
        if self._growing is None and self._open_id is not None:
            found = self._tx.messages.outline(self._open_id)
            self._growing = _Growing(*found, [], fresh=False) if found else None
        if self._growing is None:
            return False
        message = self._growing.message
        same_id = message.metadata.get("message_id") == content.message_id
        return message.type == content.kind and message.turn_id == turn and same_id

    def _begin(self, content: Text, turn: str | None, **metadata: str) -> None:
        if content.message_id is not None:
            metadata["message_id"] = content.message_id
        message = self._made("agent", content.kind, "", metadata, turn)
        self._growing = _Growing(message, 0, [], fresh=True)
        self._open_id = message.id

    def _flush(self) -> None:
        growing, self._growing = self._growing, None
        if growing is None or not (growing.pieces or growing.fresh):
            return
        text = "".join(growing.pieces)
        if growing.fresh:
            self._store(replace(growing.message, content=text))
            return
        offset = self._tx.messages.append(growing.message.id, text)
        self._notify(
            "session.message.updated", {"message_id": growing.message.id, "offset": offset, "append": text}
        )

    # -- whole messages -----------------------------------------------------------------------

    def _tool(self, call: ToolCall, turn: str | None) -> None:
        metadata = {
            "key": call.tool_call_id,
            "tool_call_id": call.tool_call_id,
            "kind": call.kind,
            "status": call.status,
            **call.details,
        }
        found = self._tx.messages.find(self._session, "tool_call", call.tool_call_id)
        if found is not None and found.turn_id == turn:
            self._replace(replace(found, content=call.title, metadata={**found.metadata, **metadata}))
            return
        self._add("agent", "tool_call", call.title, metadata, turn)

    def _tool_change(self, change: ToolChange, turn: str | None) -> None:
        found = self._tx.messages.find(self._session, "tool_call", change.tool_call_id)
        if found is None or found.turn_id != turn:
            if change.title is None and not change.details:
                return  # a call that was never announced: there is nothing to show of it
            call = ToolCall(
                change.tool_call_id,
                change.title or "",
                change.kind or "other",
                change.status or "pending",
                change.details,
            )
            self._tool(call, turn)
            return
        changed = {"kind": change.kind, "status": change.status}
        metadata = {**found.metadata, **{k: v for k, v in changed.items() if v is not None}, **change.details}
        title = found.content if change.title is None else change.title
        self._replace(replace(found, content=title, metadata=metadata))

    def _plan(self, entries: list[dict[str, Any]], turn: str | None) -> None:
        key = f"plan:{turn}"
        content = "\n".join(f"- {e.get('content', '')}" for e in entries)
        found = self._tx.messages.find(self._session, "plan", key)
        metadata = {"key": key, "entries": entries}
        if found is not None:
            self._replace(replace(found, content=content, metadata=metadata))
            return
        self._add("agent", "plan", content, metadata, turn)

    def _made(
        self, author: Author, type: MessageType, content: str, metadata: dict[str, Any], turn: str | None
    ) -> Message:
        return Message(
            self._ids.new("message"), self._session, turn, author, type, content, metadata, 0, self._at
        )

    def _add(
        self,
        author: Author,
        type: MessageType,
        content: str,
        metadata: dict[str, Any],
        turn: str | None,
        *,
        id: str | None = None,
    ) -> Message:
        message = self._made(author, type, content, metadata, turn)
        return self._store(message if id is None else replace(message, id=id))

    def _store(self, message: Message) -> Message:
        stored = self._tx.messages.add(message)
        self._notify("session.message.added", {"message": payloads.message(stored)})
        return stored

    def _replace(self, message: Message) -> None:
        self._tx.messages.replace(message)
        self._notify(
            "session.message.updated", {"message_id": message.id, "message": payloads.message(message)}
        )

    def _notify(self, action: str, payload: dict[str, Any]) -> None:
        self._tx.notifications.add("session", self._session, action, {"session_id": self._session, **payload})

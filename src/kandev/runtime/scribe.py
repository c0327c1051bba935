"""Output becomes messages: what the agent says, and Kandev's own lines, written in the session's transaction.

Not here: how text grows (`growth`), tool calls (`tool_lines`).
"""

from dataclasses import replace
from typing import Any, Final

from kandev.core.cutting import cut
from kandev.core.effects import (
    Line,
    PermissionClosed,
    PermissionOpened,
    QuestionClosed,
    QuestionOpened,
    Told,
)
from kandev.core.session import TurnRef
from kandev.core.transcript import Meta, Notice, Plan, Text, ToolCall, ToolChange
from kandev.core.views import turn_id
from kandev.ports.clock import Ids
from kandev.ports.store import Tx
from kandev.runtime.growth import Growth
from kandev.runtime.lines import Lines
from kandev.runtime.tool_lines import ToolLines

META_MAX: Final = 256 << 10
"""Characters of what an agent says of itself, each kind: it stands on the session's row and is written with
every commit."""


class Scribe:
    """Writes one session's transcript within one transaction. `finish` must be called."""

    def __init__(self, tx: Tx, ids: Ids, session_id: str, at: str, open_message: str | None) -> None:
        self._tx, self._session = tx, session_id
        self._lines = Lines(tx, ids, session_id, at)
        self._text = Growth(self._lines, open_message)
        self._tools = ToolLines(self._lines)
        self.meta: dict[str, Any] = {}

    def told(self, note: Told) -> None:
        """A piece of output."""
        content, turn = note.content, turn_id(note.turn) if note.turn else None
        if isinstance(content, Text) and content.block is None:
            self._text.add(content, turn)
            return
        self._text.close()
        match content:
            case Text(kind, text, message_id, block):
                self._lines.add("agent", kind, text, {"block": block, "message_id": message_id}, turn)
            case ToolCall():
                self._tools.call(content, turn)
            case ToolChange():
                self._tools.change(content, turn)
            case Plan(entries):
                self._plan(entries, turn)
            case Notice(text, data):
                self._lines.add("system", "status", text, data or {}, turn)
            case Meta(kind, data):
                self.meta[kind] = cut(data, META_MAX)

    def line(self, note: Line) -> None:
        """Kandev's own words."""
        self._text.close()
        turn = turn_id(note.turn) if note.turn else None
        self._lines.add("system", note.type, note.text, note.metadata, turn)

    def permission(self, note: PermissionOpened) -> None:
        """The agent waits for a decision."""
        self._text.close()
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
        message = self._lines.add("agent", "permission_request", asked.title, metadata, turn_id(note.turn))
        payload = {"request_id": asked.request_id, "title": asked.title, "options": list(asked.options)}
        self._lines.notify("session.permission_requested", {**payload, "message_id": message.id})

    def permission_closed(self, note: PermissionClosed) -> None:
        """How it was settled."""
        found = self._tx.messages.find(self._session, "permission_request", note.request)
        if found is None or found.metadata.get("status") != "pending":
            return
        kinds = {o.get("option_id"): str(o.get("kind")) for o in found.metadata["options"]}
        rejected = kinds.get(note.option_id, "").startswith("reject")
        status = "rejected" if rejected else note.outcome
        settled = {"status": status, "by": note.by, "option_id": note.option_id}
        self._lines.replace(replace(found, metadata={**found.metadata, **settled}))

    def question(self, note: QuestionOpened) -> None:
        """The agent asks a person. `payload`: `{question_id, prompt, options, title?, context?}`."""
        self._text.close()
        metadata = {"key": note.question, "pending_id": note.question, **note.payload, "status": "pending"}
        asked = str(note.payload.get("prompt", ""))
        message = self._lines.add("agent", "clarification_request", asked, metadata, turn_id(note.turn))
        payload = {"pending_id": note.question, "message_id": message.id, **note.payload}
        self._lines.notify("session.clarification_requested", payload)

    def question_closed(self, note: QuestionClosed, answer: str | None) -> None:
        """How it was settled."""
        found = self._tx.messages.find(self._session, "clarification_request", note.question)
        if found is None or found.metadata.get("status") != "pending":
            return
        settled = {"status": note.outcome, "by": note.by, "answer": answer}
        self._lines.replace(replace(found, metadata={**found.metadata, **settled}))

    def reworded(self, message_id: str, content: str) -> None:
        """A message that waits (again) says something else."""
        found = self._tx.messages.get(message_id)
        if found is not None:
            self._lines.replace(replace(found, content=content))

    def user(self, message_id: str, content: str, turn: TurnRef, metadata: dict[str, Any]) -> None:
        """A message that was handed to a turn (again, when an earlier attempt was refused)."""
        self._text.close()
        found = self._tx.messages.get(message_id)
        if found is not None:
            self._lines.replace(replace(found, turn_id=turn_id(turn), metadata=metadata))
            return
        self._lines.add("user", "message", content, metadata, turn_id(turn), id=message_id)

    def delivery(self, message_id: str, word: str) -> None:
        """What became of a message that stands in the transcript."""
        found = self._tx.messages.get(message_id)
        if found is not None:
            self._lines.replace(replace(found, metadata={**found.metadata, "delivery": word}))

    def close(self) -> None:
        """Nothing is appended to the open message any more, and all is written."""
        self._tools.settle()
        self._text.close()

    def finish(self) -> str | None:
        """Write what is left; returns the message that may go on growing."""
        self._tools.settle()
        self._text.flush()
        return self._text.open_id

    def _plan(self, entries: list[dict[str, Any]], turn: str | None) -> None:
        key = f"plan:{turn}"
        content = "\n".join(f"- {e.get('content', '')}" for e in entries)
        found = self._tx.messages.find(self._session, "plan", key)
        metadata = {"key": key, "entries": entries}
        if found is not None:
            self._lines.replace(replace(found, content=content, metadata=metadata))
            return
        self._lines.add("agent", "plan", content, metadata, turn)

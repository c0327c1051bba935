"""What a follower knows of a session: its state, its queue, and what to show of each notification.

Not here: the connection (`stream`), how messages look (`transcript`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kandev.cli.naming import TERMINAL
from kandev.cli.output import line_of, paint
from kandev.cli.transcript import Transcript, state_line

IDLE = ("CREATED", "WAITING_FOR_INPUT", *TERMINAL)


@dataclass
class Watch:
    """Follows one session. `lines`: so many of the earlier messages are shown at the beginning."""

    transcript: Transcript
    lines: int
    state: str = ""
    deleted: bool = False
    queue: dict[str, Any] = field(default_factory=dict)
    asked: bool = False
    """A question of the agent is open: what waits, waits for the answer."""
    _begun: bool = False
    _cancelling: bool = False

    @property
    def over(self) -> bool:
        """Nothing more will come."""
        return self.deleted or self.state in TERMINAL

    @property
    def idle(self) -> bool:
        """Nothing is under way, and nothing will start by itself."""
        runs_on = bool(self.queue.get("count")) and self.queue.get("auto_run", True) and not self.asked
        return self.over or (self.state in IDLE and not runs_on)

    def snapshot(self, payload: dict[str, Any]) -> None:
        """The session and its last messages; the first one begins the show, later ones fill gaps."""
        session, messages = payload.get("session") or {}, payload.get("messages") or []
        early = 0 if self._begun else max(0, len(messages) - self.lines)
        for message in messages[:early]:
            self.transcript.skip(message)
        for message in messages[early:]:
            self.transcript.message(message)
        if session.get("state") != self.state:
            self._state(self.state, session.get("state", self.state))
        self.queue = session.get("queue") or self.queue
        self.asked = session.get("waiting_for") == "question"
        self._cancelling = bool(session.get("cancellation_pending"))
        self._begun = True

    def notification(self, action: str, payload: dict[str, Any]) -> None:
        """Shows what it says; unknown ones are left alone."""
        if handle := _HANDLERS.get(action):
            handle(self, payload)

    def added(self, payload: dict[str, Any]) -> None:
        """`session.message.added`, and `.updated` with the whole message."""
        message = payload.get("message") or payload
        if "id" in message:
            self.transcript.message(message)

    def updated(self, payload: dict[str, Any]) -> None:
        """`session.message.updated`: a piece of text, or the whole message."""
        if "append" in payload:
            piece = str(payload["append"])
            self.transcript.grown(str(payload["message_id"]), int(payload.get("offset", 0)), piece)
        else:
            self.added(payload)

    def state_changed(self, payload: dict[str, Any]) -> None:
        """`session.state_changed`."""
        self._state(payload.get("old_state"), payload.get("new_state", self.state))

    def session_updated(self, payload: dict[str, Any]) -> None:
        """`session.updated`: the whole session."""
        session = payload.get("session") or {}
        self.queue = session.get("queue") or self.queue
        self.asked = session.get("waiting_for") == "question"
        if session.get("state") and session["state"] != self.state:
            self._state(self.state, session["state"])

    def queue_changed(self, payload: dict[str, Any]) -> None:
        """`message.queue.status_changed`."""
        before, self.queue = self.queue, payload
        if payload.get("count") and payload.get("count") != before.get("count"):
            parked = payload.get("parked_reason")
            why = f", parked: {line_of(parked)}" if parked else ""
            self.transcript.line(paint(f"· {payload['count']} waiting in the queue{why}", dim=True))

    def cancellation_changed(self, payload: dict[str, Any]) -> None:
        """`session.cancellation_changed`."""
        pending = bool(payload.get("cancellation_pending"))
        if pending and not self._cancelling:
            self.transcript.line(paint("· cancelling…", "yellow"))
        self._cancelling = pending

    def turn_completed(self, payload: dict[str, Any]) -> None:
        """`session.turn.completed`."""
        reason, cause, error = (payload.get(name) for name in ("stop_reason", "cause", "error"))
        words = [line_of(word) for word in (reason, f"({cause})" if cause else None, error) if word]
        self.transcript.line(paint(f"— turn ended: {' '.join(words)}", dim=True))

    def agentctl_error(self, payload: dict[str, Any]) -> None:
        """`session.agentctl_error`."""
        self.transcript.line(paint(f"error: {line_of(payload.get('error', ''))}", "red"))

    def session_deleted(self, _: dict[str, Any]) -> None:
        """`session.deleted`."""
        self.deleted = True
        self.transcript.line(paint("— the session was deleted", "red"))

    def _state(self, old: object, new: str) -> None:
        if new != self.state:
            self.state = new
            self.transcript.line(state_line(old, new))


_HANDLERS: dict[str, Callable[[Watch, dict[str, Any]], None]] = {
    "session.message.added": Watch.added,
    "session.message.updated": Watch.updated,
    "session.state_changed": Watch.state_changed,
    "session.updated": Watch.session_updated,
    "session.cancellation_changed": Watch.cancellation_changed,
    "session.turn.completed": Watch.turn_completed,
    "session.agentctl_error": Watch.agentctl_error,
    "session.deleted": Watch.session_deleted,
    "message.queue.status_changed": Watch.queue_changed,
}

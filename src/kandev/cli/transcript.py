"""A session's transcript as it grows, for a terminal: each piece of text is shown once, as it comes.

Whatever comes twice, late, or in whole after it came in pieces leaves no double: what is known of a message
is how many of its characters were shown. Not here: where the pieces come from (`stream`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kandev.cli.output import COLOURS, clean, line_of, paint, shown_id

LABELS = {
    ("user", "message"): ("you", "blue"),
    ("agent", "message"): ("agent", "green"),
    ("agent", "thought"): ("thinking", "bright_black"),
}
OTHER = ("agent", "green")
GROWING = ("message", "thought")
TOOL_ENDS = {"completed": "green", "failed": "red"}
Piece = dict[str, Any]


def sender(message: Piece) -> str | None:
    """Who said what stands as a user's message, where that was no person."""
    metadata = message.get("metadata") or {}
    by = metadata.get("queued_by", "user")
    if by == "agent":
        id, title = metadata.get("sender_task_id"), line_of(metadata.get("sender_title") or "")
        task = shown_id(id) if id else "another task"
        return f"the agent of {title} ({task})" if title else f"the agent of {task}"
    return str(by) if by in ("workflow", "automation") else None


def background(message: Piece) -> list[str]:
    """Title and context of a question, in lines."""
    told = message.get("metadata") or {}
    return [line for name in ("title", "context") for line in clean(told.get(name) or "").splitlines()]


def settlement(message: Piece) -> str:
    """How a question ended, by whom and with which answer."""
    told = message.get("metadata") or {}
    by = f" by {line_of(told['by'])}" if told.get("by") else ""
    answer = f": {line_of(told['answer'])}" if told.get("answer") else ""
    return f"{line_of(told.get('status'))}{by}{answer}"


@dataclass
class Transcript:
    """`write` takes text with its own newlines. `session_id` is named in what can be typed as an answer."""

    session_id: str
    write: Callable[[str], None]
    _shown: dict[str, int] = field(default_factory=dict)
    _labels: dict[str, tuple[str, str]] = field(default_factory=dict)
    _said: dict[str, str] = field(default_factory=dict)
    _open: str | None = None

    def skip(self, message: Piece) -> None:
        """Counts a message as shown."""
        self._note(message)
        self._shown[message["id"]] = len(str(message.get("content") or ""))
        self._said[message["id"]] = _tool_or_other(message)

    def message(self, message: Piece) -> None:
        """A message as it is now: new, grown or changed."""
        self._note(message)
        if message.get("type") in GROWING:
            self.grown(message["id"], 0, str(message.get("content") or ""))
            return
        line = _tool_or_other(message)
        if line and self._said.get(message["id"]) != line:
            self._said[message["id"]] = line
            self.line(line)
            if waits(message):
                self._how_to_answer(message)

    def grown(self, id: str, offset: int, text: str) -> None:
        """A piece of a message's text; `offset` counts characters."""
        fresh = text[max(0, self._shown.get(id, 0) - offset) :]
        if not fresh:
            return
        self._shown[id] = offset + len(text)
        label, colour = self._labels.get(id, OTHER)
        if self._open != id:
            self.close()
            self.write(paint(f"{label}: ", colour, bold=True))
            self._open = id
        self.write(paint(clean(fresh), dim=True) if label == "thinking" else clean(fresh))

    def line(self, text: str) -> None:
        """A line of its own."""
        self.close()
        self.write(text + "\n")

    def close(self) -> None:
        """Ends the line that still grows."""
        if self._open is not None:
            self.write("\n")
            self._open = None

    def _note(self, message: Piece) -> None:
        key = (str(message.get("author_type")), str(message.get("type")))
        other = sender(message)
        self._labels[message["id"]] = (other, "magenta") if other else LABELS.get(key, (key[0], "yellow"))

    def _how_to_answer(self, message: Piece) -> None:
        asked = message.get("metadata") or {}
        if message.get("type") == "clarification_request":
            for about in background(message):
                self.line(f"    {about}")
            options = asked.get("options") or []
            for number, option in enumerate(options, 1):
                self.line(f"    {paint(str(number), 'yellow')}  {line_of(option.get('label', ''))}")
            way = "--option NUMBER, or --reject" if options else "--reject"
            self.line(paint(f"    Answer: kandev answer {self.session_id} TEXT  (or {way})", dim=True))
            return
        for option in asked.get("options") or []:
            name, id = line_of(option.get("name", "")), line_of(option.get("option_id", ""))
            self.line(f"    {paint(id, 'yellow')}  {name}")
        request = line_of(asked.get("request_id", ""))
        answer = f"kandev permission answer {self.session_id} {request} --option OPTION"
        self.line(paint(f"    Answer: {answer}  (or --allow, --reject)", dim=True))


def waits(message: Piece) -> bool:
    pending = (message.get("metadata") or {}).get("status", "pending") == "pending"
    return message.get("type") in ("permission_request", "clarification_request") and pending


def _tool_or_other(message: Piece) -> str:
    """The line of a message that does not grow; the same line is not shown twice."""
    asked, content = message.get("metadata") or {}, str(message.get("content") or "")
    match message.get("type"):
        case "tool_call":
            status = line_of(asked.get("status", "pending"))
            return (
                f"{paint('tool', 'cyan')}: {line_of(content)} {paint(f'[{status}]', TOOL_ENDS.get(status))}"
            )
        case "permission_request" if waits(message):
            return f"{paint('permission', 'yellow', bold=True)}: {line_of(content)}"
        case "permission_request":
            return f"{paint('permission', 'yellow')}: {line_of(content)}: {line_of(_outcome(asked))}"
        case "plan":
            return f"{paint('plan', 'magenta')}:\n" + "\n".join(
                f"  {step}" for step in clean(content).split("\n")
            )
        case "error":
            return paint(f"error: {clean(content)}", "red")
        case "status":
            return paint(f"· {clean(content)}", "yellow")
        case "clarification_request" if waits(message):
            return f"{paint('question', 'yellow', bold=True)}: {line_of(content)}"
        case "clarification_request":
            return f"{paint('question', 'yellow')}: {line_of(content)}: {settlement(message)}"
    return ""


def _outcome(asked: Piece) -> str:
    """How a permission request ended. Choosing an option that rejects is a rejection."""
    chosen, status = asked.get("option_id"), str(asked.get("status"))
    kinds = [str(o.get("kind")) for o in asked.get("options") or [] if o.get("option_id") == chosen]
    if status == "rejected" or (chosen and any(kind.startswith("reject") for kind in kinds)):
        return "rejected"
    return f"{status} ({chosen})" if chosen else status


def state_line(old: object, new: object) -> str:
    """A change of the session's state."""
    state = line_of(new)
    before = f"{line_of(old)} → " if old else ""
    return paint(f"— {before}", dim=True) + paint(state, COLOURS.get(state))

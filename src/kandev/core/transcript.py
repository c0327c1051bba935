"""What can stand in a session's transcript, and how output becomes messages.

Not here: storing them, and the session's rules (`decide`).
"""

from dataclasses import dataclass, field
from typing import Any, Final, Literal

GROWS_TO: Final = 16 << 20
"""Characters to which a message grows; what the agent says further goes on in the next message. As much as
may wait for one client: of a longer one nobody could follow how it grows. A single piece is never cut; it is
at most as long as an agent's longest line."""

MessageType = Literal[
    "message",
    "thought",
    "tool_call",
    "plan",
    "permission_request",
    "clarification_request",
    "status",
    "error",
]
Author = Literal["user", "agent", "system"]


@dataclass(frozen=True)
class Message:
    """A line of the transcript. `seq` orders it within its session; times are RFC 3339 UTC."""

    id: str
    session_id: str
    turn_id: str | None
    author_type: Author
    type: MessageType
    content: str
    metadata: dict[str, Any]
    seq: int
    created_at: str


@dataclass(frozen=True)
class Text:
    """A piece of an answer or of thinking. `block`: a content block that is not text."""

    kind: Literal["message", "thought"]
    text: str
    message_id: str | None = None
    block: dict[str, Any] | None = None


@dataclass(frozen=True)
class ToolCall:
    """A tool call begins."""

    tool_call_id: str
    title: str = ""
    kind: str = "other"
    status: str = "pending"
    details: dict[str, Any] = field(default_factory=dict)
    """`content`, `locations`, `raw_input`, `raw_output`, as far as given."""


@dataclass(frozen=True)
class ToolChange:
    """What changed of a tool call; None means unchanged."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plan:
    """The whole plan; replaces the earlier plan of the same turn."""

    entries: list[dict[str, Any]]


@dataclass(frozen=True)
class Notice:
    """Something a person should see that the protocol has no word for."""

    text: str
    data: dict[str, Any] | None = None


@dataclass(frozen=True)
class Meta:
    """What an agent says of itself: no line of the transcript, kept on the session."""

    kind: Literal["usage", "mode", "commands"]
    data: Any


@dataclass(frozen=True)
class PermissionAsk:
    """A permission request as the agent put it. `options`: `{option_id, kind, name}`."""

    request_id: str
    title: str
    options: tuple[dict[str, str], ...] = ()
    tool_call_id: str | None = None
    kind: str | None = None
    raw_input: Any = None


Content = Text | ToolCall | ToolChange | Plan | Notice | Meta

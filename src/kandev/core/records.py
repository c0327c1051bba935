"""What the store keeps of sessions beside their value: rows, as plain frozen records.

Not here: the value itself (`session`), the board's rows (`board`). All times are RFC 3339 UTC.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

from kandev.core.session import Session

EntryState = Literal["queued", "claimed", "delivered", "removed", "replaced", "unknown"]
StreamKind = Literal["session", "workspace"]


@dataclass(frozen=True)
class SessionRecord:
    """One conversation of one agent on a task. `version` is for compare-and-set on `value`; `state` is the
    projection of `value`, for queries only."""

    id: str
    task_id: str
    workspace_id: str
    name: str
    agent_profile_id: str
    is_primary: bool
    value: Session
    state: str
    created_at: str
    updated_at: str
    version: int = 0
    waiting_for: str | None = None
    since: str = ""
    """When `state` began."""
    open_message: str | None = None
    """The message that growing text is appended to."""
    error: str | None = None
    agent: str | None = None
    """Name and version that the agent gave."""
    meta: dict[str, Any] = field(default_factory=dict)
    """What the agent last said of `usage`, `mode`, `commands`."""


@dataclass(frozen=True)
class TurnRecord:
    """A turn. `state`: active, ended. Identity: `execution_id`, `prompt_generation`, `own_turn_id`."""

    id: str
    session_id: str
    execution_id: str
    prompt_generation: int
    state: Literal["active", "ended"]
    started_at: str
    own_turn_id: str | None = None
    ended_at: str | None = None
    stop_reason: str | None = None
    cause: str | None = None
    error: str | None = None
    entered: int = 0
    """The task's at the turn's start (`board.Task.entered`)."""


@dataclass(frozen=True)
class EntryRecord:
    """A message on its way, with its fate. `by`: who removed it."""

    id: str
    session_id: str
    task_id: str
    message_id: str
    content: str
    queued_by: str
    place: int
    state: EntryState
    queued_at: str
    at: str
    """When `state` began."""
    sender_task_id: str | None = None
    key: str | None = None
    dispatch_id: str | None = None
    turn_id: str | None = None
    by: str | None = None
    coalesce: str | None = None
    sender_session_id: str | None = None
    first_content: str | None = None
    """What its sender said, where somebody has reworded it."""

    @property
    def as_sent(self) -> str:
        """What its sender said."""
        return self.content if self.first_content is None else self.first_content

    """An automation's: a later entry with the same key replaces this one while it waits."""


@dataclass(frozen=True)
class ExecutionRecord:
    """One live runtime of a session."""

    id: str
    session_id: str
    number: int
    status: str
    started_at: str
    ended_at: str | None = None
    journal_id: str | None = None
    exit_code: int | None = None
    error: str | None = None
    survivors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Notification:
    """Something that changed, for clients. `seq` grows by one within its stream and is durable."""

    stream: StreamKind
    stream_id: str
    seq: int
    action: str
    payload: dict[str, Any]
    timestamp: str

"""Every table and column. The migrations build the same; a test compares the two.

Ids and times (RFC 3339 UTC) are text. What belongs to a thing goes with it (ON DELETE CASCADE). Not
referenced on purpose: profiles, messages, turns and senders by what tells of the past, which outlives them.
"""

from typing import Any

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)

from kandev.core.board import OwedEnter, PendingMove, TaskRepository
from kandev.core.session import Session
from kandev.storage.sql.jsontext import JsonText

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id() -> Column[str]:
    return Column("id", Text, primary_key=True)


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False)


def _maybe(name: str) -> Column[str | None]:
    return Column(name, Text, nullable=True)


def _number(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _count(name: str) -> Column[int]:
    """0 in rows that are older than the column."""
    return Column(name, Integer, nullable=False, server_default=text("0"))


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False)


def _json(name: str, of: Any) -> Column[Any]:
    return Column(name, JsonText(of), nullable=False)


def _maybe_json(name: str, of: Any) -> Column[Any]:
    return Column(name, JsonText(of), nullable=True)


def _of(name: str, target: str) -> Column[str]:
    """What the row belongs to, and goes with."""
    return Column(name, Text, ForeignKey(f"{target}.id", ondelete="CASCADE"), nullable=False)


workspaces = Table("workspaces", metadata, _id(), _text("name"), _text("created_at"), _text("updated_at"))

repositories = Table(
    "repositories",
    metadata,
    _id(),
    _of("workspace_id", "workspaces"),
    _text("name"),
    _text("local_path"),
    _text("default_branch"),
    _text("created_at"),
    _text("updated_at"),
    Index(None, "workspace_id", "created_at", "id"),
)

workflows = Table(
    "workflows",
    metadata,
    _id(),
    _of("workspace_id", "workspaces"),
    _text("name"),
    _text("style"),
    _text("created_at"),
    _text("updated_at"),
    Index(None, "workspace_id", "created_at", "id"),
)

steps = Table(
    "steps",
    metadata,
    _id(),
    _of("workflow_id", "workflows"),
    _text("name"),
    _number("position"),
    _json("events", dict[str, Any]),
    _flag("final"),
    # Not unique: reordering would meet itself half-way.
    Index(None, "workflow_id", "position"),
)

profiles = Table(
    "profiles",
    metadata,
    _id(),
    _text("name"),
    _text("protocol"),
    _json("command", tuple[str, ...]),
    _text("created_at"),
    _text("updated_at"),
    _json("env", dict[str, str]),
    _json("secret_env", tuple[str, ...]),
    _maybe("model"),
    _maybe("mode"),
    _flag("auto_approve"),
    _json("mcp_servers", tuple[dict[str, Any], ...]),
    _maybe("auth_method"),
    _json("withhold", tuple[str, ...]),
    Column("cancel_acknowledge_s", Float, nullable=True),
    _maybe("agent"),
)

tasks = Table(
    "tasks",
    metadata,
    _id(),
    _of("workspace_id", "workspaces"),
    _of("workflow_id", "workflows"),
    # No cascade: a column that holds cards is not deleted under them.
    Column("workflow_step_id", Text, ForeignKey("steps.id"), nullable=False),
    _text("title"),
    _text("description"),
    _text("state"),
    _text("priority"),
    _number("position"),
    _text("created_at"),
    _text("updated_at"),
    # A subtask outlives its parent: its agents may be at work.
    Column("parent_id", Text, ForeignKey("tasks.id", ondelete="SET NULL"), nullable=True),
    _maybe("agent_profile_id"),
    _json("repositories", tuple[TaskRepository, ...]),
    _maybe("external_id"),
    _maybe("archived_at"),
    _maybe("state_before"),
    _maybe("error"),
    _flag("office"),
    _number("version"),
    _count("entered"),
    _count("automatic"),
    _maybe_json("pending_move", PendingMove),
    _maybe_json("owed_enter", OwedEnter),
    Index(None, "created_at", "id"),
    Index(None, "workspace_id", "created_at", "id"),
    Index(None, "workflow_id", "created_at", "id"),
    Index(None, "workflow_step_id", "position"),
    Index(None, "parent_id", "created_at", "id"),
    Index("uq_tasks_workspace_id_external_id", "workspace_id", "external_id", unique=True),
    Index("ix_tasks_owed_enter", "created_at", "id", sqlite_where=text("owed_enter IS NOT NULL")),
)

worktrees = Table(
    "worktrees",
    metadata,
    Column("task_id", Text, ForeignKey("tasks.id", ondelete="CASCADE"), primary_key=True),
    _text("path"),
    _maybe("branch"),
    _maybe("base_commit"),
    _maybe("repository_id"),
)

sessions = Table(
    "sessions",
    metadata,
    _id(),
    _of("task_id", "tasks"),
    _of("workspace_id", "workspaces"),
    _text("name"),
    _text("agent_profile_id"),
    _flag("is_primary"),
    _json("value", Session),
    _text("state"),
    _text("created_at"),
    _text("updated_at"),
    _number("version"),
    _maybe("waiting_for"),
    _text("since"),
    _maybe("open_message"),
    _maybe("error"),
    _maybe("agent"),
    _json("meta", dict[str, Any]),
    # Derived from `value` with every write.
    _flag("needs_actor"),
    Index(None, "task_id", "created_at", "id"),
    Index(None, "workspace_id", "created_at", "id"),
    Index("uq_sessions_primary", "task_id", unique=True, sqlite_where=text("is_primary")),
    Index("ix_sessions_needs_actor", "created_at", "id", sqlite_where=text("needs_actor")),
)

turns = Table(
    "turns",
    metadata,
    _id(),
    _of("session_id", "sessions"),
    _text("execution_id"),
    _number("prompt_generation"),
    _text("state"),
    _text("started_at"),
    _maybe("own_turn_id"),
    _maybe("ended_at"),
    _maybe("stop_reason"),
    _maybe("cause"),
    _maybe("error"),
    _count("entered"),
    Index(None, "session_id", "started_at", "id"),
)

entries = Table(
    "entries",
    metadata,
    _id(),
    _of("session_id", "sessions"),
    _of("task_id", "tasks"),
    _text("message_id"),
    _text("content"),
    _text("queued_by"),
    _number("place"),
    _text("state"),
    _text("queued_at"),
    _text("at"),
    _maybe("sender_task_id"),
    _maybe("key"),
    _maybe("dispatch_id"),
    _maybe("turn_id"),
    _maybe("by"),
    _maybe("coalesce"),
    _maybe("sender_session_id"),
    # What it said before somebody reworded it: an idempotency key stands for that.
    _maybe("first_content"),
    Index(None, "session_id", "state", "place"),
    # Two, because a missing sender is equal to nothing, not even to another missing one.
    Index("uq_entries_key", "task_id", "sender_task_id", "key", unique=True),
    Index("uq_entries_own_key", "task_id", "key", unique=True, sqlite_where=text("sender_task_id IS NULL")),
)

executions = Table(
    "executions",
    metadata,
    _id(),
    _of("session_id", "sessions"),
    _number("number"),
    _text("status"),
    _text("started_at"),
    _maybe("ended_at"),
    _maybe("journal_id"),
    Column("exit_code", Integer, nullable=True),
    _maybe("error"),
    _json("survivors", tuple[str, ...]),
    Index(None, "session_id", "number", "id"),
)

messages = Table(
    "messages",
    metadata,
    _id(),
    _of("session_id", "sessions"),
    _maybe("turn_id"),
    _text("author_type"),
    _text("type"),
    _text("content"),
    _json("metadata", dict[str, Any]),
    _number("seq"),
    _text("created_at"),
    # `metadata["key"]`, to be found by.
    _maybe("key"),
    # Of `content`, in characters: where the first part begins.
    _number("length"),
    Index("uq_messages_session_id_seq", "session_id", "seq", unique=True),
    Index(None, "session_id", "type", "key", "seq"),
)

message_parts = Table(
    "message_parts",
    metadata,
    Column("message_id", Text, ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True),
    # In the message's whole text, and of this part, both in characters. Before the text, because what stands
    # behind a long one is found only through it.
    Column("offset", Integer, primary_key=True),
    _number("length"),
    _text("text"),
)

streams = Table(
    "streams",
    metadata,
    Column("stream", Text, primary_key=True),
    Column("stream_id", Text, primary_key=True),
    # One of the two is `stream_id`: what the stream goes with.
    Column("session_id", Text, ForeignKey("sessions.id", ondelete="CASCADE"), nullable=True),
    Column("workspace_id", Text, ForeignKey("workspaces.id", ondelete="CASCADE"), nullable=True),
    _number("last"),
    # The highest `seq` that is no longer kept.
    _number("pruned"),
    Index(None, "session_id"),
    Index(None, "workspace_id"),
)

notifications = Table(
    "notifications",
    metadata,
    Column("stream", Text, primary_key=True),
    Column("stream_id", Text, primary_key=True),
    Column("seq", Integer, primary_key=True),
    _text("action"),
    _json("payload", dict[str, Any]),
    _text("timestamp"),
    ForeignKeyConstraint(
        ["stream", "stream_id"], ["streams.stream", "streams.stream_id"], ondelete="CASCADE"
    ),
)

owner = Table(
    "owner",
    metadata,
    Column("id", Integer, CheckConstraint("id = 1", name="one_row"), primary_key=True),
    _number("epoch"),
)

notes = Table("notes", metadata, Column("key", Text, primary_key=True), _text("value"))

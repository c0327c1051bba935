"""Payloads of the requests about sessions, messages, queues, permissions, questions, and stops.

Not here: payloads of the board (`gateway_board`), and what the answers look like (`core.payloads`).
"""

from typing import Annotated, Literal

from msgspec import Meta

from kandev.wire.gateway_board import Id, Name, Request

Reason = Annotated[str, Meta(min_length=1, max_length=500)]
Content = Annotated[str, Meta(min_length=1, max_length=4 << 20)]
Label = Annotated[str, Meta(min_length=1, max_length=1000)]
Page = Annotated[int, Meta(ge=1, le=1000)]


class OfTask(Request, frozen=True, kw_only=True):
    """Names a task whose sessions are asked for."""

    task_id: Id


class OfSession(Request, frozen=True, kw_only=True):
    """Names one session."""

    session_id: Id


class SessionLaunch(Request, frozen=True, kw_only=True):
    """`start`: a new session and its agent; `prepare`: session and worktree only; the others need
    `session_id`."""

    task_id: Id
    intent: Literal["start", "start_created", "prepare", "resume"] = "start"
    session_id: Id | None = None
    agent_profile_id: Id | None = None
    prompt: Content | None = None


class SessionDiff(Request, frozen=True, kw_only=True):
    """Without `path` the diff of all files."""

    session_id: Id
    path: Annotated[str, Meta(min_length=1, max_length=4096)] | None = None


class SessionStop(Request, frozen=True, kw_only=True):
    """`force` skips the polite steps of the teardown."""

    session_id: Id
    reason: Reason | None = None
    force: bool = False


class SessionRename(Request, frozen=True, kw_only=True):
    """Another name for a session."""

    session_id: Id
    name: Name


class SessionSubscribe(Request, frozen=True, kw_only=True):
    """`since_seq`: the last sequence number seen; what came after it is replayed instead of a snapshot."""

    session_id: Id
    since_seq: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] | None = None


class MessageAdd(Request, frozen=True, kw_only=True):
    """The same `idempotency_key` with the same content gets the first answer again."""

    task_id: Id
    session_id: Id
    content: Content
    idempotency_key: Name | None = None


class MessageStatus(Request, frozen=True, kw_only=True):
    """Names an entry."""

    entry_id: Id


class MessageList(Request, frozen=True, kw_only=True):
    """`before` and `after` are message ids; without either the list begins with the oldest."""

    session_id: Id
    limit: Page = 100
    before: Id | None = None
    after: Id | None = None


class QueueAdd(Request, frozen=True, kw_only=True):
    """Strictly behind what waits. With a `coalescing_key` it is an automation's, and takes the place of the
    earlier one of that key which waits still."""

    session_id: Id
    content: Content
    idempotency_key: Name | None = None
    coalescing_key: Name | None = None


class QueueUpdate(Request, frozen=True, kw_only=True):
    """Other words for an entry that waits."""

    session_id: Id
    entry_id: Id
    content: Content


class OfEntry(Request, frozen=True, kw_only=True):
    """Names an entry of a session's queue."""

    session_id: Id
    entry_id: Id


class QueueReorder(Request, frozen=True, kw_only=True):
    """Every entry that waits, once, in the order that is wanted."""

    session_id: Id
    entry_ids: Annotated[list[Id], Meta(max_length=100_000)]


class QueueAutoRun(Request, frozen=True, kw_only=True):
    """On releases what is parked; off holds what waits and what comes."""

    session_id: Id
    auto_run: bool


class ClarificationAnswer(Request, frozen=True, kw_only=True):
    """To one question: labels of options that it offers, words of the person's own, or both."""

    question_id: Id
    selected_options: Annotated[list[Label], Meta(max_length=100)] | None = None
    custom_text: Content | None = None


class ClarificationRespond(Request, frozen=True, kw_only=True):
    """`rejected`: nobody answers; then `answers` is empty."""

    pending_id: Id
    answers: Annotated[list[ClarificationAnswer], Meta(max_length=100)]
    rejected: bool = False


class AgentCancel(Request, frozen=True, kw_only=True):
    """The session whose turn is cancelled; `task_id` must be its task."""

    session_id: Id
    task_id: Id | None = None


class TaskStop(Request, frozen=True, kw_only=True):
    """`force` skips the polite steps of the teardown."""

    task_id: Id
    reason: Reason | None = None
    force: bool = False


class PermissionRespond(Request, frozen=True, kw_only=True):
    """Exactly one of `option_id`, `cancelled`, `rejected`."""

    session_id: Id
    request_id: Id
    option_id: Annotated[str, Meta(min_length=1, max_length=1000)] | None = None
    cancelled: bool = False
    rejected: bool = False

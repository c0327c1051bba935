"""The documents that backend and agentctl exchange (requests, answers, journal frames).

Not here: how they travel (`kandev.agentctl.server`, `kandev.execution.client`) and what they mean
for a session (`kandev.core`).

Every request but `GET /health` carries `Authorization: Bearer <token>` and, when it acts, the
owner's epoch in `Kandev-Epoch`. A refusal is always a JSON body `Refusal`; an answer without
such a body is never one.
"""

from typing import Any, Literal

import msgspec

EPOCH_HEADER = "Kandev-Epoch"

STREAM_REPLACED = 4409
"""Close code of a stream when another one of the same instance took its place."""
STREAM_DROPPED = 4404
"""Close code of a stream when the instance and its journal were deleted."""

Protocol = Literal["acp", "codex"]
InstanceState = Literal["starting", "ready", "failed", "ended"]


class Document(msgspec.Struct, omit_defaults=True):
    """A JSON object. Unknown members are ignored, so that old and new programs can talk."""


# -- requests ---------------------------------------------------------------------------------


class CreateInstance(Document, kw_only=True):
    """`POST /api/v1/instances`. `execution_id` is also the instance's id.

    `command` is an argument vector, `cwd` an absolute path that exists, `env` is added to the inherited
    allow-list. `cancel_acknowledge_s` (seconds) overrides agentctl's own setting for this agent.
    """

    execution_id: str
    session_id: str
    task_id: str
    protocol: Protocol
    command: list[str]
    cwd: str
    env: dict[str, str] = {}
    mcp_mode: str | None = None
    mcp_servers: list[dict[str, Any]] = []
    resume_token: str | None = None
    model: str | None = None
    mode: str | None = None
    auto_approve: bool = False
    auth_method: str | None = None
    withhold: list[str] = []
    cancel_acknowledge_s: float | None = None


class Prompt(Document, kw_only=True):
    """`POST …/api/v1/acp/prompt`. `content` is text, or ACP content blocks."""

    dispatch_id: str
    prompt_generation: int
    content: str | list[dict[str, Any]]


class Cancel(Document, kw_only=True):
    """`POST …/api/v1/acp/cancel`: exactly one of the two identities."""

    prompt_generation: int | None = None
    own_turn_id: str | None = None


class AnswerPermission(Document, kw_only=True):
    """`POST …/api/v1/acp/permissions/{request_id}`: one option, or cancelled, or rejected
    (rejected picks the agent's own reject option, `reject_once` before `reject_always`)."""

    option_id: str | None = None
    cancelled: bool = False
    rejected: bool = False


class StopInstance(Document, kw_only=True):
    """`POST …/api/v1/stop`. `force` begins with SIGTERM instead of asking politely."""

    force: bool = False


class Sleep(Document, kw_only=True):
    """`POST …/api/v1/sleep`: end the agent, keep the journal, if nothing goes on. Refused with 409 `awake`
    while something does, and when anything was journalled behind `after_seq`."""

    after_seq: int


class Acknowledge(Document, tag_field="type", tag="ack", kw_only=True):
    """What the backend sends on the stream: everything up to `seq` is committed."""

    seq: int


# -- answers ----------------------------------------------------------------------------------


class Refusal(Document, kw_only=True):
    """The body of every 4xx. `reason` is a word for programs, `message` a sentence for people."""

    reason: Literal[
        "unauthorized",
        "invalid",
        "unknown_instance",
        "unknown_request",
        "old_epoch",
        "old_generation",
        "busy",
        "not_ready",
        "not_recorded",
        "ended",
        "tombstone",
        "launch_failed",
        "already_answered",
        "awake",
    ]
    message: str
    stderr_tail: list[str] = []
    exit_code: int | None = None


class Process(Document, kw_only=True):
    """A process of an execution, as it stood when it was looked at."""

    pid: int
    start_time: int
    command: str


class Instance(Document, kw_only=True):
    """Answer of create (201, once the agent is ready) and of `GET /api/v1/instances[/{id}]`.

    `turn_generation` is the generation that the agent works on; `memory` tells whether a conversation that
    was asked for with `resume_token` was really taken up (None: none was asked for). `survivors` could not be
    ended; one that was deleted stays until they are gone.
    """

    instance_id: str
    session_id: str
    task_id: str
    state: InstanceState
    journal_id: str
    last_seq: int = 0
    acknowledged_seq: int = 0
    generation_mark: int = 0
    turn_generation: int | None = None
    own_turn_id: str | None = None
    pid: int | None = None
    agent_name: str | None = None
    agent_version: str | None = None
    resume_token: str | None = None
    memory: bool | None = None
    open_permissions: list[str] = []
    survivors: list[Process] = []
    error: str | None = None


class Instances(Document, kw_only=True):
    """`GET /api/v1/instances`."""

    instances: list[Instance]


class Health(Document, kw_only=True):
    """`GET /health`. `uptime_s` in seconds."""

    version: str
    instances: int
    uptime_s: float
    pid: int
    incarnation: str


class PromptAccepted(Document, kw_only=True, omit_defaults=False):
    """202: written whole to the agent and journalled."""

    accepted: bool = True
    duplicate: bool = False


class DispatchState(Document, kw_only=True):
    """`GET …/api/v1/acp/dispatch/{dispatch_id}?prompt_generation=N`.

    `accepted` false is for ever: it raises the instance's generation mark to N. None: the write is under way,
    or it failed half-way and nobody can tell (the process is then ended).
    """

    accepted: bool | None


class CancelAnswer(Document, kw_only=True, omit_defaults=False):
    """`not_running`: no such turn, and a prompt of that generation will never be taken."""

    success: bool
    outcome: Literal["acknowledged", "not_running", "not_acknowledged"]
    error: str | None = None


class Stopped(Document, kw_only=True, omit_defaults=False):
    """Answer of stop and of `DELETE /api/v1/instances/{id}`: what was seen after the ladder."""

    last_seq: int
    journal_id: str
    survivors: list[Process] = []
    exit_code: int | None = None


# -- journal frames ---------------------------------------------------------------------------


class Frame(Document, kw_only=True, tag_field="type"):
    """An event of one execution in wire order. `seq` grows by one from 1 within `journal_id`; `at` is
    RFC 3339 UTC. Generation 0 with `own_turn_id` marks a turn that the agent began by itself;
    generation 0 without one is about no turn."""

    seq: int
    journal_id: str
    execution_id: str
    at: str
    prompt_generation: int = 0
    own_turn_id: str | None = None


class SessionStarted(Frame, tag="session_started"):
    """The conversation exists at the agent; `resume_token` takes it up again in a new process."""

    resume_token: str | None = None
    memory: bool | None = None


class PromptTaken(Frame, tag="prompt_accepted"):
    """The prompt of this generation was written whole."""

    dispatch_id: str


class TurnStarted(Frame, tag="turn_started"):
    """The agent began a turn by itself."""


class MessageChunk(Frame, tag="message_chunk"):
    """Text of the agent's answer; `message_id` is the agent's own, if it gives one.
    `block` holds a content block that is not text (image, resource), as the agent sent it."""

    text: str
    message_id: str | None = None
    block: dict[str, Any] | None = None


class ReasoningChunk(Frame, tag="reasoning_chunk"):
    """Text of the agent's thinking."""

    text: str
    message_id: str | None = None


class ToolCall(Frame, tag="tool_call"):
    """A tool call begins. `content`, `locations`, `raw_*` as the agent sent them."""

    tool_call_id: str
    title: str = ""
    kind: str = "other"
    status: str = "pending"
    content: list[dict[str, Any]] = []
    locations: list[dict[str, Any]] = []
    raw_input: Any = None
    raw_output: Any = None


class ToolUpdate(Frame, tag="tool_update"):
    """What changed of a tool call: only members that are not None changed."""

    tool_call_id: str
    title: str | None = None
    kind: str | None = None
    status: str | None = None
    content: list[dict[str, Any]] | None = None
    locations: list[dict[str, Any]] | None = None
    raw_input: Any = None
    raw_output: Any = None


class Plan(Frame, tag="plan"):
    """The agent's whole plan, replacing the earlier one: entries `{content, priority, status}`."""

    entries: list[dict[str, Any]]


class Usage(Frame, tag="usage"):
    """Tokens and cost, as the agent counts them."""

    usage: dict[str, Any]


class Mode(Frame, tag="mode"):
    """The agent's mode of work changed."""

    mode: str


class Commands(Frame, tag="commands"):
    """The agent's slash commands."""

    commands: list[dict[str, Any]]


class Notice(Frame, tag="notice"):
    """Something a person should see that is no part of the protocol (a skipped line, an update of
    unknown kind)."""

    text: str
    data: dict[str, Any] | None = None


class PermissionRequest(Frame, tag="permission_request"):
    """The agent waits for a decision. `options`: `{option_id, kind, name}`."""

    request_id: str
    title: str
    options: list[dict[str, str]]
    tool_call_id: str | None = None
    kind: str | None = None
    raw_input: Any = None


class PermissionResolved(Frame, tag="permission_resolved"):
    """How it was answered, and by whom: `client`, `auto_approve`, `cancel`, `end`."""

    request_id: str
    outcome: str
    by: Literal["client", "auto_approve", "cancel", "end"]
    option_id: str | None = None


class TurnEnded(Frame, tag="turn_ended"):
    """The turn of this identity is over. `stop_reason` is the agent's own word, `error` its
    sentence when the prompt failed; `outlived` names processes that outlive the turn."""

    stop_reason: str
    error: str | None = None
    outlived: list[Process] = []


class ProcessExited(Frame, tag="process_exited"):
    """The agent's process is over; always the last frame of a journal. `error` says why agentctl ended it, or
    that nobody saw its end; None: it ended by itself, or was asked to."""

    exit_code: int | None = None
    error: str | None = None
    stderr_tail: list[str] = []
    survivors: list[Process] = []


AnyFrame = (
    SessionStarted
    | PromptTaken
    | TurnStarted
    | MessageChunk
    | ReasoningChunk
    | ToolCall
    | ToolUpdate
    | Plan
    | Usage
    | Mode
    | Commands
    | Notice
    | PermissionRequest
    | PermissionResolved
    | TurnEnded
    | ProcessExited
)

# Made once: for a union of types msgspec's decode() works out anew, with each call, what they have in common.
_FRAMES = msgspec.json.Decoder(AnyFrame)


def read_frame(line: bytes | str) -> AnyFrame:
    """A line of a journal. Raises msgspec.DecodeError."""
    return _FRAMES.decode(line)

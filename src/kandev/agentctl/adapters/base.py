"""What an adapter is to the instance that owns it, and the other way round.

An adapter speaks one protocol over one process. It keeps no generation, no fence and no deadline of
turn control: those are the instance's. It keeps wire order: each event is awaited before the next
line of the agent is looked at, so a full journal reaches the agent's pipe.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

from kandev.agentctl.failures import StartFailed, WriteFailed
from kandev.wire import agentctl as wire

__all__ = [
    "Adapter",
    "PermissionAsk",
    "PermissionOption",
    "Sink",
    "Spec",
    "StartFailed",
    "Started",
    "ToolServer",
    "TurnEnd",
    "WriteFailed",
]


@dataclass(frozen=True)
class ToolServer:
    """Kandev's own MCP server for this conversation: streamable HTTP, `token` as Authorization: Bearer."""

    url: str
    token: str


@dataclass(frozen=True)
class Spec:
    """How to begin the conversation. `cwd` is absolute; `resume_token` None begins a new one; `withhold`
    names client capabilities that are not offered (`fs`, `terminal`). `mcp_servers` are the profile's."""

    cwd: str
    mcp_servers: list[dict[str, Any]] = field(default_factory=list)
    tools: ToolServer | None = None
    withhold: tuple[str, ...] = ()
    resume_token: str | None = None
    model: str | None = None
    mode: str | None = None


@dataclass(frozen=True)
class Started:
    """The conversation stands. `memory` False: the old one was asked for and could not be had. `proven`
    False: the agent says that it has the old one, and has shown nothing of it. `resumable`: a new process can
    take it up again."""

    resume_token: str | None
    memory: bool | None = None
    resumable: bool = False
    agent_name: str | None = None
    agent_version: str | None = None
    warnings: tuple[str, ...] = ()
    proven: bool = True


@dataclass(frozen=True)
class TurnEnd:
    """The agent's own account of a turn's end. `error` is set when the prompt was answered with one."""

    stop_reason: str
    error: str | None = None


@dataclass(frozen=True)
class PermissionOption:
    """`kind`: allow_once, allow_always, reject_once, reject_always."""

    option_id: str
    kind: str
    name: str


@dataclass(frozen=True)
class PermissionAsk:
    """The agent waits. `request_id` is the adapter's, unique among all processes."""

    request_id: str
    title: str
    options: tuple[PermissionOption, ...]
    tool_call_id: str | None = None
    kind: str | None = None
    raw_input: Any = None


class Sink(Protocol):
    """The instance, as the adapter sees it. Calls come in wire order, one at a time."""

    async def event(self, frame_type: type[wire.Frame], **members: Any) -> None:
        """Something was said: `frame_type` is one of the output kinds of `wire` (chunks, tool calls, plan,
        usage, mode, commands, notice); the instance adds sequence, identity and time. Waits for room."""

    async def permission(self, ask: PermissionAsk) -> None:
        """A decision is wanted. The instance calls `Adapter.answer_permission` sooner or later."""

    async def turn_ended(self, end: TurnEnd) -> None:
        """The prompt that was written last is over. Called exactly once for each accepted prompt,
        unless the process goes first."""

    async def closed(self) -> None:
        """The agent's stdout is at its end: nothing more will be said."""


class Adapter(Protocol):
    """One agent process and its protocol."""

    async def run(self) -> None:
        """Read the agent until its stdout ends, in a task that the caller owns; then `Sink.closed`. Runs
        beside all the other methods, from before `start`."""

    async def start(self, spec: Spec) -> Started:
        """Handshake and conversation. Raises StartFailed. The caller sets the deadline by cancelling."""

    async def prompt(self, content: str | list[dict[str, Any]]) -> None:
        """Returns when the prompt is written whole. Raises WriteFailed. The end comes by the sink."""

    async def cancel(self) -> None:
        """Write one cancel for the running turn and mark its running tool calls cancelled (as events). May be
        called again while no end comes. Raises WriteFailed."""

    async def answer_permission(
        self,
        request_id: str,
        *,
        option_id: str | None = None,
        cancelled: bool = False,
        rejected: bool = False,
    ) -> str:
        """Answer the agent; returns the outcome word (`selected` | `cancelled`). Raises KeyError when
        unknown or answered already, WriteFailed."""

    async def close_input(self) -> None:
        """Close the agent's stdin; pending requests fail."""

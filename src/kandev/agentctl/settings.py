"""agentctl's settings: every time constant in seconds, every size in bytes, with its reason.

Read once from the environment (`KANDEV_AGENTCTL_<NAME>`, upper case) over these defaults; the backend
passes its own on that way.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields


class BadSetting(ValueError):
    """One sentence that names the key and the fix."""


@dataclass(frozen=True)
class Settings:
    """Frozen after the start."""

    launch_s: float = 120.0
    """Handshake and conversation, from the spawn on."""
    write_s: float = 10.0
    """A write to an agent that does not read; then the agent counts as not taking input."""
    cancel_acknowledge_s: float = 5.0
    """From the first cancel written to the agent."""
    cancel_repeat_s: float = 0.5
    """A cancel can be lost: it is written again while no end comes."""
    cancel_settle_s: float = 0.1
    """Before the next prompt, when a cancel was written: agents that handle messages side by side would
    take it for the new turn."""
    late_output_s: float = 1.0
    """Output that comes so soon after a turn's end still belongs to that turn."""
    own_turn_silent_s: float = 5.0
    """A turn that the agent began by itself has no reported end in ACP: it ends after this silence."""
    teardown_protocol_s: float = 0.5
    teardown_stdin_s: float = 1.0
    teardown_term_s: float = 2.0
    teardown_kill_s: float = 1.0
    survivors_again_s: float = 30.0
    """Processes that could not be ended are tried again after so long, until their end is seen."""
    orphan_s: float = 600.0
    """Without a backend for so long, idle agents are ended and agentctl itself; a running turn never is."""
    line_max_bytes: int = 64 * 1024 * 1024
    """Longer lines of an agent are skipped with a notice."""
    window_frames: int = 256
    """Frames sent on a stream and not acknowledged."""
    window_bytes: int = 8 * 1024 * 1024
    """The same in bytes, held by the backend until it is stored; a longer frame goes alone."""
    journal_max_bytes: int = 256 * 1024 * 1024
    """Unacknowledged journal on disk, per instance; at the limit the agent's stdout is no longer read."""
    stderr_tail_lines: int = 40
    mcp_hold_s: float = 120.0
    """A tool call waits so long for a backend that has gone; then the agent hears that it failed."""
    mcp_calls: int = 100
    """Open tool calls, per instance; more are refused."""
    mcp_message_bytes: int = 4 * 1024 * 1024
    """One message of an agent's MCP client."""
    mcp_held_bytes: int = 32 * 1024 * 1024
    """The messages of all open tool calls together, per instance; one alone may be larger."""


def from_environment(environment: Mapping[str, str] = os.environ) -> Settings:
    """Raises BadSetting."""
    given: dict[str, float | int] = {}
    for field in fields(Settings):
        name = f"KANDEV_AGENTCTL_{field.name.upper()}"
        if (text := environment.get(name)) is None:
            continue
        kind = int if field.type in (int, "int") else float
        try:
            value = kind(text)
        except ValueError:
            raise BadSetting(f"{name} must be a number, not {text!r}.") from None
        if not value >= 0:
            raise BadSetting(f"{name} must not be negative.")
        given[field.name] = value
    return Settings(**given)  # type: ignore[arg-type]

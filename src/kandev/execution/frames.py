"""From agentctl's journal frames to the core's reports: one table.

Not here: how frames travel (`following`), what they mean for a session (`core`).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kandev.core import inputs, transcript
from kandev.core.session import TurnRef
from kandev.wire import agentctl as wire

Report = inputs.TurnReport | inputs.Exited | inputs.Remembered | inputs.Said


def to_input(frame: wire.Frame, size: int) -> inputs.Frame:
    """Every kind of frame has a report. `size` is its length in bytes."""
    return inputs.Frame(frame.execution_id, frame.seq, _report(frame), frame.at, size)


def process_line(process: wire.Process) -> str:
    return f"{process.pid} {process.command}"


def _report(frame: wire.Frame) -> Report:
    if (content := _CONTENT.get(type(frame))) is not None:
        said = content(frame)
        if frame.prompt_generation == 0 and frame.own_turn_id is None:
            return inputs.Said(frame.execution_id, said)
        return inputs.Output(_turn(frame), said)
    return _REPORTS[type(frame)](frame)


def _turn(frame: wire.Frame) -> TurnRef:
    return TurnRef(frame.execution_id, frame.prompt_generation, frame.own_turn_id)


def _details(frame: wire.ToolCall | wire.ToolUpdate) -> dict[str, Any]:
    names = ("content", "locations", "raw_input", "raw_output")
    return {name: value for name in names if (value := getattr(frame, name)) not in (None, [])}


def _tool_call(frame: wire.ToolCall) -> transcript.ToolCall:
    return transcript.ToolCall(frame.tool_call_id, frame.title, frame.kind, frame.status, _details(frame))


def _tool_update(frame: wire.ToolUpdate) -> transcript.ToolChange:
    return transcript.ToolChange(frame.tool_call_id, frame.title, frame.kind, frame.status, _details(frame))


def _permission(frame: wire.PermissionRequest) -> inputs.PermissionAsked:
    asked = transcript.PermissionAsk(
        request_id=frame.request_id,
        title=frame.title,
        options=tuple(frame.options),
        tool_call_id=frame.tool_call_id,
        kind=frame.kind,
        raw_input=frame.raw_input,
    )
    return inputs.PermissionAsked(_turn(frame), asked)


def _resolved(frame: wire.PermissionResolved) -> inputs.PermissionDone:
    return inputs.PermissionDone(
        _turn(frame), frame.request_id, outcome=frame.outcome, by=frame.by, option_id=frame.option_id
    )


def _ended(frame: wire.TurnEnded) -> inputs.Ended:
    outlived = tuple(process_line(process) for process in frame.outlived)
    return inputs.Ended(_turn(frame), frame.stop_reason, frame.error, outlived)


def _exited(frame: wire.ProcessExited) -> inputs.Exited:
    exited = inputs.Exited(frame.execution_id, frame.exit_code, tuple(frame.stderr_tail))
    return exited if frame.error is None else replace(exited, why=frame.error.rstrip("."))


_CONTENT: dict[type[wire.Frame], Callable[[Any], transcript.Content]] = {
    wire.MessageChunk: lambda f: transcript.Text("message", f.text, f.message_id, f.block),
    wire.ReasoningChunk: lambda f: transcript.Text("thought", f.text, f.message_id),
    wire.ToolCall: _tool_call,
    wire.ToolUpdate: _tool_update,
    wire.Plan: lambda f: transcript.Plan(f.entries),
    wire.Usage: lambda f: transcript.Meta("usage", f.usage),
    wire.Mode: lambda f: transcript.Meta("mode", f.mode),
    wire.Commands: lambda f: transcript.Meta("commands", f.commands),
    wire.Notice: lambda f: transcript.Notice(f.text, f.data),
}

_REPORTS: dict[type[wire.Frame], Callable[[Any], Report]] = {
    wire.SessionStarted: lambda f: inputs.Remembered(f.execution_id, f.resume_token),
    wire.PromptTaken: lambda f: inputs.Taken(_turn(f)),
    wire.TurnStarted: lambda f: inputs.OwnTurn(_turn(f)),
    wire.PermissionRequest: _permission,
    wire.PermissionResolved: _resolved,
    wire.TurnEnded: _ended,
    wire.ProcessExited: _exited,
}

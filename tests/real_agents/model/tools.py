"""The tools an agent offers to its model, and plausible calls of them.

Agents name and shape their tools differently; a call is made from the schema that the agent sent. Not for
deciding which tool to call: that is `directives`.
"""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

SHELL_NAMES = (
    "shell_command",
    "exec_command",
    "run_shell_command",
    "shell",
    "local_shell",
    "bash",
    "terminal",
    "execute_command",
    "execute_bash",
    "run_terminal_cmd",
    "run_command",
    "run_commands",
    "launch-process",
    "execute",
    "powershell",
)
WRITER_NAMES = ("write_file", "write", "write_to_file", "create", "save-file", "editor", "apply_patch")
COMMAND_ARGUMENTS = ("command", "cmd", "commands", "script", "input")
PATH_ARGUMENTS = ("file_path", "filePath", "path", "absolute_path", "filename")
TEXT_ARGUMENTS = ("content", "contents", "text", "file_content", "file_text")
BACKGROUND_ARGUMENTS = ("is_background", "run_in_background", "background", "is_bg")
PLACEHOLDERS: dict[str, Any] = {"boolean": False, "number": 60, "integer": 60, "array": [], "object": {}}
JUSTIFICATION = "the script wants it"


@dataclass(frozen=True, slots=True)
class Tool:
    """One offered tool. `call_name` is what a call must name when it differs from the listed name."""

    name: str
    schema: Json = field(default_factory=dict)
    kind: str = "function"
    call_name: str = ""
    namespace: str = ""

    @property
    def properties(self) -> Json:
        """The schema's properties by name."""
        found: Json = self.schema.get("properties") or {}
        return found

    @property
    def required(self) -> list[str]:
        """The names of the arguments that a call must have."""
        return list(self.schema.get("required") or [])

    @property
    def called(self) -> str:
        """The name to put into a call."""
        return self.call_name or self.name


@dataclass(frozen=True, slots=True)
class Call:
    """One call of an offered tool."""

    tool: Tool
    arguments: Json

    @property
    def encoded(self) -> str:
        """The arguments as JSON text."""
        return json.dumps(self.arguments)


def type_of(schema: Mapping[str, Any]) -> str:
    """The (first) JSON type that a schema names, or an empty string."""
    named = schema.get("type") or ""
    return str(named[0]) if isinstance(named, list) else str(named)


def filled(schema: Mapping[str, Any], given: Json) -> Json:
    """The given arguments, and something plausible for every other required one."""
    properties = schema.get("properties") or {}
    missing = {name: properties.get(name) or {} for name in schema.get("required") or [] if name not in given}
    return given | {name: _placeholder(wanted) for name, wanted in missing.items()}


def _placeholder(schema: Mapping[str, Any]) -> object:
    if schema.get("enum"):
        choices: list[object] = schema["enum"]
        return choices[0]
    return PLACEHOLDERS.get(type_of(schema), "mock")


def find(tools: Sequence[Tool], names: Sequence[str]) -> Tool | None:
    """The first tool with one of the names (in the order of the names), else one whose name contains one."""
    for name in names:
        for tool in tools:
            if tool.name.lower() == name:
                return tool
    for name in names:
        for tool in tools:
            if name in tool.name.lower() and tool.kind != "custom":
                return tool
    return None


def _first(names: Sequence[str], tool: Tool) -> str:
    return next((name for name in names if name in tool.properties), "")


def shell_call(
    tools: Sequence[Tool], command: str, *, background: bool = False, ask: bool = False
) -> Call | None:
    """A call of the agent's shell tool; with `ask`, escalated where the schema has a word for that."""
    tool = find(tools, SHELL_NAMES)
    if tool is None:
        return None
    if tool.kind == "local_shell":
        return Call(tool, {"command": ["bash", "-lc", command]})
    arguments = _command(tool, command) | _background(tool, background) | _patience(tool)
    if ask:
        arguments |= _escalation(tool)
    return Call(tool, filled(tool.schema, arguments))


def _command(tool: Tool, command: str) -> Json:
    name = _first(COMMAND_ARGUMENTS, tool)
    if name and type_of(tool.properties[name]) == "array":
        return {name: [command] if name == "commands" else ["bash", "-lc", command]}
    return {name or "command": command}


def _background(tool: Tool, background: bool) -> Json:
    flags = [name for name in BACKGROUND_ARGUMENTS if name in tool.properties]
    return {name: background for name in flags if background or name in tool.required}


def _patience(tool: Tool) -> Json:
    patience: Json = {name: 30_000 for name in ("timeout_ms", "yield_time_ms") if name in tool.properties}
    if "ms" in json.dumps(tool.properties.get("timeout", "")).lower():
        patience["timeout"] = 120_000
    return patience


def _escalation(tool: Tool) -> Json:
    if "sandbox_permissions" in tool.properties:
        return {"sandbox_permissions": "require_escalated", "justification": JUSTIFICATION}
    if "with_escalated_permissions" in tool.properties:
        return {"with_escalated_permissions": True, "justification": JUSTIFICATION}
    return {"requires_approval": True} if "requires_approval" in tool.properties else {}


def write_call(tools: Sequence[Tool], path: str, text: str) -> Call | None:
    """A call of the agent's tool that writes a file, or of its shell where it has none."""
    tool = find([tool for tool in tools if _first(PATH_ARGUMENTS, tool)], WRITER_NAMES)
    if tool is None:
        return shell_call(tools, f"printf %s {shlex.quote(text)} > {shlex.quote(path)}")
    wanted = {_first(PATH_ARGUMENTS, tool): path, _first(TEXT_ARGUMENTS, tool): text}
    return Call(tool, filled(tool.schema, {name: value for name, value in wanted.items() if name}))

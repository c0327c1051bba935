"""The parts of the pages that are made from the program. `python -m tests.docs.generated` writes them anew.

Not here: the shapes of payloads (`shapes`).
"""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import ModuleType
from typing import Any

import click

from kandev import config
from kandev.agentctl import settings as agentctl_settings
from kandev.cli.program import kandev
from kandev.core.context_block import choice
from kandev.core.toolbox import MODES, NAMES
from kandev.execution.known_agents import AGENTS
from kandev.gateway.action import Action
from kandev.gateway.catalogue import ACTIONS
from kandev.mcp.tools import TOOLS, Tool
from kandev.runtime import deadlines
from tests.docs import field_page
from tests.docs.pages import PUBLIC, with_part
from tests.docs.shapes import object_shapes, payload_shape
from tests.field_reports import SECTIONS

SHARED_OPTIONS = frozenset({"--url", "--home", "--timeout", "--json"})
BY_ITSELF = ("serve", "db", "doctor")
"""Commands that ask no backend, and explain their own options."""
FOREIGN = frozenset({"agentctl", "mock-agent"})
"""Programs of their own behind the same name: their options are not click's."""
EXACT_RESULTS = {
    "session.explain": "see below",
}
"""Where the page says more exactly what the catalogue's line abbreviates."""
LADDER = {
    "teardown_protocol_s": "Ending an agent: how long a cancel is given before stdin is closed.",
    "teardown_stdin_s": "Ending an agent: how long it is given after stdin was closed, before SIGTERM.",
    "teardown_term_s": "Ending an agent: how long it is given after SIGTERM, before SIGKILL.",
    "teardown_kill_s": "Ending an agent: how long is looked for what SIGKILL left.",
    "stderr_tail_lines": "Lines of an agent's stderr that are kept for error messages.",
}
"""The settings that say nothing beside themselves."""


# -- the command line ---------------------------------------------------------------------------


def command_paths(
    group: click.Group | None = None, before: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """Every command that can be typed, as its words behind `kandev`."""
    group = group or kandev
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from command_paths(found, (*before, name))
        else:
            yield (*before, name)


def command(path: tuple[str, ...]) -> click.Command:
    """The command with these words."""
    found: click.Command | None = kandev
    for word in path:
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None
    return found


def options_of(found: click.Command) -> list[click.Option]:
    """Its options, in order."""
    return [p for p in found.params if isinstance(p, click.Option)]


def commands() -> str:
    """Each command with its arguments and options."""
    return "\n\n".join(_command(path) for path in command_paths() if path[0] not in FOREIGN)


def _command(path: tuple[str, ...]) -> str:
    found = command(path)
    context = click.Context(found)
    words = [p.make_metavar(context) for p in found.params if isinstance(p, click.Argument)]
    usage = " ".join(["kandev", *path, *words])
    own = [
        o
        for o in options_of(found)
        if not SHARED_OPTIONS & set(o.opts) or path[0] in ("serve", "doctor", "db")
    ]
    rows = [_option(o, context) for o in own]
    table = ["", "| Option | Meaning |", "| --- | --- |", *rows] if rows else []
    about = " ".join((found.help or "").split())
    return "\n".join([f"### `{usage}`", "", about, *table])


def _option(option: click.Option, context: click.Context) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts)
    value = "" if option.is_flag else f" `{_cell(option.make_metavar(context))}`"
    shown = isinstance(option.default, int | float | str) and option.show_default and not option.is_flag
    default = f" Default: {option.default:g}." if shown and isinstance(option.default, int | float) else ""
    if shown and isinstance(option.default, str):
        default = f" Default: `{option.default}`."
    return f"| {names}{value} | {_cell(option.help or '')}{default} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# -- the doors ----------------------------------------------------------------------------------


def actions() -> str:
    """A table per noun."""
    nouns: dict[str, list[Action]] = {}
    for action in ACTIONS.values():
        nouns.setdefault(action.name.partition(".")[0], []).append(action)
    return "\n\n".join(_noun(noun, found) for noun, found in nouns.items())


def _noun(noun: str, found: list[Action]) -> str:
    head = [f"### {noun}", "", "| Action | Payload | Result | What it does |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *map(_action, found)])


def _action(action: Action) -> str:
    result = _cell(EXACT_RESULTS.get(action.name, action.result))
    code = f"`{result}`" if result.startswith("{") and result.endswith("}") else result
    payload = f"`{_cell(payload_shape(action.payload))}`"
    return f"| `{action.name}` | {payload} | {code} | {_cell(action.summary)} |"


def objects() -> str:
    """A line per object."""
    rows = [f"| {name} | `{shape}` |" for name, shape in object_shapes().items()]
    return "\n".join(["| Object | Members |", "| --- | --- |", *rows])


# -- settings -----------------------------------------------------------------------------------


def said_beside(module: ModuleType, name: str) -> dict[str, str]:
    """What a class says beside each of its members: the first line of the string behind it."""
    tree = ast.parse(inspect.getsource(module))
    body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name).body
    said: dict[str, str] = {}
    for member, after in zip(body, [*body[1:], ast.Pass()], strict=True):
        if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
            text = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                text = " ".join(str(after.value.value).split())
            said[member.target.id] = text or LADDER.get(member.target.id, "")
    return said


def backend_settings() -> str:
    """The time constants of the backend."""
    said = said_beside(deadlines, "Deadlines")
    defaults = deadlines.Deadlines()
    rows = [_setting(n, getattr(defaults, n), said[n]) for n in config.BACKEND_TIMES]
    rows.append(_setting(config.QUEUE_MAX, defaults.queue_max, said["queue_max"]))
    return _settings(rows)


def agentctl_table() -> str:
    """agentctl's constants."""
    said = said_beside(agentctl_settings, "Settings")
    defaults = agentctl_settings.Settings()
    return _settings([_setting(n, getattr(defaults, n), said[n]) for n in config.PASSED_ON])


def _settings(rows: list[str]) -> str:
    return "\n".join(["| Key | Default | What it is, or what happens then |", "| --- | --- | --- |", *rows])


def _setting(name: str, default: object, said: str) -> str:
    unit = " s" if name.endswith("_s") else " bytes" if name.endswith("_bytes") else ""
    shown = f"{default:g}" if isinstance(default, float) else str(default)
    return f"| `{name}` | {shown}{unit} | {_cell(said)} |"


# -- agents -------------------------------------------------------------------------------------


def known_agents() -> str:
    """The agents that Kandev looks for."""
    rows = [
        f"| `{a.name}` | {a.title} | `{' '.join((a.programs[0], *a.arguments))}` | "
        f"{_install(a.install)} | {_cell(a.login or '')} |"
        for a in AGENTS
    ]
    head = ["| Name | Agent | Started as | How to get it | Then |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *rows])


def _install(text: str) -> str:
    return text if text.endswith(".") else f"`{text}`"


# -- tools --------------------------------------------------------------------------------------


def tools() -> str:
    """Which mode has which."""
    head = ["| Tool | What for | " + " | ".join(MODES) + " | Marks |"]
    head.append("| --- | --- |" + " --- |" * (len(MODES) + 1))
    return "\n".join([*head, *map(_tool, TOOLS.values())])


def _tool(tool: Tool) -> str:
    marks = ("read-only" * tool.read_only, "destructive" * tool.destructive, "idempotent" * tool.idempotent)
    modes = " | ".join("yes" if mode in tool.modes else "" for mode in MODES)
    return f"| `{tool.name}` | {tool.title} | {modes} | {', '.join(filter(None, marks))} |"


def tool_arguments() -> str:
    """Each tool with what it says of itself, takes and answers."""
    return "\n\n".join(map(_arguments, TOOLS.values()))


def _arguments(tool: Tool) -> str:
    schema = tool.input_schema
    rows = [
        f"| `{name}` | {'yes' if name in schema.get('required', ()) else ''} | {_argument(shape)} |"
        for name, shape in schema["properties"].items()
    ]
    table = ["", "| Argument | Required | Meaning |", "| --- | --- | --- |", *rows] if rows else []
    own = " ".join(line for line in tool.description.splitlines() if line not in choice(NAMES["task"]))
    answer = ", ".join(f"`{name}`" for name in tool.output["properties"])
    return "\n".join([f"### `{tool.name}`", "", f"{_cell(own)} Answers {answer}.", *table])


def _argument(shape: Mapping[str, Any]) -> str:
    default = shape.get("default")
    shown = "" if default in (None, "") else f" Default: `{json.dumps(default).strip(chr(34))}`."
    return f"{_cell(str(shape.get('description', '')))}{shown}".strip()


PARTS: Mapping[tuple[str, str], Callable[[], str]] = {
    ("cli.md", "commands"): commands,
    ("websocket-api.md", "actions"): actions,
    ("websocket-api.md", "objects"): objects,
    ("configuration.md", "backend"): backend_settings,
    ("configuration.md", "agentctl"): agentctl_table,
    ("agents.md", "known"): known_agents,
    ("automation-and-mcp.md", "tools"): tools,
    ("automation-and-mcp.md", "arguments"): tool_arguments,
    **{("../field-reports.md", title): partial(field_page.section, title) for title in SECTIONS},
}


def main() -> None:
    """Write every generated part into its page."""
    for (page, part), make in PARTS.items():
        path = PUBLIC / page
        path.write_text(with_part(path.read_text(encoding="utf-8"), part, make()), encoding="utf-8")


if __name__ == "__main__":
    main()

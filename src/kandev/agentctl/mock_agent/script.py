"""From a prompt to its commands: pure text handling. What a command does is in `commands`.

A line is a command when it has exactly the form of the table below; every other line is text that comes back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

_CONTEXT = re.compile(r"<kandev-(context|message)\b[^>]*>.*?</kandev-\1>\n?", re.DOTALL)
_NUMBER = r"(\d+(?:\.\d+)?)"
_COUNT = r"(\d+)"
_TEXT = r"(.*\S)"

COMMANDS: dict[str, str] = {
    "say": _TEXT,
    "think": _TEXT,
    "stream": rf"{_COUNT}\s+{_NUMBER}",
    "sleep": _NUMBER,
    "deaf": _NUMBER,
    "late": _NUMBER,
    "lie": _NUMBER,
    "tool": rf"{_TEXT}\s+{_NUMBER}",
    "spawn": _NUMBER,
    "ask": _TEXT,
    "mcp": r"(\S+)(?:\s+(.*\S))?",
    "exit": _COUNT,
    "crash": "",
    "garbage": _COUNT,
    "flood": _COUNT,
    "silent": "",
    "lose": _COUNT,
    "echo-after": _COUNT,
    "wake": rf"{_NUMBER}\s+{_TEXT}",
    "stubborn": "",
    "fail": rf"(-?\d+)\s+{_TEXT}",
    "update": r"(\{.*\})",
    "login": "",
    "recall": "",
}
"""The first word of a command, and the form of what follows it; the groups are its arguments."""

_FORMS = {name: re.compile(form) for name, form in COMMANDS.items()}


@dataclass(frozen=True)
class Command:
    """One line: `name` is a key of `COMMANDS`, or `echo` for a line that is no command."""

    name: str
    arguments: tuple[str, ...]


def prompt_text(blocks: object) -> str:
    """The text blocks of an ACP prompt, joined, without Kandev's own blocks."""
    if not isinstance(blocks, list):
        return ""
    texts: Iterable[object] = (
        block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"
    )
    return _CONTEXT.sub("", "".join(text for text in texts if isinstance(text, str))).strip()


def parse(text: str) -> list[Command]:
    """The commands of a script, in order; empty lines are none."""
    return [parse_line(line.strip()) for line in text.split("\n") if line.strip()]


def parse_line(line: str) -> Command:
    """One command; `echo` with the whole line when it has the form of none."""
    name, _, rest = line.partition(" ")
    form = _FORMS.get(name)
    match = form.fullmatch(rest.strip()) if form is not None else None
    if match is None or (name == "update" and not _is_json(match[1])):
        return Command("echo", (line,))
    return Command(name, tuple(group or "" for group in match.groups()))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True

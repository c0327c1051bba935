"""The list of tools: names, arguments, what they say of themselves.

Not here: what they do (`actions`), how they are served (`server`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

SUFFIX: Final = "_kandev"
TASK: Final = "task"


@dataclass(frozen=True)
class Tool:
    """`action` is the backend's name for it: `mcp.` and the name without its suffix."""

    name: str
    modes: frozenset[str]
    arguments: type[msgspec.Struct]
    title: str
    description: str
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    output: dict[str, Any] | None = None

    @property
    def action(self) -> str:
        return f"mcp.{self.name.removesuffix(SUFFIX)}"


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """No arguments."""


TOOLS: Final[Mapping[str, Tool]] = {
    tool.name: tool
    for tool in (
        Tool(
            name="list_workspaces_kandev",
            modes=frozenset({TASK}),
            arguments=Nothing,
            title="List workspaces",
            description="Lists Kandev's workspaces, by creation.",
            read_only=True,
            idempotent=True,
        ),
    )
}

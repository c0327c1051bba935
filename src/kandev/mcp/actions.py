"""What each tool does. One dispatcher, for the MCP server and for callers in this process.

Not here: the list (`tools`), the protocol (`server`).
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from kandev.mcp.caller import Caller
from kandev.mcp.tools import TOOLS, Nothing
from kandev.ports.tools import ToolCall
from kandev.usecases.context import Context
from kandev.usecases.workspaces import list_workspaces
from kandev.wire.gateway import BadPayload, read_payload

Handler = Callable[[Context, Caller, Any, ToolCall], Awaitable[dict[str, Any]]]


async def _list_workspaces(ctx: Context, caller: Caller, asked: Nothing, call: ToolCall) -> dict[str, Any]:
    found = await list_workspaces(ctx)
    return {"workspaces": [{"id": one.id, "name": one.name} for one in found]}


HANDLERS: Final[Mapping[str, Handler]] = {"mcp.list_workspaces": _list_workspaces}
_ARGUMENTS: Final = {tool.action: tool.arguments for tool in TOOLS.values()}


async def dispatch_mcp(
    ctx: Context, caller: Caller, action: str, payload: dict[str, Any], call: ToolCall
) -> dict[str, Any]:
    """Raises KandevError, BadPayload."""
    if action not in HANDLERS:
        raise BadPayload(f"There is no action {action!r}.")
    return await HANDLERS[action](ctx, caller, read_payload(payload, _ARGUMENTS[action]), call)

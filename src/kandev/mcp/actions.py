"""The actions of agents (`mcp.…`), and the one dispatcher behind the tools and callers in this process.

No public door reaches them (`gateway.dispatch.refuse_mcp`). Not here: the handlers (`actions_…`), the tools
that agents see (`tools`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from kandev.mcp import actions_asking, actions_looking, actions_talking, actions_working
from kandev.mcp.action import McpAction
from kandev.mcp.arguments import OWN
from kandev.mcp.caller import Caller
from kandev.mcp.failures import UnknownAction
from kandev.mcp.tools import TOOLS
from kandev.ports.tools import ToolCall
from kandev.usecases.context import Context
from kandev.wire.gateway import read_object, read_payload

CHAPTERS: Final = (
    actions_talking.chapter,
    actions_working.chapter,
    actions_looking.chapter,
    actions_asking.chapter,
)
ACTIONS: Final[Mapping[str, McpAction]] = MappingProxyType(
    {action.name: action for chapter in CHAPTERS for action in chapter.actions}
)
OWN_MAY_STAND_IN: Final = ("task_id", "parent_id")


async def call_tool(
    ctx: Context, caller: Caller, name: str, arguments: Mapping[str, Any], call: ToolCall | None = None
) -> dict[str, Any]:
    """What an agent's tool call comes to: the action's answer, where the caller is who the connection says.
    Raises KeyError for a tool that there is not, BadPayload that names the argument, and what the action
    raises."""
    tool = TOOLS[name]
    return await dispatch_mcp(ctx, caller, tool.action, tool.payload(arguments, caller), call)


async def dispatch_mcp(
    ctx: Context,
    caller: Caller,
    action: str,
    payload: Mapping[str, Any] | str | bytes,
    call: ToolCall | None = None,
) -> dict[str, Any]:
    """The answer as plain data. `payload` may be JSON text. Raises Malformed (no JSON object), BadPayload (of
    the wrong shape), UnknownAction, and what the action's use case raises."""
    given = read_object(payload, "The payload") if isinstance(payload, str | bytes) else dict(payload)
    found = ACTIONS.get(action)
    if found is None:
        raise UnknownAction(f"Unknown action {action[:100]!r}: each of the agents' tools has one.")
    asked = read_payload(given, found.payload)
    if own := {name: caller.task_id for name in OWN_MAY_STAND_IN if getattr(asked, name, None) == OWN}:
        asked = msgspec.structs.replace(asked, **own)
    if found.mutates and call is not None:
        call.commit()
    answer: dict[str, Any] = msgspec.to_builtins(await found.handler(ctx, caller, asked, call))
    return answer

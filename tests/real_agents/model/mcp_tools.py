"""Finding an MCP tool among an agent's tools: offered plainly, or hidden behind a search or a script tool.

Not for calling MCP servers: the agent does that.
"""

import json
import re
from collections.abc import Sequence

from .tools import Call, Json, Tool, filled

# The names under which the tests give their MCP servers to an agent, as a script tool's functions see them.
SCRIPT_GROUPS = ("mcp_mockhttp", "mcp_mockstdio", "mcp_kandev", "kandev")
NAME_ARGUMENTS = ("name", "tool_name", "toolName", "tool")
VALUE_ARGUMENTS = ("arguments", "args", "input", "params", "parameters")


def plain_call(tools: Sequence[Tool], name: str, arguments: str) -> Call | None:
    """A call of the offered tool whose name contains `name`; `arguments` is JSON text or empty."""
    tool = next((tool for tool in tools if name.lower() in tool.name.lower()), None)
    return Call(tool, filled(tool.schema, json.loads(arguments or "{}"))) if tool else None


def search_call(tools: Sequence[Tool], name: str) -> Call | None:
    """A call of the tool that searches for tools which the agent does not show at once."""
    tool = next((tool for tool in tools if tool.name.lower().replace("_", "") == "toolsearch"), None)
    return Call(tool, filled(tool.schema, {"query": name})) if tool else None


def found_call(tools: Sequence[Tool], name: str, arguments: str, last_result: str) -> Call | None:
    """A call through `tool_call` of the tool that a search's result named."""
    tool = next((tool for tool in tools if tool.name == "tool_call"), None)
    found = re.search(rf'"name":\s*"([^"]*{re.escape(name)})"', last_result)
    if tool is None or found is None:
        return None
    named: Json = {key: found.group(1) for key in NAME_ARGUMENTS if key in tool.properties}
    values: Json = {key: json.loads(arguments or "{}") for key in VALUE_ARGUMENTS if key in tool.properties}
    return Call(tool, named | values)


def script_call(tools: Sequence[Tool], name: str, arguments: str) -> Call | None:
    """A call of the tool that runs a script in which MCP tools are `tools.<server>.<tool>()`."""
    tool = next((tool for tool in tools if tool.name == "run_typescript"), None)
    if tool is None:
        return None
    code = (
        "async function main() { const failed = [];"
        f" for (const group of {json.dumps(SCRIPT_GROUPS)}) {{"
        f" try {{ return await tools[group][{json.dumps(name)}]({arguments or '{}'}); }}"
        " catch (error) { failed.push(`${group}: ${error}`); } }"
        " return { failed, groups: Object.keys(tools) }; }"
    )
    return Call(tool, {"code": code})

"""Kandev's documents in ACP's shapes: MCP servers, prompts, capabilities.

Source: ACP schema, `McpServer`, `ContentBlock`, `ClientCapabilities`.
"""

import sys
from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import Any

from kandev import __version__
from kandev.agentctl.adapters.base import ToolServer
from kandev.agentctl.origins import EXECUTION_MARK, HOME_MARK, INCARNATION_MARK
from kandev.agentctl.tunnel.bridge import TOKEN_VARIABLE, URL_VARIABLE

PROTOCOL_VERSION = 1
SENTENCE_MAX = 2000
"""Characters of an agent's own words within a sentence of ours."""

LONGEST_WORD = 200
"""Characters of a name, a kind, a mode: what is listed, compared and kept."""
OWN_NAME = "kandev"
"""Of Kandev's own MCP server, in every agent."""
MARKS = (EXECUTION_MARK, HOME_MARK, INCARNATION_MARK)
BRIDGE = (sys.executable, "-P", "-m", "kandev", "agentctl", "mcp-bridge")
"""-P: an agent's working directory may hold a folder of that name."""

Document = dict[str, Any]


def initialize(withhold: Collection[str]) -> Document:
    """The first request's parameters, without the capabilities that are withheld."""
    files = "fs" not in withhold
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "clientCapabilities": {
            "fs": {"readTextFile": files, "writeTextFile": files},
            "terminal": "terminal" not in withhold,
        },
        "clientInfo": {"name": "kandev", "title": "Kandev", "version": __version__},
    }


def part(document: Any, *path: str) -> Document:
    """The object at `path`, empty when there is none: agents leave out what the schema demands."""
    for name in path:
        document = document.get(name) if isinstance(document, dict) else None
    return document if isinstance(document, dict) else {}


def objects(value: Any) -> list[Document]:
    """The objects of a list, whatever it is."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text(value: Any) -> str | None:
    """A string, or None."""
    return value if isinstance(value, str) else None


def clipped(words: str) -> str:
    """As much as belongs into a sentence: it stands on the card, in every list, in every notification."""
    return words if len(words) <= SENTENCE_MAX else f"{words[:SENTENCE_MAX]}… ({len(words)} characters)"


def word(value: Any) -> str | None:
    """A short string, or None: a longer one is cut."""
    return value[:LONGEST_WORD] if isinstance(value, str) else None


def kept_id(value: Any) -> str:
    """An agent's own id, of which any number may have to be kept: a longer one becomes its beginning and a
    digest."""
    given = value if isinstance(value, str) else str(value)
    if len(given) <= LONGEST_WORD:
        return given
    return f"{given[:LONGEST_WORD]}~{blake2b(given.encode(errors='replace'), digest_size=12).hexdigest()}"


def prompt_blocks(content: str | list[Document]) -> list[Document]:
    """Text becomes one block."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def own_server(
    tools: ToolServer, capabilities: Document, environment: Mapping[str, str]
) -> tuple[Document | None, str | None]:
    """Kandev's own server for ACP, or None and why there is none. Over HTTP where the agent says that it
    takes that; else the bridge, a program for stdio, which every agent takes that does not deny it."""
    offered = part(capabilities, "mcpCapabilities")
    if offered.get("http") is True:
        headers = {"Authorization": f"Bearer {tools.token}"}
        return {"type": "http", "name": OWN_NAME, "url": tools.url, "headers": _pairs(headers)}, None
    if offered.get("stdio") is False:
        return None, "The agent cannot use Kandev's tools: it takes MCP servers neither by HTTP nor by stdio."
    # An agent may start its servers with an environment of its own making: the marks are told again.
    marks = {name: environment[name] for name in MARKS if name in environment}
    env = _pairs({**marks, URL_VARIABLE: tools.url, TOKEN_VARIABLE: tools.token})
    command, *args = BRIDGE
    return {"name": OWN_NAME, "command": command, "args": args, "env": env}, None


def mcp_servers(servers: list[Document], capabilities: Document) -> tuple[list[Document], list[str]]:
    """A profile's servers `{name, url, headers}` or `{name, command, args, env}` for ACP, and warnings about
    those left out. Only what an agent denies in so many words is left out: some take HTTP servers without a
    word about it."""
    offered = part(capabilities, "mcpCapabilities")
    taken: list[Document] = []
    warnings: list[str] = []
    for server in servers:
        name = str(server.get("name", "server"))
        if "url" in server:
            kind = "sse" if server.get("type") == "sse" else "http"
            if offered.get(kind) is False:
                warnings.append(f"The agent takes no {kind} servers: its MCP server {name} was left out.")
                continue
            headers = _pairs(server.get("headers"))
            taken.append({"type": kind, "name": name, "url": server["url"], "headers": headers})
        elif "command" in server:
            args, env = list(server.get("args") or []), _pairs(server.get("env"))
            taken.append({"name": name, "command": server["command"], "args": args, "env": env})
        else:
            warnings.append(f"The MCP server {name} has neither a command nor an address: it was left out.")
    return taken, warnings


def _pairs(value: Any) -> list[Document]:
    """`{name: value}` or `[{name, value}]` as the latter."""
    if isinstance(value, dict):
        return [{"name": str(name), "value": str(entry)} for name, entry in value.items()]
    return objects(value)

"""A small MCP client: connects to a session's servers when a tool is first called. Tools only.

Sources: the MCP specification 2025-06-18 (lifecycle, tools, cancellation), and ACP's `mcpServers` of
`session/new`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kandev.agentctl.mock_agent.mcp_transport import (
    Frame,
    HttpTransport,
    McpFailure,
    StdioTransport,
    Transport,
)

__all__ = ["McpFailure", "Toolbox"]

PROTOCOL_VERSION = "2025-06-18"
SUFFIX = "_kandev"
_START_S = 30.0
_CALL_S = 3600.0
_CANCEL_S = 2.0
_PAGES = 100


class McpClient:
    """One server: `connect` first, then `call`. Both raise McpFailure, after their deadline too."""

    def __init__(self, transport: Transport, version: str) -> None:
        self._transport = transport
        self._version = version
        self._next_id = 0
        self.tools: set[str] = set()

    async def connect(self) -> None:
        """Say hello and learn the names of the tools."""
        client = {"name": "kandev-mock-agent", "version": self._version}
        hello = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        result = await self._request("initialize", hello, _START_S)
        self._transport.protocol_version = str(result.get("protocolVersion", PROTOCOL_VERSION))
        await self._transport.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        params: Frame = {}
        for _ in range(_PAGES):
            page = await self._request("tools/list", params, _START_S)
            self.tools |= {str(tool.get("name")) for tool in page.get("tools", [])}
            if not (cursor := page.get("nextCursor")):
                return
            params = {"cursor": cursor}

    async def call(self, tool: str, arguments: object) -> Frame:
        """Call a tool and answer its whole result. A cancelled call is cancelled at the server."""
        return await self._request("tools/call", {"name": tool, "arguments": arguments}, _CALL_S)

    async def close(self) -> None:
        """Let go of the server."""
        await self._transport.close()

    async def _request(self, method: str, params: Frame, deadline_s: float) -> Frame:
        self._next_id += 1
        number = self._next_id
        frame = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        try:
            async with asyncio.timeout(deadline_s):
                answer = await self._transport.exchange(frame)
        except TimeoutError as error:
            raise McpFailure(f"no answer to {method} within {deadline_s:g} s") from error
        except asyncio.CancelledError:
            await self._tell_cancelled(number)
            raise
        except (OSError, ValueError, EOFError) as error:
            raise McpFailure(f"{method} failed: {error}") from error
        if (refusal := answer.get("error")) is not None:
            raise McpFailure(str(refusal.get("message")), int(refusal.get("code", 0)), refusal.get("data"))
        result: Frame = answer.get("result", {})
        return result

    async def _tell_cancelled(self, number: int) -> None:
        params = {"requestId": number, "reason": "the turn was cancelled"}
        frame = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        try:
            async with asyncio.timeout(_CANCEL_S):
                await self._transport.send(frame)
        except (TimeoutError, OSError, McpFailure):
            return


class Toolbox:
    """The tool servers of one session, as `session/new` gave them."""

    def __init__(self, servers: list[dict[str, Any]], cwd: Path, version: str) -> None:
        self._servers = servers
        self._cwd = cwd
        self._version = version
        self._clients: list[McpClient] = []

    async def call(self, tool: str, arguments: object) -> Frame:
        """Call a tool by its name, with or without Kandev's suffix; answers the whole tool result.

        A name that no server lists goes to the first server as it is, so that its own refusal is seen.

        Raises:
            McpFailure: no server was given, it could not be reached, or it answered with an error.
        """
        if not self._clients:
            await self._connect()
        client, name = self._find(tool)
        try:
            return await client.call(name, arguments)
        except McpFailure as failure:
            if failure.code >= 0:  # not the server's own refusal: it is gone, or has forgotten us
                await self.close()
            raise

    async def connect(self) -> None:
        """Connect now. Raises McpFailure."""
        if not self._clients and self._servers:
            await self._connect()

    async def close(self) -> None:
        """Let go of every server; the next call connects anew."""
        clients, self._clients = self._clients, []
        await asyncio.gather(*(client.close() for client in clients))

    def _find(self, tool: str) -> tuple[McpClient, str]:
        for client in self._clients:
            for name in (tool, tool + SUFFIX, tool.removesuffix(SUFFIX)):
                if name in client.tools:
                    return client, name
        return self._clients[0], tool

    async def _connect(self) -> None:
        if not self._servers:
            raise McpFailure("session/new gave no tool server")
        clients = [McpClient(_transport(server, self._cwd), self._version) for server in self._servers]
        try:
            for client in clients:
                await client.connect()
            self._clients = clients
        finally:
            if not self._clients:
                await asyncio.gather(*(client.close() for client in clients))


def _transport(server: dict[str, Any], cwd: Path) -> Transport:
    """ACP's `McpServer`: `{type: "http", url, headers}`, or without a type `{command, args, env}`."""
    kind = server.get("type", "stdio")
    if kind == "http":
        return HttpTransport(str(server.get("url")), _pairs(server.get("headers")))
    if kind == "stdio":
        command = [str(server.get("command")), *(str(word) for word in server.get("args") or [])]
        return StdioTransport(command, _pairs(server.get("env")), cwd)
    raise McpFailure(f"the mock agent takes http and stdio servers, not {kind!r}")


def _pairs(items: object) -> dict[str, str]:
    if not isinstance(items, list):
        return {}
    return {str(item["name"]): str(item["value"]) for item in items if isinstance(item, dict)}

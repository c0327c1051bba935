"""MCP itself, by the official SDK: one request in, its notifications and its response out.

Imported late and in a thread (`server`): it loads pydantic and half a thousand modules. Each request gets a
connection that is born ready, as the SDK's own stateless HTTP server gives it one. Sources: MCP 2025-11-25
and earlier (with a handshake), 2026-07-28 (each request with its own envelope).
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import MessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError

from kandev import __version__
from kandev.mcp.tools import Tool
from kandev.ports.tools import ToolCall

CallTool = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | tuple[str, ...]]]
"""A tool's structured result, or a sentence that says what is wrong."""
INSTRUCTIONS = (
    "Kandev's tools: see and coordinate the tasks and agents of this Kandev. Your own task and session are "
    "known by the connection; no tool takes them as an argument."
)


class Protocol:
    """The server of a list of tools."""

    def __init__(self, tools: list[Tool]) -> None:
        self._names = frozenset(tool.name for tool in tools)
        self._list = types.ListToolsResult(tools=[_listed(tool) for tool in tools])
        self._server: Server[CallTool] = Server(
            "kandev",
            title="Kandev",
            version=__version__,
            instructions=INSTRUCTIONS,
            on_list_tools=self._tools,
            on_call_tool=self._call,
        )

    async def answer(self, call: ToolCall, call_tool: CallTool) -> dict[str, Any]:
        """The response to the call's message."""
        message = call.message
        answer = {"jsonrpc": "2.0", "id": message.get("id")}
        method, params = str(message.get("method")), message.get("params")
        try:
            if params is not None and not isinstance(params, dict):
                raise MCPError(types.INVALID_PARAMS, "The parameters are no object.")
            exchange = Exchange(call, params)
            connection = _connection(call.version, method, params)
            result = await serve_one(
                self._server, exchange, method, params, connection=connection, lifespan_state=call_tool
            )
        except MCPError as error:
            return {**answer, "error": error.error.model_dump(mode="json", exclude_none=True)}
        except ValidationError:
            problem = {"code": types.INVALID_PARAMS, "message": "The parameters do not fit the method."}
            return {**answer, "error": problem}
        return {**answer, "result": result}

    async def _tools(
        self, ctx: ServerRequestContext[CallTool], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return self._list

    async def _call(
        self, ctx: ServerRequestContext[CallTool], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in self._names:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name[:200]!r}.")
        done = await ctx.lifespan_context(params.name, params.arguments or {})
        if isinstance(done, tuple):
            return types.CallToolResult(content=[types.TextContent(text=t) for t in done], is_error=True)
        text = types.TextContent(text=json.dumps(done, ensure_ascii=False))
        return types.CallToolResult(content=[text], structured_content=done)


class Exchange:
    """The SDK's `DispatchContext` for one request: notifications travel with the call, and nothing can be
    asked of the client."""

    transport = TransportContext(kind="streamable-http", can_send_request=False)
    can_send_request = False
    message_metadata: MessageMetadata = None

    def __init__(self, call: ToolCall, params: Mapping[str, Any] | None) -> None:
        self.request_id: types.RequestId | None = call.message.get("id")
        self.cancel_requested = anyio.Event()
        self._call = call
        self._token = progress_token_from_params(params)

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        await self._call.send(message, last=False)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        if self._token is None:
            return
        said = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        params = {name: value for name, value in said.items() if value is not None}
        await self.notify("notifications/progress", params)


def _connection(version: str | None, method: str, params: Mapping[str, Any] | None) -> Connection:
    """Raises MCPError for a version that is not spoken."""
    meta = (params or {}).get("_meta")
    enveloped = isinstance(meta, dict) and types.PROTOCOL_VERSION_META_KEY in meta
    if method == "initialize" or not enveloped:
        if version in HANDSHAKE_PROTOCOL_VERSIONS:
            return Connection.from_envelope(version, None, None)
        if version is None or method == "initialize":
            # Clients that do not name it are older than the header; what they do not know they pass over.
            return Connection.from_envelope(LATEST_HANDSHAKE_VERSION, None, None)
    route = classify_inbound_request({"method": method, "params": params})
    if isinstance(route, InboundLadderRejection):
        raise MCPError(route.code, route.message, route.data)
    return Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)


def _listed(tool: Tool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output,
        annotations=types.ToolAnnotations(
            title=tool.title,
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )

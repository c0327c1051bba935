"""A small MCP server for the tests of the `mcp` line: over HTTP in this process, or by stdio as a program.

    async with serving_http(style="sse") as server:
        …{"type": "http", "name": "kandev", "url": server.url, "headers": server.headers}

Tools: `add_kandev(a, b)`, `plain(text)`, `wait_kandev()` (until it is cancelled), `refuse_kandev()` (a
JSON-RPC error). The second page of the list holds `plain`.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

Json = dict[str, Any]
VERSION = "2025-03-26"


def answer(frame: Json) -> Json | None:
    """The response to a request, or None for a notification and for `wait_kandev`."""
    if "id" not in frame:
        return None
    head: Json = {"jsonrpc": "2.0", "id": frame["id"]}
    method, params = frame.get("method"), frame.get("params", {})
    if method == "initialize":
        about: Json = {"capabilities": {"tools": {}}, "serverInfo": {"name": "test", "version": "1"}}
        return {**head, "result": {"protocolVersion": VERSION, **about}}
    if method == "tools/list":
        names = ["plain"] if params.get("cursor") else ["add_kandev", "wait_kandev", "refuse_kandev"]
        page: Json = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
        return {**head, "result": page if params.get("cursor") else {**page, "nextCursor": "2"}}
    if method != "tools/call" or params["name"] == "refuse_kandev":
        return {**head, "error": {"code": -32601, "message": f"no {method}"}}
    if params["name"] == "wait_kandev":
        return None
    return {**head, "result": _call(params["name"], params["arguments"])}


def _call(name: str, arguments: Any) -> Json:
    if name == "add_kandev":
        total = arguments["a"] + arguments["b"]
        return {"content": [{"type": "text", "text": f"sum\n{total}"}], "structuredContent": {"sum": total}}
    if name == "plain":
        text = f"{arguments['text']} {os.environ.get('MCP_TEST', '')}".strip()
        return {"content": [{"type": "text", "text": text}]}
    return {"content": [{"type": "text", "text": f"[NOT_FOUND] no tool {name}"}], "isError": True}


class HttpServer:
    """A streamable HTTP server that insists on its token, its session id and its protocol version."""

    def __init__(self, style: str, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/mcp?x=1"
        self.headers = [{"name": "Authorization", "value": "Bearer t0ken"}]
        self.received: list[Json] = []
        self.waiting = asyncio.Event()
        self.cancelled = asyncio.Event()
        self._style = style
        self.app = Starlette(routes=[Route("/mcp", self._post, methods=["POST"])])

    async def _post(self, request: Request) -> Response:
        frame = json.loads(await request.body())
        self.received.append(frame)
        if wrong := self._wrong(request, frame):
            return JSONResponse({"error": wrong}, 400)
        if frame.get("method") == "notifications/cancelled":
            self.cancelled.set()
        if "id" not in frame or "method" not in frame:
            return Response(status_code=202)
        headers = {"mcp-session-id": "s-1"} if frame["method"] == "initialize" else {}
        reply = answer(frame)
        if reply is not None and self._style == "json":
            return JSONResponse(reply, headers=headers)
        return StreamingResponse(self._stream(reply), media_type="text/event-stream", headers=headers)

    def _wrong(self, request: Request, frame: Json) -> str | None:
        got = request.headers
        if got.get("authorization") != "Bearer t0ken":
            return "no token"
        if {"application/json", "text/event-stream"} - {part.strip() for part in got["accept"].split(",")}:
            return "does not accept both"
        if frame.get("method") == "initialize":
            return None
        if (got.get("mcp-session-id"), got.get("mcp-protocol-version")) != ("s-1", VERSION):
            return "no session, or the wrong version"
        return None

    async def _stream(self, reply: Json | None) -> AsyncIterator[bytes]:
        ping = {"jsonrpc": "2.0", "id": "p-1", "method": "ping"}
        if reply is None or "protocolVersion" not in reply.get("result", {}):
            yield f": hello\r\nevent: message\r\ndata: {json.dumps(ping)}\r\n\r\n".encode()
        if reply is None:
            self.waiting.set()
            await self.cancelled.wait()
            return
        text = json.dumps(reply, indent=1).replace("\n", "\ndata: ")
        yield f"id: 1\ndata: {text}\n\n".encode()


@asynccontextmanager
async def serving_http(style: str) -> AsyncIterator[HttpServer]:
    """Serve on a free loopback port; `style` is how replies come: `json` or `sse`."""
    listener = socket.create_server(("127.0.0.1", 0))
    ours = HttpServer(style, listener.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(ours.app, log_config=None, lifespan="off"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield ours
    finally:
        ours.cancelled.set()
        server.should_exit = True
        await asyncio.wait_for(serving, 10)
        listener.close()


def serve_stdio() -> None:
    """Answer one frame per line until stdin closes; what arrives goes to the file that argument 1 names."""
    _write({"jsonrpc": "2.0", "id": "p-1", "method": "ping"})
    with Path(sys.argv[1]).open("a", encoding="utf-8", buffering=1) as log:
        for line in sys.stdin:
            log.write(line)
            if (reply := answer(json.loads(line))) is not None:
                _write(reply)


def _write(frame: Json) -> None:
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    serve_stdio()

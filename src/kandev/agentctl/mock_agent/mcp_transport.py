"""How MCP frames travel: streamable HTTP (MCP 2025-06-18, one POST per frame) and stdio. Not what they mean.

HTTP is for loopback: plain `http://`, one connection per request, replies as JSON or as an event stream.
"""

from __future__ import annotations

import asyncio
import json
import os
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

Frame = dict[str, Any]
_LINE_LIMIT = 1 << 30
_CLOSE_S = 2.0


class McpFailure(Exception):
    """The server could not be asked, or answered with an error; `code` is JSON-RPC's, or 0."""

    def __init__(self, message: str, code: int = 0, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data

    def payload(self) -> Frame:
        """As the `error` member of a JSON-RPC response."""
        body: Frame = {"code": self.code, "message": self.message}
        if self.data is not None:
            body["data"] = self.data
        return body


class Transport(Protocol):
    """Carries frames to one server."""

    protocol_version: str | None

    async def exchange(self, frame: Frame) -> Frame:
        """Send a request and answer the response frame with its id."""

    async def send(self, frame: Frame) -> None:
        """Send a frame that has no response."""

    async def close(self) -> None:
        """Let go of the server."""


def reply_to(frame: Frame) -> Frame | None:
    """What a request of the server gets: a ping its pong, else "method not found". None for no request."""
    if "id" not in frame or "method" not in frame:
        return None
    if frame["method"] == "ping":
        return {"jsonrpc": "2.0", "id": frame["id"], "result": {}}
    error = {"code": -32601, "message": f"the mock agent has no method {frame['method']!r}"}
    return {"jsonrpc": "2.0", "id": frame["id"], "error": error}


class HttpTransport:
    """Streamable HTTP: remembers the session id that the server gave."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or parts.hostname is None:
            raise McpFailure(f"the mock agent takes http:// addresses only, not {url!r}")
        self._host, self._port = parts.hostname, parts.port or 80
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._netloc = parts.netloc
        self._headers = dict(headers)
        self._session_id: str | None = None
        self.protocol_version: str | None = None

    async def exchange(self, frame: Frame) -> Frame:
        """Send a request and answer its response.

        Raises:
            McpFailure: the server refused it, or its answer ended without the response.
        """
        async with aclosing(self._post(frame)) as answers:
            async for answer in answers:
                if answer.get("id") == frame["id"] and "method" not in answer:
                    return answer
                if (reply := reply_to(answer)) is not None:
                    await self.send(reply)
        raise McpFailure("the server's answer ended without a response")

    async def send(self, frame: Frame) -> None:
        """Send a notification or a response."""
        async for _ in self._post(frame):
            pass

    async def close(self) -> None:
        """Nothing is open between requests."""

    async def _post(self, frame: Frame) -> AsyncGenerator[Frame, None]:
        reader, writer = await asyncio.open_connection(self._host, self._port, limit=_LINE_LIMIT)
        try:
            writer.write(self._request(json.dumps(frame).encode()))
            await writer.drain()
            status, headers = await _head(reader)
            self._session_id = headers.get("mcp-session-id", self._session_id)
            if status >= 400:
                text = b"".join([part async for part in _body(reader, headers)]).decode(errors="replace")
                raise McpFailure(f"the server answered HTTP {status}: {text[:500]}", status)
            if headers.get("content-type", "").startswith("text/event-stream"):
                async for event in _events(_body(reader, headers)):
                    yield event
            elif body := b"".join([part async for part in _body(reader, headers)]).strip():
                yield json.loads(body)
        finally:
            writer.close()

    def _request(self, body: bytes) -> bytes:
        fields = {
            "Host": self._netloc.rpartition("@")[2],
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "Accept": "application/json, text/event-stream",
            "Connection": "close",
            **self._headers,
        }
        if self._session_id is not None:
            fields["Mcp-Session-Id"] = self._session_id
        if self.protocol_version is not None:
            fields["MCP-Protocol-Version"] = self.protocol_version
        lines = [f"POST {self._target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
        return "\r\n".join([*lines, "", ""]).encode() + body


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    status_line = (await reader.readline()).decode(errors="replace").split(None, 2)
    if len(status_line) < 2 or not status_line[1].isdecimal():
        raise McpFailure("the server's answer is not HTTP")
    headers: dict[str, str] = {}
    while line := (await reader.readline()).decode(errors="replace").strip():
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    return int(status_line[1]), headers


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncIterator[bytes]:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        while size := int((await reader.readline()).split(b";")[0] or b"0", 16):
            yield await reader.readexactly(size)
            await reader.readline()
    elif "content-length" in headers:
        yield await reader.readexactly(int(headers["content-length"]))
    else:
        while part := await reader.read(1 << 16):
            yield part


async def _events(parts: AsyncIterator[bytes]) -> AsyncIterator[Frame]:
    """The JSON of each server-sent event that has data; comments and other fields are skipped."""
    rest, data = b"", b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in (line.rstrip(b"\r") for line in lines):
            if line.startswith(b"data:"):
                data += line[5:].removeprefix(b" ") + b"\n"
            elif not line and data.strip():
                yield json.loads(data)
                data = b""


class StdioTransport:
    """A server that is a child process, one frame per line."""

    def __init__(self, command: list[str], env: Mapping[str, str], cwd: Path) -> None:
        self._command = command
        self._env = dict(env)
        self._cwd = cwd
        self._process: Process | None = None
        self.protocol_version: str | None = None

    async def exchange(self, frame: Frame) -> Frame:
        """Send a request and read until its response.

        Raises:
            McpFailure: the server has ended.
        """
        await self.send(frame)
        _, stdout = await self._pipes()
        while line := await stdout.readline():
            answer = json.loads(line)
            if answer.get("id") == frame["id"] and "method" not in answer:
                return dict(answer)
            if (reply := reply_to(answer)) is not None:
                await self.send(reply)
        raise McpFailure(f"the server {self._command[0]!r} has ended")

    async def send(self, frame: Frame) -> None:
        """Send one frame; the server is started by the first."""
        stdin, _ = await self._pipes()
        stdin.write(json.dumps(frame).encode() + b"\n")
        await stdin.drain()

    async def close(self) -> None:
        """Close the server's stdin, and kill it when that does not end it soon."""
        process = self._process
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await process.wait()
        except TimeoutError:
            process.kill()

    async def _pipes(self) -> tuple[asyncio.StreamWriter, asyncio.StreamReader]:
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=PIPE,
                stdout=PIPE,
                env={**os.environ, **self._env},
                cwd=self._cwd,
                limit=_LINE_LIMIT,
            )
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise McpFailure(f"the server {self._command[0]!r} has no pipes")
        return stdin, stdout

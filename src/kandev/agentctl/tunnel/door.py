"""The MCP server of an instance over HTTP: streamable HTTP without sessions, one POST per message.

Answers as an event stream where the client takes one, else as one JSON document. There is no stream of the
server's own (GET): everything it says belongs to a call. `Mcp-Session-Id` is handed out for one purpose: two
clients of one agent may use the same request ids, and a cancelled one must be told apart; nothing is kept
under it. Sources: MCP 2025-06-18, "Transports" and "Cancellation". Not here: what is held and for how long
(`calls`).
"""

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kandev.agentctl.guarding import LOOPBACK, Guard, answer
from kandev.agentctl.refusals import Refused, invalid
from kandev.agentctl.tunnel.calls import Call, Message, Tunnel

log = logging.getLogger(__name__)

SESSION_HEADER = "mcp-session-id"
VERSION_HEADER = "mcp-protocol-version"
LONGEST_HEADER = 200
KEEP_ALIVE_S = 15.0
"""A comment so often in an event stream that has nothing to say: clients take silence for a dead server."""
PARSE_ERROR = -32700
INVALID_REQUEST = -32600


class Wrong(Exception):
    """What was sent is no MCP message that can be taken."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.response = answer(
            {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}, status
        )


class Cancelled(msgspec.Struct):
    """The parameters of `notifications/cancelled`."""

    requestId: msgspec.Raw = msgspec.Raw(b"")  # noqa: N815 - MCP's name; immutable


class McpDoor:
    """An ASGI application for one path. `find` raises Refused for an unknown instance."""

    def __init__(self, guard: Guard, find: Callable[[str], Tunnel]) -> None:
        self._guard = guard
        self._find = find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            self._guard.check_host(request)
            _check_origin(request)
            tunnel = self._find(request.path_params["id"])
            _check_token(request, tunnel)
            respond = await self._take(request, tunnel)
        except Refused as refused:
            respond = answer(refused.refusal, refused.status)
        except Wrong as wrong:
            respond = wrong.response
        except ClientDisconnect:
            return
        except Exception:  # Around a request.
            log.exception("a message to an MCP server failed")
            respond = answer({"message": "agentctl made a mistake; its log has it."}, 500)
        await respond(scope, receive, send)

    async def _take(
        self, request: Request, tunnel: Tunnel
    ) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
        client = (request.headers.get(SESSION_HEADER) or "")[:LONGEST_HEADER] or None
        if request.method == "DELETE":
            if client is not None:
                tunnel.client_gone(client)
            return Response(status_code=204)
        if request.method != "POST":
            return Response(status_code=405, headers={"Allow": "POST, DELETE"})
        body = await _whole(request, tunnel.message_max_bytes)
        message = _read(body)
        if message.method is None:  # an answer to a question that nobody asked
            return Response(status_code=202)
        if not bytes(message.id):
            _hear(message, tunnel, client)
            return Response(status_code=202)
        version = (request.headers.get(VERSION_HEADER) or "")[:LONGEST_HEADER] or None
        call = tunnel.open(message, body, client, version)
        return Answering(call, tunnel, sse=_takes_events(request))


class Answering:
    """Carries a call's answer to the agent, and notices when the agent goes."""

    def __init__(self, call: Call, tunnel: Tunnel, *, sse: bool) -> None:
        self._call = call
        self._tunnel = tunnel
        self._sse = sse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answered = False
        gone = asyncio.ensure_future(_gone(receive))
        try:
            answered = await (self._events(send, gone) if self._sse else self._document(send, gone))
        finally:
            gone.cancel()
            self._tunnel.finished(self._call, answered=answered)

    async def _document(self, send: Send, gone: asyncio.Future[None]) -> bool:
        message, last = await self._next(gone, None)
        while message is not None and not last:
            message, last = await self._next(gone, None)
        await self._start(send, "application/json", 202 if message is None else 200)
        await send({"type": "http.response.body", "body": message or b"", "more_body": True})
        answered = message is not None and await _still_there(gone)
        await send({"type": "http.response.body", "body": b""})
        return answered

    async def _events(self, send: Send, gone: asyncio.Future[None]) -> bool:
        await self._start(send, "text/event-stream", 200)
        last = answered = False
        while not last:
            try:
                message, last = await self._next(gone, KEEP_ALIVE_S)
            except TimeoutError:
                chunk = b": still at work\n\n"
            else:
                chunk = b"" if message is None else b"event: message\ndata: " + message + b"\n\n"
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            answered = last and bool(chunk) and await _still_there(gone)
        await send({"type": "http.response.body", "body": b""})
        return answered

    async def _next(self, gone: asyncio.Future[None], seconds: float | None) -> tuple[bytes | None, bool]:
        """Nothing, and the last, when the agent has gone. Raises TimeoutError."""
        coming = asyncio.ensure_future(self._call.next())
        first: set[asyncio.Future[Any]] = {coming, gone}
        try:
            await asyncio.wait(first, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return None, True
            if not coming.done():
                raise TimeoutError
            return coming.result()
        finally:
            coming.cancel()

    async def _start(self, send: Send, kind: str, status: int) -> None:
        headers = [(b"content-type", kind.encode()), (b"cache-control", b"no-store")]
        if self._call.method == "initialize":
            client = self._call.client or secrets.token_urlsafe(16)
            headers.append((SESSION_HEADER.encode(), client.encode("latin-1")))
        await send({"type": "http.response.start", "status": status, "headers": headers})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _still_there(gone: asyncio.Future[None]) -> bool:
    """What the agent's end of the connection did until now is heard first."""
    await asyncio.sleep(0)
    return not gone.done()


def _check_token(request: Request, tunnel: Tunnel) -> None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not hmac.compare_digest(token.encode(), tunnel.token.encode()):
        raise Refused(401, "unauthorized", "This needs the token of this execution's own MCP server.")


def _check_origin(request: Request) -> None:
    """A page in a browser says where it is from; an agent's client has no reason to."""
    origin = request.headers.get("origin")
    if origin is None:
        return
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        host = ""
    if host not in LOOPBACK and f"[{host}]" not in LOOPBACK:
        raise invalid(f"The MCP server does not answer pages of {origin!r}.", 403)


def _takes_events(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("accept", "")


async def _whole(request: Request, most: int) -> bytes:
    """Raises Wrong."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            sentence = f"A message of a tool's client has at most {most} bytes; send less at a time."
            raise Wrong(413, INVALID_REQUEST, sentence)
    return bytes(content)


def _read(body: bytes) -> Message:
    """Raises Wrong."""
    if body.lstrip()[:1] == b"[":
        raise Wrong(400, INVALID_REQUEST, "A batch of messages is not taken; send each by itself.")
    try:
        message = msgspec.json.decode(body.decode(), type=Message)
    except msgspec.ValidationError as error:
        raise Wrong(400, INVALID_REQUEST, f"The message does not fit JSON-RPC: {error}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Wrong(400, PARSE_ERROR, "The message is not JSON.") from None
    if message.method is not None and bytes(message.id)[:1] not in b'"-0123456789':
        raise Wrong(400, INVALID_REQUEST, "A request's id is a string or a number.")
    return message


def _hear(message: Message, tunnel: Tunnel, client: str | None) -> None:
    """A notification. Only one that ends a call is for us; servers may ignore all of them."""
    if message.method != "notifications/cancelled" or not bytes(message.params):
        return
    try:
        cancelled = msgspec.json.decode(message.params, type=Cancelled)
    except msgspec.DecodeError:
        return
    tunnel.cancel(client, bytes(cancelled.requestId))

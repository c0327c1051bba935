"""The HTTP door: one path per action, and what browsers, probes and scrapers ask for.

Not here: who may come in (`guard`), the WebSocket (`websocket`).
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from kandev.gateway import openapi, pages
from kandev.gateway.accepted import Accepted
from kandev.gateway.dispatch import Requests, find_action, guarded, refuse_mcp
from kandev.gateway.errors import STATUS, BadRequest
from kandev.gateway.guard import COOKIE, GuardSettings, is_token, login_cookie
from kandev.gateway.metrics import CONTENT_TYPE, Metrics
from kandev.gateway.pages import About
from kandev.wire.gateway import ErrorObject, read_object

LARGEST_BODY: Final = 8 << 20
"""Bytes. A larger one is refused by what its head says, before anything of it is read."""
LARGEST_LOGIN: Final = 4 << 10
BODY_S: Final = 30.0
"""Seconds for a body to arrive."""

Endpoint = Callable[[Request], Awaitable[Response]]


class Http:
    """The routes of one application."""

    def __init__(
        self, requests: Requests, accepted: Accepted, metrics: Metrics, about: About, guard: GuardSettings
    ) -> None:
        self._requests, self._accepted, self._metrics = requests, accepted, metrics
        self._about, self._guard = about, guard
        self._openapi = msgspec.json.encode(openapi.document(about.version))

    def routes(self) -> list[Route]:
        """All of them."""
        return [
            Route("/api/v1/actions/{action:path}", self._whole(self._action), methods=["POST"]),
            Route("/health", self._health, methods=["GET"]),
            Route("/metrics", self._whole(self._text), methods=["GET"]),
            Route("/openapi.json", self._document, methods=["GET"]),
            Route("/login", self._login_page, methods=["GET"]),
            Route("/login", self._whole(self._login), methods=["POST"]),
            Route("/", self._whole(self._front), methods=["GET"]),
        ]

    def _whole(self, endpoint: Endpoint) -> Endpoint:
        """Everything that fails becomes an error object, in the same way as an action that fails."""

        async def answer(request: Request) -> Response:
            path = request.url.path
            found = await guarded(path, lambda: endpoint(request))
            return _json(found) if isinstance(found, ErrorObject) else found

        return answer

    async def _action(self, request: Request) -> Response:
        action = request.path_params["action"]
        refuse_mcp(action)
        mutates = find_action(action).mutates
        kind = request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise BadRequest("Send the payload with Content-Type: application/json.")
        payload = read_object(await _body(request, LARGEST_BODY) or b"{}", "The body")
        work = self._accepted.start(self._requests.answer(action, payload, "http"), f"{action} over HTTP")
        answer = await self._accepted.answer(work, _gone(request))
        if answer is None and not mutates:
            work.cancel()
        return _json(answer or {})

    async def _health(self, request: Request) -> Response:
        store, version = self._requests.ctx.store, self._about.version
        if (trouble := store.damage) is not None:
            found = {"status": "damaged", "version": version, "error": trouble}
        elif (trouble := store.hindrance) is not None:
            found = {"status": "hindered", "version": version, "error": trouble}
        else:
            return _json({"status": "ok", "version": version})
        return Response(msgspec.json.encode(found), 503, media_type="application/json")

    async def _text(self, request: Request) -> Response:
        return Response(await self._metrics.text(self._requests.ctx), headers={"Content-Type": CONTENT_TYPE})

    async def _document(self, request: Request) -> Response:
        return Response(self._openapi, media_type="application/json")

    async def _front(self, request: Request) -> Response:
        found = await self._requests.ctx.store.read(pages.counts)
        return HTMLResponse(pages.front(self._about, found), headers=pages.HEADERS)

    async def _login_page(self, request: Request) -> Response:
        return HTMLResponse(pages.login(), headers=pages.HEADERS)

    async def _login(self, request: Request) -> Response:
        form = parse_qs((await _body(request, LARGEST_LOGIN)).decode("utf-8", errors="replace"))
        token = form.get("token", [""])[0].strip()
        if not is_token(self._guard, token):
            page = pages.login("This is not the access token.")
            return HTMLResponse(page, STATUS["UNAUTHORIZED"], headers=pages.HEADERS)
        response = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, login_cookie(token), httponly=True, samesite="strict", secure=secure, path="/"
        )
        return response


async def unrouted(request: Request, error: Exception) -> Response:
    """No such path, or not with this method: an error object as well."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = error.headers if isinstance(error, HTTPException) else None
    path = request.url.path[:200]
    if status == STATUS["NOT_FOUND"]:
        found = ErrorObject(code="NOT_FOUND", message=f"There is nothing at {path}.")
    else:
        found = ErrorObject(code="BAD_REQUEST", message=f"{request.method} does not go with {path}.")
    return Response(msgspec.json.encode(found), status, headers, "application/json")


async def _body(request: Request, largest: int) -> bytes:
    """Raises BadRequest when it is too large, too slow, or cut off."""
    body = bytearray()
    _check_length(request, largest)
    try:
        async with asyncio.timeout(BODY_S):
            async for piece in request.stream():
                body += piece
                if len(body) > largest:
                    raise _too_large(largest)
    except TimeoutError:
        raise BadRequest(f"The body did not arrive within {BODY_S:.0f} seconds.") from None
    except ClientDisconnect:
        raise BadRequest("The body was cut off.") from None
    return bytes(body)


def _check_length(request: Request, largest: int) -> None:
    said = request.headers.get("content-length", "")
    if said.isascii() and said.isdigit() and int(said[:20]) > largest:
        raise _too_large(largest)


def _too_large(largest: int) -> BadRequest:
    return BadRequest(f"The body is too large; {largest >> 10} KiB are the limit.")


async def _gone(request: Request) -> None:
    """Ends when the client went away. Called behind the body, so that nothing else can come."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _json(answer: dict[str, Any] | ErrorObject) -> Response:
    status = STATUS[answer.code] if isinstance(answer, ErrorObject) else 200
    return Response(msgspec.json.encode(answer), status, media_type="application/json")

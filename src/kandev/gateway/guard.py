"""Who may come in: the name they call us by, the page that sent them, and the access token.

Host and Origin are checked always, against DNS rebinding and foreign pages; the token where the settings
demand it. Pure ASGI, so that it holds for HTTP and the WebSocket alike. Not here: the login page (`pages`).
"""

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

import msgspec
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from kandev.core.errors import Forbidden, KandevError
from kandev.gateway.errors import STATUS, Unauthorized, error_object

LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
EVERY_ADDRESS: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared with, not listened on
OPEN: Final = frozenset({"/health", "/login"})
COOKIE: Final = "kandev_login"


@dataclass(frozen=True)
class GuardSettings:
    """`host`: the address or name that we listen on. `token` is accepted always, and demanded with
    `require_token`. `hosts`: further names that we are called by, for one who listens on every address."""

    host: str = "127.0.0.1"
    token: str | None = None
    require_token: bool = False
    hosts: frozenset[str] = frozenset()

    def knows(self, name: str) -> bool:
        """Whether a Host header may say so. Foreign names reach an address by DNS rebinding; figures do
        not."""
        if name in LOOPBACK or name in self.hosts or name == host_name(_bracketed(self.host)):
            return True
        return self.host in EVERY_ADDRESS and _is_address(name)


def login_cookie(token: str) -> str:
    """What the cookie holds instead of the token: cookies are sent to every port of a host."""
    return hmac.new(token.encode(), b"kandev login", hashlib.sha256).hexdigest()


def is_token(settings: GuardSettings, given: str) -> bool:
    """In constant time."""
    return bool(settings.token) and hmac.compare_digest(given.encode(), (settings.token or "").encode())


class Guard:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp, settings: GuardSettings) -> None:
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on, or answer with the refusal."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check_host(headers)
            self._check_origin(headers)
            self._check_token(scope["path"], headers)
        except KandevError as error:
            await self._refuse(scope, receive, send, error)
            return
        await self._app(scope, receive, send)

    def _check_host(self, headers: Headers) -> None:
        name = host_name(headers.get("host", ""))
        if self._settings.knows(name):
            return
        raise Forbidden(
            f"Kandev is not called {name[:100]!r} here; use its own address, or name it in the setting hosts."
        )

    def _check_origin(self, headers: Headers) -> None:
        origin = headers.get("origin")
        if origin is None:
            return
        own = {f"{scheme}://{headers.get('host', '').lower()}" for scheme in ("http", "https")}
        if origin.lower() not in own:
            raise Forbidden("Pages of another origin may not ask Kandev for anything.")

    def _check_token(self, path: str, headers: Headers) -> None:
        if not self._settings.require_token or path in OPEN:
            return
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and is_token(self._settings, given.strip()):
            return
        cookie = _cookie(headers.get("cookie", ""))
        expected = login_cookie(self._settings.token or "")
        if not self._settings.token or not hmac.compare_digest(cookie.encode(), expected.encode()):
            sentence = "An access token is needed: send Authorization: Bearer TOKEN, or log in at /login."
            raise Unauthorized(sentence)

    async def _refuse(self, scope: Scope, receive: Receive, send: Send, error: KandevError) -> None:
        found = error_object(error, scope["path"])
        response: Response = Response(
            msgspec.json.encode(found), STATUS[found.code], media_type="application/json"
        )
        if scope["type"] == "http":
            page = scope["method"] in ("GET", "HEAD") and scope["path"] == "/"
            if page and found.code == "UNAUTHORIZED":
                response = RedirectResponse("/login", 303)
            elif found.code == "UNAUTHORIZED":
                response.headers["WWW-Authenticate"] = "Bearer"
            await response(scope, receive, send)
        elif "websocket.http.response" in scope.get("extensions", {}):
            await response(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets, in lower case; empty when it is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""

"""The scripted model's HTTP server on a free loopback port.

Not for the wire formats: each has a module of its own.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable
from json import JSONDecodeError, loads
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from aiohttp import web

from . import anthropic, chat, gemini, responses
from .answering import Exchange
from .directives import Action, Asked, Plan, Planner, one_line
from .request_log import Entry, RequestLog
from .tools import Json

LARGEST_REQUEST = 256 * 2**20
SHUTDOWN_S = 1.0
MODELS = ("mock-model", "gpt-5.1-codex", "claude-sonnet-4-5")
USER_CHARACTERS = 160


class Format(NamedTuple):
    """One wire format: how a request is read, and how it is answered."""

    kind: str
    read: Callable[[Json], Asked]
    answer: Callable[[Exchange], Awaitable[web.StreamResponse]]


# By the end of the path: what stands before it is free, so /v1/… and /anything/v1/… both work.
FORMATS = {
    "/responses": Format("responses", responses.read, responses.answer),
    "/chat/completions": Format("chat", chat.read, chat.answer),
    "/messages": Format("anthropic", anthropic.read, anthropic.answer),
    ":generateContent": Format("gemini", gemini.read, gemini.answer),
    ":streamGenerateContent": Format("gemini", gemini.read, gemini.answer),
}


class ScriptedModel:
    """A running model server: `async with ScriptedModel(log_path) as model`, then `model.base_url`."""

    def __init__(self, log_path: Path | None = None, port: int = 0) -> None:
        self.log = RequestLog(log_path)
        self.port = port
        self._planner = Planner()
        self._numbers = itertools.count(1)
        application = web.Application(client_max_size=LARGEST_REQUEST)
        application.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(
            application, handler_cancellation=True, access_log=None, shutdown_timeout=SHUTDOWN_S
        )

    async def __aenter__(self) -> "ScriptedModel":
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        """Where the server listens, without a path."""
        return f"http://127.0.0.1:{self.port}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        number = next(self._numbers)
        found = _format(request)
        if found is None:
            self.log.add(n=number, method=request.method, path=request.path, other=True)
            return _other(request)
        body = _body(raw)
        self.log.bodies[number] = body
        asked = found.read(body)
        plan = self._planner.plan(asked, number)
        self.log.add(
            n=number, path=request.path, kind=found.kind, model=body.get("model"), **_facts(asked, plan)
        )
        started = time.monotonic()
        try:
            response = await _answer(found, Exchange(request, body, plan, number))
        except (asyncio.CancelledError, ConnectionError) as gone:
            self.log.add(n=number, client_gone=type(gone).__name__, seconds=_since(started))
            raise
        self.log.add(n=number, ended=True, seconds=_since(started))
        return response


def _format(request: web.Request) -> Format | None:
    if request.method != "POST":
        return None
    return next((found for end, found in FORMATS.items() if request.path.endswith(end)), None)


def _body(raw: bytes) -> Json:
    try:
        body = loads(raw or b"{}")
    except (JSONDecodeError, UnicodeDecodeError):
        return {}
    return body if isinstance(body, dict) else {}


def _facts(asked: Asked, plan: Plan) -> Entry:
    facts: Entry = {
        "user": one_line(asked.text)[-USER_CHARACTERS:],
        "results": len(asked.results),
        "tools": [tool.name for tool in asked.tools],
        "action": plan.action.value,
    }
    if plan.call:
        facts["call"] = {"name": plan.call.tool.name, "arguments": plan.call.arguments}
    if asked.results:
        facts["last_result"] = asked.results[-1][:USER_CHARACTERS]
    return facts


def _since(started: float) -> float:
    return round(time.monotonic() - started, 3)


async def _answer(found: Format, exchange: Exchange) -> web.StreamResponse:
    if exchange.plan.action is Action.ERROR:
        code = exchange.plan.code
        error = {"message": f"mock error {code}", "type": "api_error", "code": code, "status": "UNAVAILABLE"}
        return web.json_response({"type": "error", "error": error}, status=code)
    if exchange.plan.action is Action.HANG:
        await asyncio.Event().wait()  # Ends when the client goes away or the server is closed.
    return await found.answer(exchange)


def _other(request: web.Request) -> web.Response:
    if request.path.endswith("/count_tokens"):
        return web.json_response({"input_tokens": 100})
    if request.path.endswith(":countTokens"):
        return web.json_response({"totalTokens": 100})
    if request.method == "GET" and request.path.endswith("/models"):
        return web.json_response(
            {"object": "list", "data": [_model(one) for one in MODELS], "has_more": False}
        )
    if request.method in ("HEAD", "GET") and request.path in ("/", "/v1", "/v1/"):
        return web.json_response({"ok": True})
    error = {"message": f"The scripted model has no {request.path}.", "type": "not_found"}
    return web.json_response({"error": error}, status=404)


def _model(name: str) -> Json:
    return {
        "id": name,
        "object": "model",
        "type": "model",
        "display_name": name,
        "created": 1,
        "owned_by": "mock",
    }

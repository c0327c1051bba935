"""A backend for tests of the command line: answers as it is told to, and remembers what it was asked.

It runs on a thread of its own, because commands block. Not here: any rule of Kandev.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

STATUS = {
    "VALIDATION_ERROR": 422,
    "NOT_FOUND": 404,
    "UNKNOWN_ACTION": 404,
    "CONFLICT": 409,
    "INTERNAL_ERROR": 500,
}
START_S = 10.0

Payload = dict[str, Any]


class Refusal(Exception):
    """An error object as the answer."""

    def __init__(self, code: str, message: str, **details: Any) -> None:
        super().__init__(message)
        self.error: Payload = {"code": code, "message": message} | ({"details": details} if details else {})


@dataclass
class Play:
    """What one live connection gets: the answer to its subscription, frames, and then its end."""

    answer: Payload
    frames: list[tuple[str, Payload]] = field(default_factory=list)
    drop: bool = False
    """Whether the connection is cut behind the last frame; else it stays open."""
    before_drop: Callable[[], object] = lambda: None


@dataclass
class FakeBackend:
    """`answers`: what each action answers, as it stands or as a function of the payload."""

    answers: dict[str, Payload | Callable[[Payload], Payload]] = field(default_factory=dict)
    plays: list[Play] = field(default_factory=list)
    token: str | None = None
    asked: list[tuple[str, Payload]] = field(default_factory=list)
    subscribed: list[Payload] = field(default_factory=list)
    url: str = ""
    plain: bool = False
    """Answers as something that is no Kandev backend."""

    def payloads(self, action: str) -> list[Payload]:
        """What came in for one action."""
        return [payload for name, payload in self.asked if name == action]

    def note(self, home: Path, pid: int = 1) -> None:
        """Writes the home's `backend.json`."""
        home.mkdir(exist_ok=True)
        noted = {"url": self.url, "pid": pid, "token": self.token}
        fresh = home / "backend.json.new"
        fresh.write_text(json.dumps(noted))
        fresh.replace(home / "backend.json")

    async def action(self, request: Request) -> Response:
        """`POST /api/v1/actions/{action}`."""
        if self.plain:
            return PlainTextResponse("hello", 502)
        if self.token and request.headers.get("authorization") != f"Bearer {self.token}":
            return JSONResponse({"code": "UNAUTHORIZED", "message": "Show the access token."}, 401)
        name, payload = request.path_params["action"], await request.json()
        self.asked.append((name, payload))
        answer = self.answers.get(name)
        if answer is None:
            missing = {"code": "UNKNOWN_ACTION", "message": f"There is no action {name}."}
            return JSONResponse(missing, 404)
        try:
            return JSONResponse(answer(payload) if callable(answer) else answer)
        except Refusal as refusal:
            return JSONResponse(refusal.error, STATUS[refusal.error["code"]])

    async def live(self, socket: WebSocket) -> None:
        """`GET /ws`: one subscription, one play."""
        if self.token and socket.headers.get("authorization") != f"Bearer {self.token}":
            await socket.close()
            return
        await socket.accept()
        try:
            asked = await socket.receive_json()
            self.subscribed.append(asked["payload"])
            play = self.plays.pop(0)
            frame = {"id": asked["id"], "action": asked["action"], "timestamp": ""}
            kind = "error" if "code" in play.answer else "response"
            await socket.send_json({**frame, "type": kind, "payload": play.answer})
            for action, payload in play.frames:
                note = {"id": "", "type": "notification", "action": action, "timestamp": ""}
                await socket.send_json({**note, "payload": payload})
            if play.drop:
                play.before_drop()
                await socket.close(1012)
                return
            await socket.receive_text()
        except WebSocketDisconnect:
            return

    async def health(self, _: Request) -> Response:
        """`GET /health`."""
        return JSONResponse({"status": "ok"})


@contextmanager
def running(backend: FakeBackend) -> Iterator[FakeBackend]:
    """The backend on a free port of loopback; gone afterwards."""
    app = Starlette(
        routes=[
            Route("/api/v1/actions/{action}", backend.action, methods=["POST"]),
            Route("/health", backend.health),
            WebSocketRoute("/ws", backend.live),
        ]
    )
    # With its protocol named, asyncio switches Nagle's algorithm off; without, each answer takes 40 ms.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    backend.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="websockets-sansio",
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    started = threading.Event()

    async def serve() -> None:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets=[listening]))
            while not server.started and not serving.done():
                await asyncio.sleep(0.005)
            started.set()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="fake-backend")
    thread.start()
    try:
        assert started.wait(START_S)
        yield backend
    finally:
        server.should_exit = True
        thread.join(START_S)
        listening.close()

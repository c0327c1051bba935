"""A backend in one loop: real store, real actors, real doors, git worktrees below tmp, simulated agents.

Not here: the tests; fixtures stand in the conftests that use it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
import uvicorn
from starlette.applications import Starlette
from websockets.asyncio.client import ClientConnection, connect

from kandev.core.records import Notification
from kandev.execution.clock import SystemClock, TimeIds
from kandev.execution.worktrees import GitWorktrees
from kandev.gateway.app import create_app
from kandev.gateway.connections import BoundedHttp, BoundedWebSocket
from kandev.gateway.guard import GuardSettings
from kandev.gateway.hub import Hub
from kandev.gateway.pages import About
from kandev.ports.catalogue import KnownAgent
from kandev.runtime.deadlines import Deadlines
from kandev.runtime.outer import Outer
from kandev.runtime.registry import Sessions
from kandev.storage.opening import open_inline
from kandev.storage.sql.inline import InlineStore
from kandev.storage.sql.tables import metadata
from kandev.usecases.context import Context
from kandev.usecases.owed_steps import OwedSteps
from tests.fakes.agentctl import SimAgentctl, SimAgents

WAIT_S = 10.0
MOCK = ("python", "-m", "kandev", "mock-agent")
AGENTS = (
    KnownAgent("mock", "Mock agent", "acp", MOCK, True, "It is part of Kandev."),
    KnownAgent("fox", "Fox", "acp", ("fox", "acp"), True, "Install fox.", path="/bin/fox", version="1.2"),
    KnownAgent("owl", "Owl", "acp", ("owl",), False, "Install owl."),
)


class FixedCatalogue:
    """Knows three agents; two are found."""

    async def look(self, *, versions: bool) -> tuple[KnownAgent, ...]:
        return AGENTS


@dataclass
class Heard:
    """Hands on what is published, and remembers it."""

    hub: Hub
    all: list[Notification] = field(default_factory=list)

    def publish(self, notifications: Sequence[Notification]) -> None:
        self.all.extend(notifications)
        self.hub.publish(notifications)

    def actions(self, stream: str = "workspace") -> list[str]:
        return [n.action for n in self.all if n.stream == stream]


@dataclass
class House:
    """The backend, and ways to ask it."""

    ctx: Context
    hub: Hub
    heard: Heard
    world: SimAgentctl
    app: Starlette
    http: httpx.AsyncClient
    tmp: Path

    async def post(self, action: str, payload: Any = None) -> tuple[int, dict[str, Any]]:
        """Status and body."""
        response = await self.http.post(f"/api/v1/actions/{action}", json={} if payload is None else payload)
        return response.status_code, response.json()

    async def ok(self, action: str, **payload: Any) -> dict[str, Any]:
        """The answer of a request that must succeed."""
        status, body = await self.post(action, payload)
        assert status == 200, body
        return body

    async def refused(self, action: str, code: str, **payload: Any) -> str:
        """The sentence of a request that must be refused with this code."""
        status, body = await self.post(action, payload)
        assert body.get("code") == code, (status, body)
        assert "Traceback" not in body["message"]
        return str(body["message"])

    async def board(self) -> tuple[str, str]:
        """A workspace and a workflow in it."""
        workspace = await self.ok("workspace.create", name="Shop")
        workflow = await self.ok("workflow.create", workspace_id=workspace["id"], name="Kanban")
        return workspace["id"], workflow["id"]

    async def task(self, title: str = "Fix it", **more: Any) -> dict[str, Any]:
        """A task, on a board of its own unless one is given."""
        if "workspace_id" not in more:
            more["workspace_id"], more["workflow_id"] = await self.board()
        answer = await self.ok("task.create", title=title, **more)
        task: dict[str, Any] = answer["task"]
        return task

    async def started(self, prompt: str, **more: Any) -> tuple[dict[str, Any], str]:
        """A task with an agent that was given `prompt`, and its session's id."""
        profile = await self.ok("agent.profile.create", name="Mock", command=list(MOCK))
        task = await self.task(description=prompt, agent_profile_id=profile["id"], **more)
        launched = await self.ok("session.launch", task_id=task["id"], prompt=prompt)
        return task, launched["session_id"]

    async def until(self, session_id: str, state: str) -> dict[str, Any]:
        """The session as soon as it is in this state."""
        async with asyncio.timeout(WAIT_S):
            while True:
                session = await self.ok("session.get", session_id=session_id)
                if session["state"] == state:
                    return session
                await asyncio.sleep(0.01)

    def rows(self) -> dict[str, list[Any]]:
        """Every row of the database, by table."""
        store = self.ctx.store
        assert isinstance(store, InlineStore)
        with store._connection.begin():
            return {t.name: list(store._connection.execute(t.select())) for t in metadata.sorted_tables}

    def repository(self, name: str = "shop") -> Path:
        """A git repository with one commit."""
        path = self.tmp / name
        path.mkdir()
        git(path, "init", "-b", "main")
        (path / "a.txt").write_text("one\n")
        git(path, "add", ".")
        git(path, "commit", "-m", "first")
        return path


def git(folder: Path, *words: str) -> None:
    """Run git as somebody."""
    names = {f"GIT_{w}_{x}": "somebody" for w in ("AUTHOR", "COMMITTER") for x in ("NAME", "EMAIL")}
    subprocess.run(["git", *words], cwd=folder, env=os.environ | names, check=True, capture_output=True)


@contextlib.asynccontextmanager
async def open_house(
    tmp: Path, guard: GuardSettings | None = None, hub: Hub | None = None, queue_max: int = 10
) -> AsyncIterator[House]:
    """Everything, taken down in the end. `queue_max`: how many messages may wait, 0 for no limit."""
    hub = hub or Hub()
    heard = Heard(hub)
    store = open_inline(heard)
    world = SimAgentctl()
    clock, ids, deadlines = SystemClock(), TimeIds(), Deadlines(queue_max=queue_max)
    worktrees = GitWorktrees(tmp / "home")
    async with Sessions(Outer(store, SimAgents(world), worktrees, clock, ids, deadlines)) as sessions:
        ctx = Context(store, sessions, worktrees, FixedCatalogue(), clock, ids, deadlines)
        about = About("0.1.0", "http://127.0.0.1:1", str(tmp / "home"))
        app = create_app(ctx, hub=hub, about=about, guard=guard or GuardSettings())
        transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
        steps = asyncio.create_task(OwedSteps(ctx).run())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            yield House(ctx, hub, heard, world, app, client, tmp)
        steps.cancel()
        await asyncio.wait({steps})
    await world.close()
    await store.close()


class Socket:
    """A client of the WebSocket door."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.notifications: list[dict[str, Any]] = []
        self._asked = 0

    async def send(self, text: str | bytes) -> None:
        await self.connection.send(text)

    async def frame(self) -> dict[str, Any]:
        """The next frame, whatever it is."""
        async with asyncio.timeout(WAIT_S):
            found: dict[str, Any] = msgspec.json.decode(await self.connection.recv())
        return found

    async def request(self, action: str, payload: Any = None) -> str:
        """Ask without waiting; the request's id."""
        self._asked += 1
        id = f"q{self._asked}"
        frame = {"id": id, "type": "request", "action": action, "payload": payload or {}}
        await self.send(msgspec.json.encode(frame).decode())
        return id

    async def ask(self, action: str, payload: Any = None) -> dict[str, Any]:
        """The frame that answers; notifications that come before it are kept."""
        id = await self.request(action, payload)
        while True:
            frame = await self.frame()
            if frame["type"] != "notification":
                assert frame["id"] == id, frame
                return frame
            self.notifications.append(frame)

    async def ok(self, action: str, **payload: Any) -> dict[str, Any]:
        """The payload of an answer that is no error."""
        frame = await self.ask(action, payload)
        assert frame["type"] == "response", frame
        found: dict[str, Any] = frame["payload"]
        return found

    async def heard(self, action: str) -> dict[str, Any]:
        """The payload of the next notification with this action."""
        while True:
            kept, self.notifications = self.notifications, []
            for place, frame in enumerate(kept):
                if frame["action"] == action:
                    self.notifications = kept[place + 1 :]
                    found: dict[str, Any] = frame["payload"]
                    return found
            frame = await self.frame()
            assert frame["type"] == "notification", frame
            self.notifications.append(frame)


@contextlib.asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[str]:
    """A real server on loopback; its host and port."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(
        app,
        ws=BoundedWebSocket,
        http=BoundedHttp,
        loop="asyncio",
        lifespan="on",
        log_config=None,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign, assignment]
    task = asyncio.create_task(server.serve([listener]))
    async with asyncio.timeout(WAIT_S):
        while not server.started:
            await asyncio.sleep(0.01)
    try:
        yield f"127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listener.close()


@contextlib.asynccontextmanager
async def dial(address: str, **options: Any) -> AsyncIterator[Socket]:
    """Connect to the WebSocket door."""
    async with connect(f"ws://{address}/ws", max_size=None, **options) as connection:
        yield Socket(connection)

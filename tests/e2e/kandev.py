"""A whole Kandev under test: the real backend, the real agentctl, the mock agent, through the public doors.

Everything is started in a home of its own, with shrunk time constants, and ended by its own id. Waiting is
for events of the public streams, with a deadline; nothing sleeps to synchronise.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect

DEADLINE_S = 30.0
SHRUNK = {
    "KANDEV_CANCEL_ACKNOWLEDGE_S": "1",
    "KANDEV_CANCEL_REPEAT_S": "0.1",
    "KANDEV_MESSAGE_ANSWER_S": "5",
    "KANDEV_REFUSAL_RETRY_S": "0.05",
    "KANDEV_OWN_TURN_SILENT_S": "0.3",
    "KANDEV_LATE_OUTPUT_S": "0.2",
    "KANDEV_TEARDOWN_STDIN_S": "0.3",
    "KANDEV_TEARDOWN_TERM_S": "0.5",
}


class CallFailed(Exception):
    """An action was answered with an error object."""

    def __init__(self, status: int, error: dict[str, Any]) -> None:
        super().__init__(f"{status} {error}")
        self.status, self.error = status, error
        self.code: str = error["code"]
        self.message: str = error["message"]


class Events:
    """One WebSocket: requests, and the notifications of what it subscribed to, in the order they came."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.seen: list[dict[str, Any]] = []
        self._answers: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Event()
        self._reader = asyncio.create_task(self._read())
        self._next = 0

    async def _read(self) -> None:
        with contextlib.suppress(Exception):
            async for text in self._socket:
                frame = json.loads(text)
                waiter = self._answers.pop(frame["id"], None)
                if frame["type"] == "notification" or waiter is None:
                    self.seen.append(frame)
                    self._news.set()
                else:
                    waiter.set_result(frame)

    async def request(self, action: str, payload: dict[str, Any]) -> dict[str, Any]:
        """The whole answer frame."""
        self._next += 1
        name = str(self._next)
        waiter: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[name] = waiter
        await self._socket.send(
            json.dumps({"id": name, "type": "request", "action": action, "payload": payload})
        )
        async with asyncio.timeout(DEADLINE_S):
            return await waiter

    async def send(self, action: str, payload: dict[str, Any]) -> None:
        """A request whose answer nobody waits for."""
        await self._socket.send(
            json.dumps({"id": "unanswered", "type": "request", "action": action, "payload": payload})
        )

    async def news(self) -> None:
        """Until something more was told."""
        self._news.clear()
        async with asyncio.timeout(DEADLINE_S):
            await self._news.wait()

    async def until(
        self, action: str, wanted: Callable[[dict[str, Any]], bool] = lambda _: True, *, after: int = 0
    ) -> dict[str, Any]:
        """The payload of the first notification behind position `after` that is wanted."""
        async with asyncio.timeout(DEADLINE_S):
            at = after
            while True:
                while at < len(self.seen):
                    frame = self.seen[at]
                    at += 1
                    if frame["action"] == action and wanted(frame["payload"]):
                        return dict(frame["payload"])
                self._news.clear()
                await self._news.wait()

    async def state(self, state: str, *, after: int = 0) -> None:
        """Until the session's state became this one."""
        await self.until("session.state_changed", lambda p: p["new_state"] == state, after=after)

    async def close(self) -> None:
        await self._socket.close()
        self._reader.cancel()
        await asyncio.wait([self._reader])


class Kandev:
    """`async with Kandev(home) as kandev`. `environment` comes on top of the shrunk settings. `program` is
    run in place of `kandev`, and `errors` takes the backend's stderr in place of a file in the home."""

    def __init__(
        self,
        home: Path,
        environment: dict[str, str] | None = None,
        *,
        program: Sequence[str] = ("-m", "kandev"),
        errors: Path | None = None,
    ) -> None:
        self.home = home
        self.program = program
        self.errors = errors or home / "backend.err"
        self.environment = {**SHRUNK, **(environment or {})}
        self.url = ""
        self.token: str | None = None
        """Shown at both doors when it is set."""
        self.process: subprocess.Popen[bytes] | None = None
        self._http = httpx.AsyncClient(timeout=DEADLINE_S, trust_env=False)

    async def __aenter__(self) -> "Kandev":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()
        await self._http.aclose()

    @classmethod
    def guest(cls, host: "Kandev") -> "Kandev":
        """Another client of one that runs already: it talks to it, and `tidy` takes away what it made."""
        guest = cls(host.home, host.environment)
        guest.url = host.url
        return guest

    async def tidy(self) -> None:
        """Tasks with their sessions, and all but the first profile and workspace, are deleted."""
        for task in (await self.call("task.list", {"include_archived": True}))["tasks"]:
            await self.call("task.delete", {"id": task["id"]})
        for profile in (await self.call("agent.profile.list"))["profiles"][1:]:
            await self.call("agent.profile.delete", {"id": profile["id"]})
        for workspace in (await self.call("workspace.list"))["workspaces"]:
            listed = await self.call("repository.list", {"workspace_id": workspace["id"]})
            for repository in listed["repositories"]:
                await self.call("repository.delete", {"id": repository["id"]})
        for workspace in (await self.call("workspace.list"))["workspaces"][1:]:
            await self.call("workspace.delete", {"id": workspace["id"]})
        await self._http.aclose()

    def env(self) -> dict[str, str]:
        """The environment of every program of this Kandev."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KANDEV_", "XDG_"))}
        return {**kept, "KANDEV_HOME": str(self.home), **self.environment}

    async def start(self, *arguments: str) -> dict[str, Any]:
        """Run `kandev serve`; returns the ready line."""
        self.home.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, *self.program, "serve", "--port", "0", "--no-browser", *arguments]
        with self.errors.open("ab") as errors:
            self.process = subprocess.Popen(
                command, env=self.env(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        assert self.process.stdout is not None
        async with asyncio.timeout(DEADLINE_S):
            line = await asyncio.to_thread(self.process.stdout.readline)
        assert line, self.errors.read_text()
        ready: dict[str, Any] = json.loads(line)
        self.url = ready["url"]
        return ready

    async def kill(self) -> None:
        """`kill -9` of the backend."""
        await self._gone(signal.SIGKILL)

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """A polite end; its exit code."""
        return await self._gone(number)

    async def _gone(self, number: int) -> int:
        process = self.process
        assert process is not None
        process.send_signal(number)
        async with asyncio.timeout(DEADLINE_S):
            code = await asyncio.to_thread(process.wait)
        if process.stdout is not None:
            process.stdout.close()
        self.process = None
        return code

    async def end(self) -> None:
        """Backend and agentctl, and with it every agent, are ended and awaited."""
        if self.process is not None:
            await self._gone(signal.SIGTERM)
        try:
            agentctl = json.loads((self.home / "agentctl.json").read_text())
        except FileNotFoundError:
            return
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(agentctl["pid"])
            try:
                signal.pidfd_send_signal(descriptor, signal.SIGTERM)
                async with asyncio.timeout(DEADLINE_S):
                    await _readable(descriptor)
            finally:
                os.close(descriptor)

    def agentctl_pid(self) -> int:
        """Of the agentctl that runs."""
        return int(json.loads((self.home / "agentctl.json").read_text())["pid"])

    # -- the doors ------------------------------------------------------------------------------

    async def post(self, action: str, payload: dict[str, Any] | None = None) -> httpx.Response:
        """The raw answer of the HTTP door."""
        url = f"{self.url}/api/v1/actions/{action}"
        return await self._http.post(url, json=payload or {}, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    async def call(self, action: str, payload: dict[str, Any] | None = None) -> dict[str, Any]:
        """The response payload. Raises CallFailed."""
        response = await self.post(action, payload)
        if response.status_code != 200:
            raise CallFailed(response.status_code, response.json())
        return dict(response.json())

    async def get(self, path: str) -> httpx.Response:
        """A page or document."""
        return await self._http.get(f"{self.url}{path}", headers=self._headers())

    @contextlib.asynccontextmanager
    async def events(self) -> AsyncIterator[Events]:
        """A WebSocket of its own."""
        address = self.url.replace("http", "ws", 1) + "/ws"
        headers = self._headers()
        async with connect(address, proxy=None, max_size=None, additional_headers=headers) as socket:
            events = Events(socket)
            try:
                yield events
            finally:
                await events.close()

    @contextlib.asynccontextmanager
    async def watching(self, session_id: str) -> AsyncIterator[Events]:
        """A WebSocket that is subscribed to the session from its beginning."""
        async with self.events() as events:
            answer = await events.request("session.subscribe", {"session_id": session_id, "since_seq": 0})
            assert answer["type"] == "response", answer
            yield events

    # -- what most tests begin with ---------------------------------------------------------------

    async def workspace(self) -> str:
        """The id of "Default"."""
        return str((await self.call("workspace.list"))["workspaces"][0]["id"])

    async def task(self, description: str = "", *, start: bool = False, **more: Any) -> dict[str, Any]:
        """`task.create` on the Kanban board; `{task, session_id?}`."""
        workspace_id = await self.workspace()
        workflows = (await self.call("workflow.list", {"workspace_id": workspace_id}))["workflows"]
        payload = {"workspace_id": workspace_id, "workflow_id": workflows[0]["id"], "title": "A task", **more}
        return await self.call("task.create", {**payload, "description": description, "start_agent": start})

    async def session(self, prompt: str | None = None, **more: Any) -> tuple[str, str]:
        """A task with a session of the mock agent on it, launched: `(task_id, session_id)`."""
        task_id = str((await self.task(**more))["task"]["id"])
        launch: dict[str, Any] = {"task_id": task_id} | ({"prompt": prompt} if prompt is not None else {})
        return task_id, str((await self.call("session.launch", launch))["session_id"])

    async def messages(self, session_id: str) -> list[dict[str, Any]]:
        """The whole transcript, oldest first."""
        return list((await self.call("message.list", {"session_id": session_id, "limit": 500}))["messages"])


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)

"""agentctl's server in this event loop, over agents that a test plays itself.

Not here: real processes and ACP (the contract suite and `tests/agentctl/adapter` have them).
"""

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection, connect

from kandev.agentctl.activity import Activity
from kandev.agentctl.adapters.base import (
    Adapter,
    PermissionAsk,
    PermissionOption,
    Sink,
    Spec,
    Started,
    StartFailed,
    TurnEnd,
    WriteFailed,
)
from kandev.agentctl.fences import Fences
from kandev.agentctl.guarding import Guard
from kandev.agentctl.home import Home
from kandev.agentctl.instances import Instances
from kandev.agentctl.main import Server, server_config
from kandev.agentctl.maker import Process
from kandev.agentctl.server import Doors
from kandev.agentctl.settings import Settings
from kandev.agentctl.stream import Window
from kandev.wire import agentctl as wire

SOON = 5.0
UNLIMITED = httpx.Limits(max_connections=None)
TOKEN = "token-of-the-test"
QUICK = Settings(
    launch_s=2,
    write_s=1,
    cancel_acknowledge_s=0.4,
    cancel_repeat_s=0.05,
    cancel_settle_s=0.15,
    late_output_s=0.2,
    own_turn_silent_s=0.2,
    teardown_protocol_s=0.1,
    teardown_stdin_s=0.1,
    teardown_term_s=0.1,
    teardown_kill_s=0.1,
    survivors_again_s=0.05,
)
OPTIONS = (PermissionOption("yes", "allow_once", "Yes"), PermissionOption("no", "reject_once", "No"))


class PlayedAgent:
    """Process and adapter in one: the test says what the agent does."""

    def __init__(self, spec: wire.CreateInstance, sink: Sink | None = None) -> None:
        self.spec = spec
        self.pid = 1
        self.prompts: list[Any] = []
        self.cancels: list[float] = []
        self.answers: list[tuple[str, str]] = []
        self.may_start = asyncio.Event()
        self.may_start.set()
        self.start_failure: str | None = None
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.write_failure: str | None = None
        self.heeds_cancel = True
        self.resumable = True
        self.proven = True
        self.may_hear_cancel = asyncio.Event()
        self.may_hear_cancel.set()
        self.cancelling = 0
        """Cancels whose write has begun."""
        self.prompted_at = 0.0
        self.living: list[wire.Process] = []
        self.blind = False
        """Nobody can look at its processes."""
        self.survivors: list[wire.Process] = []
        self.forces: list[bool] = []
        self._gone: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self._sink = sink

    @property
    def sink(self) -> Sink:
        assert self._sink is not None
        return self._sink

    # -- what a test does -------------------------------------------------------------------------

    def exit(self, code: int | None) -> None:
        if not self._gone.done():
            self._gone.set_result(code)

    async def says(self, text: str, message_id: str | None = None) -> None:
        await self.sink.event(wire.MessageChunk, text=text, message_id=message_id)

    async def ends(self, stop_reason: str = "end_turn") -> None:
        await self.sink.turn_ended(TurnEnd(stop_reason))

    async def asks(self, request_id: str = "p1") -> None:
        await self.sink.permission(PermissionAsk(request_id, "May I", OPTIONS))

    # -- the process ------------------------------------------------------------------------------

    def stderr_tail(self) -> list[str]:
        return ["a last line"]

    async def exited(self) -> int | None:
        return await asyncio.shield(self._gone)

    def look(self) -> list[wire.Process]:
        if self.blind:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return list(self.living)

    async def end(self, *, force: bool) -> list[wire.Process]:
        self.forces.append(force)
        self.exit(-15)
        return self.survivors

    # -- the adapter ------------------------------------------------------------------------------

    async def run(self) -> None:
        await self.exited()
        await self.sink.closed()

    async def start(self, spec: Spec) -> Started:
        await self.may_start.wait()
        if self.start_failure is not None:
            raise StartFailed(self.start_failure)
        token, proven = spec.resume_token or "conversation", self.proven
        return Started(token, None, self.resumable, "Played", "1", proven=proven)

    async def prompt(self, content: str | list[dict[str, Any]]) -> None:
        await self.may_write.wait()
        if self.write_failure is not None:
            raise WriteFailed(self.write_failure)
        self.prompted_at = asyncio.get_running_loop().time()
        self.prompts.append(content)

    async def cancel(self) -> None:
        self.cancelling += 1
        await self.may_hear_cancel.wait()
        self.cancels.append(asyncio.get_running_loop().time())
        if self.heeds_cancel:
            await self.ends("cancelled")

    async def answer_permission(
        self,
        request_id: str,
        *,
        option_id: str | None = None,
        cancelled: bool = False,
        rejected: bool = False,
    ) -> str:
        outcome = "cancelled" if cancelled else "selected"
        self.answers.append((request_id, option_id or outcome))
        return outcome

    async def close_input(self) -> None:
        self.exit(0)


class Stage:
    """The maker: hands out the agents in the order of their creation; `prepare` sees each before it
    starts."""

    def __init__(self) -> None:
        self.agents: dict[str, PlayedAgent] = {}
        self.delay_starts = False
        self.resumable = True
        self.proven = True
        self.start_failure: str | None = None

    async def spawn(self, spec: wire.CreateInstance, settings: Settings) -> Process:
        if spec.command[0] == "missing":
            raise StartFailed("There is no program 'missing'.")
        agent = self.agents[spec.execution_id] = PlayedAgent(spec)
        agent.start_failure, agent.resumable = self.start_failure, self.resumable
        agent.proven = self.proven
        if self.delay_starts:
            agent.may_start.clear()
        return agent

    def adapter(self, process: Process, sink: Sink, spec: wire.CreateInstance, settings: Settings) -> Adapter:
        agent = self.agents[spec.execution_id]
        agent._sink = sink
        return agent


@dataclass
class Answer:
    status: int
    body: dict[str, Any]

    @property
    def reason(self) -> str:
        return str(self.body.get("reason"))


@dataclass
class Host:
    """One agentctl and a client of it."""

    url: str
    home: Home
    instances: Instances
    stage: Stage
    activity: Activity
    http: httpx.AsyncClient
    epoch: int = 1
    headers: dict[str, str] = field(default_factory=dict)

    def agent(self, execution: str = "e1") -> PlayedAgent:
        return self.stage.agents[execution]

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        content = body if isinstance(body, bytes) else None if body is None else msgspec.json.encode(body)
        given = {"Authorization": f"Bearer {TOKEN}", wire.EPOCH_HEADER: str(self.epoch), **headers}
        given = {name: value for name, value in given.items() if value}
        async with asyncio.timeout(SOON):
            response = await self.http.request(method, path, content=content, headers=given)
        return Answer(response.status_code, response.json())

    async def create(self, execution: str = "e1", **more: object) -> Answer:
        body = {
            "execution_id": execution,
            "session_id": "s1",
            "task_id": "t1",
            "protocol": "acp",
            "command": ["agent"],
            "cwd": "/",
            **more,
        }
        return await self.ask("POST", "/api/v1/instances", body)

    async def of(self, execution: str, method: str, path: str, body: object = None, **headers: str) -> Answer:
        return await self.ask(method, f"/instances/{execution}/api/v1/{path}", body, **headers)

    async def prompt(self, generation: int, content: str = "go", execution: str = "e1") -> Answer:
        body = {"dispatch_id": f"d{generation}", "prompt_generation": generation, "content": content}
        return await self.of(execution, "POST", "acp/prompt", body)

    async def cancel(self, generation: int, execution: str = "e1") -> Answer:
        return await self.of(execution, "POST", "acp/cancel", {"prompt_generation": generation})

    async def stop(self, execution: str = "e1", *, force: bool = False) -> Answer:
        return await self.of(execution, "POST", "stop", {"force": force})

    @asynccontextmanager
    async def stream(
        self, after: int = 0, execution: str = "e1", query: str = ""
    ) -> AsyncIterator[ClientConnection]:
        query = query or f"after={after}"
        address = f"{self.url.replace('http', 'ws')}/instances/{execution}/api/v1/acp/stream?{query}"
        headers = {"Authorization": f"Bearer {TOKEN}", wire.EPOCH_HEADER: str(self.epoch)}
        async with connect(
            address, additional_headers=headers, max_size=None, max_queue=None, proxy=None
        ) as connection:
            yield connection

    async def frames(self, execution: str = "e1", after: int = 0) -> list[wire.AnyFrame]:
        """What the journal holds behind `after`."""
        journal = self.instances.get(execution).journal
        return [wire.read_frame(line) for _, line in journal.read_from(after + 1)]

    def kinds(self, execution: str = "e1") -> list[str]:
        journal = self.instances.get(execution).journal
        return [msgspec.json.decode(line)["type"] for _, line in journal.read_from(1)]


async def receive(connection: ClientConnection, count: int) -> list[wire.AnyFrame]:
    async with asyncio.timeout(SOON):
        return [wire.read_frame(await connection.recv()) for _ in range(count)]


async def acknowledge(connection: ClientConnection, seq: int) -> None:
    await connection.send(msgspec.json.encode(wire.Acknowledge(seq=seq)), text=True)


@asynccontextmanager
async def host_in(folder: Path, settings: Settings = QUICK) -> AsyncIterator[Host]:
    home = Home(folder)
    fences, activity, stage = Fences(home), Activity(), Stage()
    listening = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listening.getsockname()[1]}"
    instances = Instances(home, settings, stage, fences, url)
    instances.adopt_journals(lambda execution: [])
    guard = Guard(TOKEN, frozenset({"agentctl.test"}), fences, activity)
    window = Window(settings.window_frames, settings.window_bytes)
    doors = Doors(instances, guard, activity, version="1.2.3", incarnation="i1", window=window)
    listens = asyncio.Event()
    server = Server(server_config(doors.app()), listens.set)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    await listens.wait()
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=SOON, limits=UNLIMITED) as http:
        yield Host(url, home, instances, stage, activity, http)
        await instances.close()
        server.should_exit = True
        await serving
    listening.close()
    home.close()


async def eventually(condition: Any) -> None:
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0.005)

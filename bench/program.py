"""A whole Kandev that is measured: the real backend and, through it, the real agentctl, in a home of its
own.

Everything that was started is ended in `end`, whatever happened before. Not here: talking to it (`client`).
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from bench.client import Client, Notes
from bench.processes import alive, clean_environment, cpu_seconds, end_of

DEADLINE_S = 120.0
LAUNCHES_AT_ONCE = 8
MOCK = (sys.executable, "-m", "kandev", "mock-agent")
PROGRAM = ("-m", "kandev")
STAMPING = (sys.executable, str(Path(__file__).parent / "stamping_agent.py"))


class Kandev:
    """`async with running(home) as kandev`."""

    def __init__(
        self, home: Path, settings: Mapping[str, str] | None = None, program: Sequence[str] = PROGRAM
    ) -> None:
        self.home = home
        self.program = program
        self.settings = dict(settings or {})
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Of the backend."""
        if self._process is None:
            raise RuntimeError("the backend does not run")
        return self._process.pid

    def agentctl_pid(self) -> int:
        """Of the agentctl that runs. Raises FileNotFoundError when there is none."""
        return int(json.loads((self.home / "agentctl.json").read_text())["pid"])

    def used_s(self) -> float:
        """Processor seconds of backend and agentctl so far, both still running."""
        return cpu_seconds(self.pid) + cpu_seconds(self.agentctl_pid())

    async def start(self) -> float:
        """Returns with the ready line; the seconds from the start of the process until then."""
        self.home.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, *self.program, "serve", "--port", "0", "--no-browser"]
        began = time.monotonic()
        with (self.home / "backend.err").open("ab") as errors:
            # A session of its own: a Ctrl-C at the terminal is for us, and we end it.
            self._process = subprocess.Popen(
                command,
                env=clean_environment(self.home, self.settings),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        line = await self._first_line(self._process)
        took = time.monotonic() - began
        if not line:
            raise RuntimeError((self.home / "backend.err").read_text())
        self.url = json.loads(line)["url"]
        return took

    @staticmethod
    async def _first_line(process: subprocess.Popen[bytes]) -> bytes:
        """Without a thread: nothing is left waiting when we are interrupted."""
        pipe = process.stdout
        assert pipe is not None
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        line = b""
        loop.add_reader(pipe.fileno(), readable.set)
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not line.endswith(b"\n"):
                    await readable.wait()
                    readable.clear()
                    piece = os.read(pipe.fileno(), 4096)
                    if not piece:
                        break
                    line += piece
        finally:
            loop.remove_reader(pipe.fileno())
        return line

    async def signal(self, number: signal.Signals) -> float:
        """End the backend and wait for it; when it was gone (`time.monotonic`)."""
        process, self._process = self._process, None
        if process is None:
            return time.monotonic()
        process.send_signal(number)
        try:
            async with asyncio.timeout(DEADLINE_S):
                return await end_of(process.pid)
        finally:
            if alive(process.pid):
                process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    async def end(self) -> None:
        """Backend, agentctl and agents are gone."""
        await self.signal(signal.SIGTERM)
        with suppress(FileNotFoundError, ProcessLookupError):
            pid = self.agentctl_pid()
            os.kill(pid, signal.SIGTERM)
            async with asyncio.timeout(DEADLINE_S):
                await end_of(pid)


@asynccontextmanager
async def running(
    home: Path, settings: Mapping[str, str] | None = None, program: Sequence[str] = PROGRAM
) -> AsyncIterator[Kandev]:
    """A Kandev that is ready, while the block runs. `program` is run in place of `kandev`."""
    kandev = Kandev(home, settings, program)
    try:
        await kandev.start()
        yield kandev
    finally:
        await kandev.end()


class Board:
    """Makes tasks and sessions through the door, in the first workspace's first workflow."""

    def __init__(self, client: Client, workspace_id: str, workflow: dict[str, Any]) -> None:
        self.client = client
        self.workspace_id = workspace_id
        self.workflow = workflow

    @staticmethod
    async def of(client: Client) -> Board:
        """The board of a new home."""
        workspace = (await client.ask("workspace.list"))["workspaces"][0]
        listed = await client.ask("workflow.list", workspace_id=workspace["id"])
        return Board(client, workspace["id"], listed["workflows"][0])

    @property
    def steps(self) -> list[str]:
        """The ids of its columns."""
        return [step["id"] for step in self.workflow["steps"]]

    def new_task(self, step: int = 0) -> dict[str, Any]:
        """The payload of a `task.create`; the columns are counted round."""
        of = {"workspace_id": self.workspace_id, "workflow_id": self.workflow["id"]}
        return {
            **of,
            "title": "A task to be measured",
            "workflow_step_id": self.steps[step % len(self.steps)],
        }

    async def task(self, step: int = 0, parent_id: str | None = None) -> str:
        """A new task's id."""
        of = {} if parent_id is None else {"parent_id": parent_id}
        return str((await self.client.ask("task.create", **self.new_task(step), **of))["task"]["id"])

    async def profile(self, command: Sequence[str]) -> str:
        """A profile of an agent."""
        made = await self.client.ask(
            "agent.profile.create", name="Measured", protocol="acp", command=list(command)
        )
        return str(made["id"])

    async def session(self, profile_id: str, parent_id: str | None = None) -> Live:
        """A task with a session whose agent is up and waits."""
        task_id = await self.task(parent_id=parent_id)
        launched = await self.client.ask("session.launch", task_id=task_id, agent_profile_id=profile_id)
        live = Live(self.client, task_id, str(launched["session_id"]))
        await self.client.follow(live.id, live.notes, since_seq=0)
        await live.notes.state("WAITING_FOR_INPUT")
        live.notes.forget()
        return live

    async def sessions(self, count: int, command: Sequence[str], parent_id: str | None = None) -> list[Live]:
        """So many, a few launched at a time."""
        profile_id = await self.profile(command)
        places = asyncio.Semaphore(LAUNCHES_AT_ONCE)

        async def one() -> Live:
            async with places:
                return await self.session(profile_id, parent_id)

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one()) for _ in range(count)]
        return [task.result() for task in tasks]


class Live:
    """A session with its agent, and what was heard of it."""

    def __init__(self, client: Client, task_id: str, id: str) -> None:
        self.client = client
        self.task_id = task_id
        self.id = id
        self.notes = Notes()

    async def say(self, content: str) -> tuple[float, dict[str, Any]]:
        """`message.add`; when it was answered, and how."""
        return await self.client.timed(
            "message.add", task_id=self.task_id, session_id=self.id, content=content
        )

    async def idle(self) -> None:
        """Its turn is over."""
        await self.notes.state("WAITING_FOR_INPUT")

"""What the contract suite runs on: one agentctl, real or simulated, and what a test may do to it.

Not here: the contract.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Protocol

from kandev.agentctl.looking import find_marked
from kandev.agentctl.settings import Settings
from kandev.core import inputs, transcript
from kandev.core.session import TurnRef
from kandev.execution.local import LocalAgents
from kandev.execution.sidecar import Sidecar, environment_for
from kandev.ports.execution import Agents, LaunchSpec, Up
from tests.fakes.agentctl import SimAgentctl, SimAgents
from tests.fakes.tools import FakeTools

SOON = 10.0
SOURCES = Path(__file__).resolve().parents[3] / "src"
SETTINGS = Settings(
    launch_s=10,
    write_s=2,
    cancel_acknowledge_s=0.8,
    cancel_repeat_s=0.1,
    cancel_settle_s=0.05,
    late_output_s=0.3,
    own_turn_silent_s=0.4,
    teardown_protocol_s=0.2,
    teardown_stdin_s=0.3,
    teardown_term_s=0.5,
    teardown_kill_s=0.5,
)


class World(Protocol):
    """One agentctl and the means to be several backends on it."""

    folder: Path
    agents: Agents
    tools: FakeTools
    """Of the first backend."""

    def backend(self, epoch: int, tools: FakeTools | None = None) -> Agents:
        """Another backend's door to it."""

    def break_lane(self, execution: str) -> None:
        """The connection of the first backend's lane is gone; the backend is not."""

    def lanes(self) -> int:
        """How many executions the first backend answers tool calls of."""

    async def kill_agentctl(self) -> None:
        """kill -9; the next call finds another one."""

    async def freeze(self, execution: str) -> None:
        """Its agent reads nothing any more: a long prompt is never written whole."""

    async def until_writing(self, execution: str) -> None:
        """A prompt may have reached the agent."""

    def launch_at_once(self) -> None:
        """Launches are not slow any more."""

    def command(self) -> tuple[str, ...]: ...

    def slow_command(self) -> tuple[str, ...]:
        """An agent that is never ready within a test."""

    def wrong_command(self) -> tuple[str, ...]:
        """One that cannot be started."""


@dataclass
class Simulated:
    folder: Path
    world: SimAgentctl = field(default_factory=lambda: SimAgentctl(SETTINGS))

    def __post_init__(self) -> None:
        self.tools = FakeTools()
        self._first = SimAgents(self.world, self.tools)
        self._first.epoch = 1
        self._backends = [self._first]
        self.agents: Agents = self._first

    def backend(self, epoch: int, tools: FakeTools | None = None) -> Agents:
        agents = SimAgents(self.world, tools)
        agents.epoch = epoch
        self._backends.append(agents)
        return agents

    def break_lane(self, execution: str) -> None:
        lane, tunnel = self._first.lanes[execution], self.world.executions[execution].tunnel
        tunnel.detach(lane)
        lane.open(tunnel)

    def lanes(self) -> int:
        return sum(one.state == "ready" for one in self.world.executions.values())

    async def close(self) -> None:
        for backend in self._backends:
            await backend.leave_tools()
        await self.world.close()

    async def kill_agentctl(self) -> None:
        self.world.die()

    async def freeze(self, execution: str) -> None:
        self.world.executions[execution].accept_s = 60

    async def until_writing(self, execution: str) -> None:
        await eventually(lambda: bool(self.world.executions[execution]._known))

    def launch_at_once(self) -> None:
        self.world.launch_s = 0

    def command(self) -> tuple[str, ...]:
        return ("mock-agent",)

    def slow_command(self) -> tuple[str, ...]:
        self.world.launch_s = 60
        return ("slow",)

    def wrong_command(self) -> tuple[str, ...]:
        self.world.refuse_launch = "There is no such program."
        return ("wrong",)


class Real:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        environment = {**environment_for(self.home), **settings_environment(SETTINGS)}
        environment["PYTHONPATH"] = str(SOURCES)
        command = (sys.executable, "-m", "kandev.agentctl")
        self.sidecar = Sidecar(self.home, environment, command)
        self._backends: list[LocalAgents] = []
        self.tools = FakeTools()
        self.agents: Agents = self.backend(1, self.tools)

    def backend(self, epoch: int, tools: FakeTools | None = None) -> Agents:
        agents = LocalAgents(self.sidecar, SOON, tools or FakeTools())
        agents._epoch = epoch
        self._backends.append(agents)
        return agents

    def break_lane(self, execution: str) -> None:
        connection = self._backends[0]._lanes._lanes[execution]._connection
        assert connection is not None
        connection.transport.abort()

    def lanes(self) -> int:
        return len(self._backends[0]._lanes._lanes)

    async def kill_agentctl(self) -> None:
        info = self.sidecar.find()
        assert info is not None
        os.kill(info.pid, 9)
        await eventually(lambda: not self.sidecar.lives(info))

    async def freeze(self, execution: str) -> None:
        for process in find_marked(execution, str(self.home)):
            os.kill(process.pid, signal.SIGSTOP)

    async def until_writing(self, execution: str) -> None:
        claims = self.home / "agentctl" / "journals" / execution / "claims"
        await eventually(lambda: claims.exists() and claims.read_text().endswith("\n"))

    def launch_at_once(self) -> None:
        return

    def command(self) -> tuple[str, ...]:
        return (sys.executable, "-m", "kandev.agentctl.mock_agent")

    def slow_command(self) -> tuple[str, ...]:
        return ("sleep", "60")

    def wrong_command(self) -> tuple[str, ...]:
        return (str(self.folder / "no-such-program"),)

    async def close(self) -> None:
        self.sidecar.find()
        for backend in self._backends[1:]:
            await backend.close(stop_agents=True, deadline=SOON)
        newest = self._backends[0]
        await newest.attach(1_000)
        await newest.close(stop_agents=True, deadline=SOON)


def settings_environment(settings: Settings) -> dict[str, str]:
    return {
        f"KANDEV_AGENTCTL_{one.name.upper()}": str(getattr(settings, one.name)) for one in fields(settings)
    }


@asynccontextmanager
async def world_of(kind: str, folder: Path) -> AsyncIterator[World]:
    if kind == "simulated":
        simulated = Simulated(folder)
        try:
            yield simulated
        finally:
            await simulated.close()
    else:
        real = Real(folder)
        try:
            yield real
        finally:
            await real.close()


def spec(world: World, execution: str = "e1", **more: object) -> LaunchSpec:
    (world.folder / "work").mkdir(exist_ok=True)
    given: dict[str, object] = {
        "execution": execution,
        "session_id": "s1",
        "task_id": "t1",
        "protocol": "acp",
        "command": world.command(),
        "cwd": str(world.folder / "work"),
        "env": {"PYTHONPATH": str(SOURCES)},
        **more,
    }
    return LaunchSpec(**given)  # type: ignore[arg-type]


async def start(world: World, execution: str = "e1", **more: object) -> Up:
    return await world.agents.start(spec(world, execution, **more), SOON)


def turn(generation: int, execution: str = "e1") -> TurnRef:
    return TurnRef(execution, generation)


async def prompt(world: World, generation: int, content: str) -> bool:
    prompted = await world.agents.prompt(turn(generation), f"d{generation}", content, SOON)
    return prompted.taken


class Follower:
    """Follows a journal in a task, commits what it has seen unless told not to, and waits for what a test
    expects."""

    def __init__(
        self, agents: Agents, execution: str, journal: str, after: int = 0, *, commits: bool = True
    ) -> None:
        self.frames: list[inputs.Frame] = []
        self._commits = commits
        self._came = asyncio.Event()
        stream = agents.follow(execution, journal, after, self._committed)
        self.task = asyncio.create_task(self._run(stream))

    def _committed(self) -> int:
        return self.frames[-1].seq if self.frames and self._commits else 0

    async def _run(self, stream: AsyncIterator[inputs.Frame]) -> None:
        try:
            async for frame in stream:
                self.frames.append(frame)
                self._came.set()
        finally:
            self._came.set()

    async def until(self, wanted: Callable[[inputs.Frame], bool]) -> inputs.Frame:
        """The first frame that is wanted, when it is there."""
        async with asyncio.timeout(SOON):
            while True:
                self._came.clear()
                for frame in self.frames:
                    if wanted(frame):
                        return frame
                if self.task.done():
                    self.task.result()
                    raise AssertionError(f"The stream ended; it said {self.frames}.")
                await self._came.wait()

    async def until_ended(self, generation: int) -> inputs.Ended:
        frame = await self.until(
            lambda f: isinstance(f.report, inputs.Ended) and f.report.turn.generation == generation
        )
        assert isinstance(frame.report, inputs.Ended)
        return frame.report

    async def until_said(self, text: str) -> inputs.Frame:
        return await self.until(lambda f: text in words(f))

    async def until_asked(self) -> inputs.PermissionAsked:
        frame = await self.until(lambda f: isinstance(f.report, inputs.PermissionAsked))
        assert isinstance(frame.report, inputs.PermissionAsked)
        return frame.report

    async def until_exited(self) -> inputs.Exited:
        frame = await self.until(lambda f: isinstance(f.report, inputs.Exited))
        assert isinstance(frame.report, inputs.Exited)
        return frame.report

    async def close(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


@asynccontextmanager
async def following(
    world: World, up: Up, execution: str = "e1", after: int = 0, *, commits: bool = True
) -> AsyncIterator[Follower]:
    follower = Follower(world.agents, execution, up.journal, after, commits=commits)
    try:
        yield follower
    finally:
        await follower.close()


def words(frame: inputs.Frame) -> str:
    content = getattr(frame.report, "content", None)
    return content.text if isinstance(content, transcript.Text) else ""


def kinds(frames: list[inputs.Frame]) -> list[str]:
    return [type(frame.report).__name__ for frame in frames]


async def eventually(condition: Callable[[], bool]) -> None:
    """For what gives no event: a process of another program, a file."""
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0.01)

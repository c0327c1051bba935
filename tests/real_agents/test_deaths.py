"""Real agents in mid-command, cancelled, stopped and killed: nothing is left, and the session goes on."""

import os
import secrets
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.e2e.kandev import Events, Kandev
from tests.e2e.scenes import alive, command_of

from . import processes
from .bed import Bed, BedAgent, NotInstalledError, let_a_minute_pass
from .model import ScriptedModel
from .working import TURN_S, Work, begin, command_ended, remembers

pytestmark = pytest.mark.proves("SURVIVE-real-agents")

REPLACED_S = 15.0
"""Until an agentctl that was killed is replaced and the next one has ended what it left."""


def started(pid: int) -> int:
    """In clock ticks since boot."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


class Command:
    """A shell command that no other has the name of, found whatever it was started with."""

    def __init__(self, kandev: Kandev, agent: BedAgent, work: Work, events: Events, line: str) -> None:
        self.kandev, self.agent, self.work, self.events = kandev, agent, work, events
        self.sleep = f"sleep 63.{secrets.randbelow(900_000) + 100_000}"
        self.line = line.format(self.sleep)

    async def begin(self) -> None:
        await self.work.say(f"[shell {self.line}]")
        await processes.wait_until(lambda: bool(self.pids()), self.line, TURN_S)

    def pids(self) -> list[int]:
        return [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and self._is(int(p.name))]

    def _is(self, pid: int) -> bool:
        return command_of(pid) == self.sleep and alive(pid)

    def root(self) -> int:
        """The process that agentctl started as the agent; its other children are orphans that came to it."""
        folder = Path(f"/proc/{self.kandev.agentctl_pid()}/task")
        children = [int(pid) for task in folder.iterdir() for pid in (task / "children").read_text().split()]
        return min(children, key=started)

    async def gone(self) -> None:
        await processes.wait_until(lambda: not self.pids(), f"the end of {self.line}", REPLACED_S)

    async def nothing_left(self) -> None:
        """Of the command and of the agent."""
        await self.gone()
        await processes.wait_until(
            lambda: not processes.marked(self.agent.mark), f"the end of {self.agent.name}", REPLACED_S
        )

    async def over(self, *causes: str) -> None:
        assert (await self.work.turn_over(self.events, 2))["cause"] in causes


async def cancelled(command: Command) -> None:
    assert (await command.work.cancel())["success"] is True
    await command.over("user")
    await command_ended(command.work, command.agent, command.sleep)


async def stopped(command: Command) -> None:
    await command.kandev.call("session.stop", {"session_id": command.work.session_id})
    await command.over("stopped")
    await command.nothing_left()
    await command.kandev.call("session.recover", {"session_id": command.work.session_id})


async def agent_killed(command: Command) -> None:
    os.kill(command.root(), signal.SIGKILL)
    await command.over("process")
    await command.nothing_left()


async def agentctl_killed(command: Command) -> None:
    os.kill(command.kandev.agentctl_pid(), signal.SIGKILL)
    await command.over("lost")
    await command.nothing_left()


async def backend_killed(command: Command) -> None:
    root = command.root()
    await command.kandev.kill()
    assert command.pids() and alive(root), "it works on"
    await command.kandev.start()
    async with command.kandev.watching(command.work.session_id) as events:
        command.events = events
        assert command.root() == root
        assert (await command.work.cancel())["success"] is True
        await command.over("user")
    await command_ended(command.work, command.agent, command.sleep)


async def both_killed(command: Command) -> None:
    os.kill(command.kandev.agentctl_pid(), signal.SIGKILL)
    await _after_a_death_of_the_backend(command)


async def everything_killed(command: Command) -> None:
    """All but what the agent itself has started: its commands are in sessions of their own."""
    for pid in (command.root(), command.kandev.agentctl_pid()):
        os.kill(pid, signal.SIGKILL)
    await _after_a_death_of_the_backend(command)


async def _after_a_death_of_the_backend(command: Command) -> None:
    await command.kandev.kill()
    await command.kandev.start()
    async with command.kandev.watching(command.work.session_id) as events:
        command.events = events
        await command.over("lost")
    await command.nothing_left()


FATES = [
    cancelled,
    stopped,
    agent_killed,
    agentctl_killed,
    backend_killed,
    both_killed,
    everything_killed,
]


@pytest.mark.parametrize("fate", FATES)
async def test_a_real_agent_in_mid_command_leaves_nothing_and_the_session_goes_on(
    kandev: Kandev,
    bed: Bed,
    real_agent: BedAgent,
    model: ScriptedModel,
    fate: Callable[[Command], Awaitable[None]],
) -> None:
    work = await begin(kandev, bed, real_agent, "remember the word quince")
    async with kandev.watching(work.session_id) as events:
        await work.turn_over(events, 1)
        command = Command(kandev, real_agent, work, events, "{}")
        await command.begin()
        await fate(command)
    let_a_minute_pass(real_agent)
    async with kandev.watching(work.session_id) as events:
        await remembers(work, events, model, 3, "quince")
    said = await kandev.messages(work.session_id)
    assert not [m for m in said if "without memory" in m["content"]]


@pytest.mark.parametrize("fate", [stopped, everything_killed])
async def test_a_command_that_left_environment_session_and_parent_goes_with_its_agent(
    kandev: Kandev, bed: Bed, real_agent: BedAgent, fate: Callable[[Command], Awaitable[None]]
) -> None:
    work = await begin(kandev, bed, real_agent, "hello")
    async with kandev.watching(work.session_id) as events:
        await work.turn_over(events, 1)
        escaping = "env -i setsid sh -c '(env -i setsid {} &)'; sleep 600"
        command = Command(kandev, real_agent, work, events, escaping)
        await command.begin()
        await fate(command)


@pytest.mark.parametrize("fate", [stopped, agent_killed])
async def test_a_wrapper_that_relaunches_itself_does_not_leave_its_child(
    kandev: Kandev, bed: Bed, model: ScriptedModel, fate: Callable[[Command], Awaitable[None]]
) -> None:
    """Gemini's own habit, unless it is told not to: a wrapper survives SIGTERM, and its child the wrapper."""
    try:
        gemini = bed.agent("gemini")
    except NotInstalledError as missing:
        pytest.skip(str(missing))
    del gemini.env["GEMINI_CLI_NO_RELAUNCH"]
    work = await begin(kandev, bed, gemini, "remember the word quince")
    async with kandev.watching(work.session_id) as events:
        await work.turn_over(events, 1)
        command = Command(kandev, gemini, work, events, "{}")
        await command.begin()
        agents = [found for found in processes.marked(gemini.mark) if "--acp" in found.command]
        assert len(agents) == 2, "the wrapper and its child"
        await fate(command)
    let_a_minute_pass(gemini)
    async with kandev.watching(work.session_id) as events:
        await remembers(work, events, model, 3, "quince")

"""The adapter with real agent programs: Kandev's scripted one, and one built on ACP's own Python library."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kandev.agentctl.adapters.acp import AcpAdapter
from kandev.agentctl.adapters.base import Spec, Started, StartFailed, TurnEnd, WriteFailed
from kandev.agentctl.process import AgentProcess, agent_environment, find_marked, spawn
from kandev.agentctl.settings import Settings
from tests.agentctl.adapter.peer import Recorder

MOCK = [sys.executable, "-m", "kandev.agentctl.mock_agent"]
LIBRARY = [sys.executable, str(Path(__file__).parent / "library_agent.py")]
DEADLINE_S = 30.0


@dataclass
class Running:
    """A started agent."""

    process: AgentProcess
    adapter: AcpAdapter
    sink: Recorder
    reading: asyncio.Task[None]
    cwd: str

    async def start(self, **members: str | None) -> Started:
        async with asyncio.timeout(DEADLINE_S):
            return await self.adapter.start(Spec(cwd=self.cwd, **members))  # type: ignore[arg-type]

    async def turn(self, text: str) -> TurnEnd:
        """Prompts and waits for the end."""
        count = len(self.sink.of("turn_ended"))
        await self.adapter.prompt(text)
        return await self.ended(count + 1)

    async def ended(self, count: int) -> TurnEnd:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.sink.of("turn_ended")) < count:
                await asyncio.wait([asyncio.ensure_future(self.process.exited())], timeout=0.01)
            end: TurnEnd = self.sink.of("turn_ended")[count - 1]
            return end

    async def close(self) -> None:
        assert await self.process.end(force=True) == []
        async with asyncio.timeout(DEADLINE_S):
            await self.reading


Run = Callable[[list[str]], Awaitable[Running]]


@pytest.fixture
async def run(settings: Settings, worktree: Path) -> AsyncIterator[Run]:
    """Starts agents; ends them, and looks that nothing of them is left."""
    started: list[Running] = []

    async def begin(command: list[str]) -> Running:
        marks = {"KANDEV_HOME": str(worktree), "KANDEV_INCARNATION": "i"}
        paths = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        environment = agent_environment(os.environ, {**marks, **paths})
        whole = replace(settings, line_max_bytes=Settings().line_max_bytes)
        process = await spawn(f"e{len(started)}", command, str(worktree), environment, whole)
        sink = Recorder()
        adapter = AcpAdapter(process, sink, whole)
        reading = asyncio.create_task(adapter.run())
        started.append(Running(process, adapter, sink, reading, str(worktree)))
        return started[-1]

    yield begin
    for running in started:
        await running.close()
    assert find_marked(None, str(worktree)) == []


@pytest.mark.proves("CANCEL-acp-at-once", "CANCEL-process-lives", "CANCEL-acp-prompt-returns", "ACP-prompt")
async def test_a_running_turn_is_cancelled_at_once_and_the_process_takes_the_next_prompt(run: Run) -> None:
    agent = await run(MOCK)
    await agent.start()
    await agent.adapter.prompt("say working\nsleep 600")
    await agent.sink.until("MessageChunk")
    await agent.adapter.cancel()
    async with asyncio.timeout(5):
        assert await agent.ended(1) == TurnEnd("cancelled")
    assert await agent.turn("hello again") == TurnEnd("end_turn")
    assert "hello again" in agent.sink.texts()


@pytest.mark.proves("ACP-load")
async def test_a_conversation_goes_on_in_a_new_process_without_being_shown_again(run: Run) -> None:
    first = await run(MOCK)
    token = (await first.start()).resume_token
    await first.turn("remember the heron")
    await first.close()
    second = await run(MOCK)
    started = await second.start(resume_token=token)
    assert (started.resume_token, started.memory) == (token, True)
    assert second.sink.texts() == ""


@pytest.mark.proves("ACP-not-json", "ACP-huge-line", "ACP-updates")
async def test_garbage_and_a_huge_line_do_not_disturb_a_turn(run: Run) -> None:
    agent = await run(MOCK)
    await agent.start()
    assert await agent.turn("garbage 100\nflood 3000000\nsay end") == TurnEnd("end_turn")
    assert len(agent.sink.texts()) > 2_900_000
    assert agent.sink.texts().endswith("end")


async def test_a_crash_in_a_turn_closes_the_sink_without_an_end(run: Run) -> None:
    agent = await run(MOCK)
    await agent.start()
    await agent.adapter.prompt("say soon\ncrash")
    await agent.sink.until("closed")
    assert agent.sink.of("turn_ended") == []
    assert await agent.process.exited() is not None
    with pytest.raises(WriteFailed):
        await agent.adapter.prompt("hello")


@pytest.mark.field("E23")
async def test_what_a_turn_spawned_is_gone_with_the_execution(run: Run) -> None:
    agent = await run(MOCK)
    await agent.start()
    await agent.turn("spawn 600\nstubborn")
    assert len(agent.process.look()) == 2
    assert await agent.process.end(force=False) == []
    assert agent.process.look() == []


@pytest.mark.proves("BAD-command-exits")
async def test_a_command_that_exits_at_once_fails_the_start(run: Run) -> None:
    agent = await run(["/bin/sh", "-c", "echo usage: agent >&2; exit 2"])
    with pytest.raises(StartFailed, match=r"ended before it was ready|takes no input"):
        await agent.start()
    assert await agent.process.exited() == 2
    assert agent.process.stderr_tail() == ["usage: agent"]


@pytest.mark.proves("BAD-command-no-protocol")
async def test_a_command_that_speaks_no_protocol_is_given_up_at_the_callers_deadline(run: Run) -> None:
    agent = await run(["/bin/sh", "-c", "echo Welcome; while read line; do :; done"])
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await agent.adapter.start(Spec(cwd=agent.cwd))
    assert "Welcome" in agent.sink.of("Notice")[0]["text"]


@pytest.mark.proves("ACP-fs", "ACP-terminal", "ACP-permission", "ACP-updates")
async def test_an_agent_built_on_acps_own_library_is_understood(run: Run, worktree: Path) -> None:
    agent = await run(LIBRARY)
    started = await agent.start()
    assert started.agent_name == "library-agent"
    await agent.adapter.prompt("work")
    ask = await agent.sink.until("permission")
    assert await agent.adapter.answer_permission(ask.request_id, option_id="yes") == "selected"
    assert await agent.ended(1) == TurnEnd("end_turn")
    assert (worktree / "made.txt").read_text() == "by the agent"
    assert agent.sink.texts() == "read:by the agent|ran:hello\n:0|allowed:yes|"

"""Real agents, driven by Kandev through its public doors: prompt, cancel, shell command, restart."""

import asyncio
import secrets

import pytest

from tests.e2e.kandev import Kandev

from . import processes
from .bed import Bed, BedAgent, let_a_minute_pass
from .model import ScriptedModel
from .working import GONE_S, TURN_S, begin, command_ended, remembers

CANCEL_AFTER_MS = (0, 5, 20, 60, 150, 300)


async def test_a_real_agent_answers_and_writes_into_the_tasks_worktree(
    kandev: Kandev, bed: Bed, real_agent: BedAgent
) -> None:
    work = await begin(kandev, bed, real_agent, "hello there")
    async with kandev.watching(work.session_id) as events:
        await work.turn_over(events, 1)
        assert "echo: hello there" in await work.agent_text()
        session = await kandev.call("session.get", {"session_id": work.session_id})
        assert session["worktree_path"].startswith(str(kandev.home))

        await work.say("[write made.txt by-the-agent]")
        await work.turn_over(events, 2)
    changes = await kandev.call("session.changes", {"session_id": work.session_id})
    assert [f["path"] for f in changes["files"]] == ["made.txt"]
    assert "by-the-agent" in (await kandev.call("session.diff", {"session_id": work.session_id}))["diff"]
    assert not (real_agent.workspace / "made.txt").exists(), "the person's own checkout is untouched"


@pytest.mark.proves("CANCEL-test-real-agents")
async def test_a_real_agents_slow_answer_is_cancelled_and_it_takes_the_next_prompt(
    kandev: Kandev, bed: Bed, real_agent: BedAgent
) -> None:
    work = await begin(kandev, bed, real_agent, "[slow 60]")
    async with kandev.watching(work.session_id) as events:
        await events.until("session.message.updated", lambda p: "append" in p)
        assert (await work.cancel())["success"] is True
        assert (await work.turn_over(events, 1))["cause"] == "user"
        assert (await work.say("go on"))["status"] == "sent"
        assert (await work.turn_over(events, 2))["cause"] == "agent"
    assert "echo: go on" in await work.agent_text()
    session = await kandev.call("session.get", {"session_id": work.session_id})
    assert session["execution"]["id"].endswith(".1"), "the process obeyed, and was not replaced"


async def test_a_real_agents_shell_command_ends_with_the_cancel(
    kandev: Kandev, bed: Bed, real_agent: BedAgent
) -> None:
    command = f"sleep 61.{secrets.randbelow(9000) + 1000}"

    def running() -> bool:
        return any(process.command == command for process in processes.marked(real_agent.mark))

    work = await begin(kandev, bed, real_agent, f"[shell {command}]")
    async with kandev.watching(work.session_id) as events:
        await processes.wait_until(running, command, TURN_S)
        assert (await work.cancel())["success"] is True
        await work.turn_over(events, 1)
        await command_ended(work, real_agent, command)
        await work.say("again")
        await work.turn_over(events, 2)
    tools = [m for m in await kandev.messages(work.session_id) if m["type"] == "tool_call"]
    assert tools or real_agent.name == "codexacp", "which tells of a command when it is over"
    assert all(m["metadata"]["status"] not in ("pending", "in_progress") for m in tools)


@pytest.mark.field("A01", "E17")
async def test_a_stop_leaves_nothing_of_a_real_agent_in_mid_command(
    kandev: Kandev, bed: Bed, real_agent: BedAgent
) -> None:
    command = f"sleep 62.{secrets.randbelow(9000) + 1000}"

    def running() -> bool:
        return any(process.command == command for process in processes.marked(real_agent.mark))

    work = await begin(kandev, bed, real_agent, f"[shell {command}]")
    await processes.wait_until(running, command, TURN_S)
    await kandev.call("session.stop", {"session_id": work.session_id})
    await processes.wait_until(lambda: not processes.marked(real_agent.mark), "the agent's end", GONE_S)


@pytest.mark.field("A35")
async def test_a_cancel_right_behind_the_prompt_always_ends_the_turn(
    kandev: Kandev, bed: Bed, real_agent: BedAgent
) -> None:
    work = await begin(kandev, bed, real_agent, "hello")
    async with kandev.watching(work.session_id) as events:
        await work.turn_over(events, 1)
        generation = 1
        for milliseconds in CANCEL_AFTER_MS:
            sent = await work.say("[slow 60]")
            assert sent["status"] == "sent"
            generation += 1
            await after(milliseconds)
            assert (await work.cancel())["success"] is True, f"{milliseconds} ms behind the prompt"
            ended = await work.turn_over(events, generation)
            assert ended["cause"] == "user"
        assert (await work.say("still here"))["status"] == "sent"
        await work.turn_over(events, generation + 1)
    assert "echo: still here" in await work.agent_text()


async def after(milliseconds: int) -> None:
    """The distance between two frames is what is tested here: time is the input, not a wait for something."""
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(milliseconds / 1000, done.set)
    await done.wait()


@pytest.mark.field("D47")
async def test_the_conversation_goes_on_after_a_restart_of_everything(
    kandev: Kandev, bed: Bed, real_agent: BedAgent, model: ScriptedModel
) -> None:
    work = await begin(kandev, bed, real_agent, "remember the word quince")
    async with kandev.watching(work.session_id) as events:
        await work.turn_over(events, 1)
    before = await kandev.messages(work.session_id)
    await kandev.end()
    let_a_minute_pass(real_agent)
    await kandev.start()

    assert await kandev.messages(work.session_id) == before
    async with kandev.watching(work.session_id) as events:
        await remembers(work, events, model, 2, "quince")
    after_restart = await kandev.messages(work.session_id)
    assert after_restart[: len(before)] == before, "the replayed history is not shown twice"
    assert not [m for m in after_restart if "without memory" in m["content"]]

"""A home that cannot be written: said at the start and while running, and nothing in it is lost."""

import asyncio
from pathlib import Path

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.program import run
from tests.e2e.scenes import add, agent_spoke, marked, said, turns_over, until_holds
from tests.host import disks
from tests.host.conftest import on
from tests.host.disks import Disk, Image

pytestmark = pytest.mark.proves("SURVIVE-read-only")

EXIT_S = 25


async def test_a_start_on_it_is_refused_in_a_sentence(disk: Disk, tmp_path: Path) -> None:
    kandev = on(disk, tmp_path)
    async with kandev:
        await kandev.task(title="kept")
        await kandev.stop()
        with disks.read_only(disk.path):
            ran = await run(kandev, "serve", "--port", "0", "--no-browser")
            doctor = await run(kandev, "doctor")
        assert (ran.code, ran.out) == (1, "")
        assert "cannot be written (Read-only file system); choose another one with --home" in ran.err
        assert doctor.code == 1 and "Read-only file system" in doctor.out
        await kandev.start()
        assert [t["title"] for t in (await kandev.call("task.list"))["tasks"]] == ["kept"]


async def test_what_runs_goes_on_and_what_needs_a_new_file_says_so_until_it_can_be_written(
    disk: Disk, tmp_path: Path
) -> None:
    async with on(disk, tmp_path) as kandev:
        task_id, session_id = await kandev.session("say one\nsleep 600")
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
            with disks.read_only(disk.path):
                _, other = await kandev.session("say hello")
                async with kandev.watching(other) as failing:
                    await failing.state("FAILED")
                error = (await kandev.call("session.get", {"session_id": other}))["error"]
                assert "Read-only file system" in error
                assert (await kandev.call("agent.cancel", {"session_id": session_id}))["success"]
                await add(kandev, task_id, session_id, "say two")
                await until_holds(lambda: _tried(kandev, session_id), "the prompt is refused")
            await turns_over(events, 3)
            await until_holds(lambda: _said_two(kandev, session_id), "the prompt is tried again and taken")
        async with kandev.watching(other) as recovering:
            await kandev.call("session.recover", {"session_id": other})
            await turns_over(recovering)
        assert await said(kandev, other) == ["hello"]


async def _tried(kandev: Kandev, session_id: str) -> bool:
    explained = await kandev.call("session.explain", {"session_id": session_id})
    return int(explained["prompt_generation"]) > 2


async def _said_two(kandev: Kandev, session_id: str) -> bool:
    return "two" in await said(kandev, session_id)


async def test_a_medium_that_fails_while_running_is_told_ends_nothing_and_keeps_what_was_accepted(
    medium: Image, tmp_path: Path
) -> None:
    async with on(medium, tmp_path) as kandev:
        task_id, session_id = await kandev.session("say one\nsleep 6\nsay two")
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
            await add(kandev, task_id, session_id, "say three")
        medium.fail()
        with pytest.raises(CallFailed) as refused:
            await add(kandev, task_id, session_id, "say lost")
        assert refused.value.code == "INTERNAL_ERROR"
        assert "disk of the database failed" in refused.value.message
        health = await kandev.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "hindered")
        assert [t["id"] for t in (await kandev.call("task.list"))["tasks"]] == [task_id]
        assert len(marked(session_id)) == 1
        async with asyncio.timeout(EXIT_S):
            assert await kandev.stop() in (0, 1)
        assert len(marked(session_id)) == 1, "the turn goes on under agentctl"
        await kandev.end()
        medium.mend()
        await kandev.start()
        async with kandev.watching(session_id) as events:
            await turns_over(events)
            await events.state("WAITING_FOR_INPUT")
        queue = await kandev.call("message.queue.get", {"session_id": session_id})
        assert [entry["content"] for entry in queue["entries"]] == ["say three"]
        assert await said(kandev, session_id, "user") == ["say one\nsleep 6\nsay two"]

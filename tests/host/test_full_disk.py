"""A full disk: said in a sentence with the way out, nothing that was accepted lost, and no restart needed."""

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from kandev.execution.sidecar import Sidecar, environment_for
from kandev.ports.execution import Unreachable
from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.program import run
from tests.e2e.scenes import (
    add,
    agent_spoke,
    get,
    git,
    marked,
    nothing_left,
    repository,
    repository_id,
    said,
    turns_over,
    until_holds,
)
from tests.host.conftest import on
from tests.host.disks import Disk

pytestmark = pytest.mark.proves("SURVIVE-full-disk")

FULL = "The disk of the database is full: make room, then try again."
EXIT_S = 25


async def health(kandev: Kandev) -> tuple[int, dict[str, str]]:
    answer = await kandev.get("/health")
    return answer.status_code, answer.json()


async def healthy(kandev: Kandev) -> bool:
    return (await health(kandev))[0] == 200


async def test_it_is_named_with_the_way_out_and_work_goes_on_when_there_is_room(
    kandev: Kandev, disk: Disk
) -> None:
    task_id, session_id = await kandev.session("say one\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        accepted = await add(kandev, task_id, session_id, "say two")
        disk.fill()
        for action, payload in (
            ("message.add", {"task_id": task_id, "session_id": session_id, "content": "say lost"}),
            ("agent.cancel", {"session_id": session_id}),
            ("session.stop", {"session_id": session_id}),
            ("task.update", {"id": task_id, "title": "Another title"}),
        ):
            with pytest.raises(CallFailed) as refused:
                await kandev.call(action, payload)
            assert refused.value.code == "INTERNAL_ERROR"
            assert refused.value.message.startswith(FULL), refused.value
            named = re.search(r"error id (\w+)", refused.value.message)
            assert named and f'"{named[1]}"' in kandev.errors.read_text()
        assert await health(kandev) == (503, {"status": "hindered", "version": "0.1.0", "error": FULL})
        explained = await kandev.call("session.explain", {"session_id": session_id})
        assert explained["trouble"] == FULL and FULL in explained["sentence"]
        doctor = await run(kandev, "doctor", "--json")
        (found,) = [c for c in json.loads(doctor.out)["checks"] if c["name"] == "backend"]
        assert (found["verdict"], FULL in found["sentence"], "damaged" in found["sentence"]) == (
            "missing",
            True,
            False,
        )
        assert (await kandev.call("task.get", {"id": task_id}))["title"] == "A task"
        doctor = await run(kandev, "doctor")
        assert f"hindered: {FULL}" in doctor.out and "has 0 MiB left" in doctor.out

        disk.make_room()
        assert (await kandev.call("agent.cancel", {"session_id": session_id}))["success"]
        three = await add(kandev, task_id, session_id, "say three")
        await turns_over(events, 3)
    assert await said(kandev, session_id) == ["one", "three", "two"]
    assert await said(kandev, session_id, "user") == ["say one\nsleep 600", "say three", "say two"]
    for entry in (accepted, three):
        status = await kandev.call("message.status", {"entry_id": entry["entry_id"]})
        assert status["state"] == "delivered"
    assert await health(kandev) == (200, {"status": "ok", "version": "0.1.0"})


async def test_health_comes_back_although_nobody_asks_for_anything(kandev: Kandev, disk: Disk) -> None:
    task = (await kandev.task())["task"]
    disk.fill()
    with pytest.raises(CallFailed):
        await kandev.call("task.update", {"id": task["id"], "title": "Another title"})
    assert not await healthy(kandev)
    disk.make_room()
    await until_holds(lambda: healthy(kandev), "the backend finds by itself that there is room")
    log = kandev.errors.read_text()
    assert "the database cannot be written" in log and "the database is written again" in log


def stream(count: int) -> str:
    """What the line `stream` says."""
    return "".join(f"chunk {n} " for n in range(1, count + 1))


async def test_what_an_agent_says_meanwhile_is_held_up_and_arrives_whole(kandev: Kandev, disk: Disk) -> None:
    _, session_id = await kandev.session("say one\nstream 4000 0\nsay end")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        disk.fill()
        with pytest.raises(CallFailed):
            await kandev.call("session.stop", {"session_id": session_id})
        pid = marked(session_id)
        disk.make_room()
        assert (await turns_over(events))["cause"] == "agent"
    assert "".join(await said(kandev, session_id)) == f"one{stream(4000)}end"
    assert marked(session_id) == pid, "the same process"


async def test_a_flood_waits_in_the_agent_and_not_in_memory(kandev: Kandev, disk: Disk) -> None:
    _, session_id = await kandev.session("say one\nsleep 1\n" + "flood 400000\n" * 20 + "say end")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        disk.fill()
        await until_holds(lambda: _waits(kandev, session_id), "the disk is found to be full")
        disk.make_room()
        assert (await turns_over(events))["cause"] == "agent"
    lengths = [len(text) for text in await said(kandev, session_id)]
    assert len(lengths) == 22 and len(set(lengths[1:-1])) == 1 and lengths[1] > 390_000
    notices = [text for text in await said(kandev, session_id, "system", "status") if "journal" in text]
    assert [text for text in notices if "goes on by itself" in text], notices


async def _waits(kandev: Kandev, session_id: str) -> bool:
    explained = await kandev.call("session.explain", {"session_id": session_id})
    return "trouble" in explained


async def test_a_worktree_that_does_not_fit_fails_its_launch_in_a_sentence_and_is_made_later(
    kandev: Kandev, disk: Disk, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "repository")
    (folder / "large").write_bytes(os.urandom(8 << 20))
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "large")
    repositories = [{"repository_id": await repository_id(kandev, folder)}]
    await kandev.session()  # so that agentctl runs
    disk.fill(leave=4 << 20)
    _, session_id = await kandev.session("say hello", repositories=repositories)
    async with kandev.watching(session_id) as events:
        await events.state("FAILED")
        error = (await get(kandev, session_id))["error"]
        assert "unable to write file large" in error and error.endswith("MiB left: make room, then resume.")
        disk.make_room()
        await kandev.call("session.recover", {"session_id": session_id})
        await turns_over(events)
    assert await said(kandev, session_id) == ["hello"]


async def test_a_start_on_it_is_refused_in_a_sentence_and_changes_nothing(disk: Disk, tmp_path: Path) -> None:
    kandev = on(disk, tmp_path)
    async with kandev:
        await kandev.task(title="kept")
        await kandev.stop()
        disk.fill()
        ran = await run(kandev, "serve", "--port", "0", "--no-browser")
        assert (ran.code, ran.out) == (1, "")
        assert re.fullmatch(r"kandev: .* (full: make room|No space left on device).*\n", ran.err), ran.err
        disk.make_room()
        await kandev.start()
        assert [t["title"] for t in (await kandev.call("task.list"))["tasks"]] == ["kept"]


async def test_a_home_without_room_for_its_address_is_refused_though_the_database_lies_elsewhere(
    disk: Disk, tmp_path: Path
) -> None:
    kandev = on(disk, tmp_path, {"KANDEV_DATABASE_URL": f"sqlite:///{tmp_path / 'elsewhere.db'}"})
    async with kandev:
        await kandev.stop()
        disk.fill()
        ran = await run(kandev, "serve", "--port", "0", "--no-browser")
        assert (ran.code, ran.out) == (1, "")
        assert re.fullmatch(r"kandev: the home .* \(No space left on device\): make room.*\n", ran.err), (
            ran.err
        )
        disk.make_room()
        await kandev.start()


async def test_a_home_without_room_beside_a_database_that_has_some_refuses_agents_and_keeps_turns(
    disk: Disk, tmp_path: Path
) -> None:
    kandev = on(disk, tmp_path, {"KANDEV_DATABASE_URL": f"sqlite:///{tmp_path / 'elsewhere.db'}"})
    async with kandev:
        task_id, session_id = await kandev.session("say one\nsleep 1\nstream 3000 0\nsay end")
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
            disk.fill()
            assert (await turns_over(events))["cause"] == "agent", "output goes on: what is stored is let go"
            assert "".join(await said(kandev, session_id)) == f"one{stream(3000)}end"
            await add(kandev, task_id, session_id, "say two")
            _, other = await kandev.session("say three")
            async with kandev.watching(other) as refused:
                await refused.state("FAILED")
            assert "No space left on device" in (await get(kandev, other))["error"]
            disk.make_room()
            await until_holds(lambda: _said(kandev, session_id, "two"), "the prompt is tried again")
            await kandev.call("session.recover", {"session_id": other})
            await until_holds(lambda: _said(kandev, other, "three"), "and the launch works")


async def _said(kandev: Kandev, session_id: str, text: str) -> bool:
    return (await said(kandev, session_id))[-1:] == [text]


async def test_the_backend_ends_on_it_in_time_and_the_turn_is_taken_up_later(
    kandev: Kandev, disk: Disk
) -> None:
    _, session_id = await kandev.session("say one\nsleep 8\nsay two")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    disk.fill()
    with pytest.raises(CallFailed):
        await kandev.call("session.stop", {"session_id": session_id})
    async with asyncio.timeout(EXIT_S):
        assert await kandev.stop() in (0, 1)
    assert marked(session_id), "the turn goes on under agentctl"
    disk.make_room()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        assert (await turns_over(events))["cause"] == "agent"
    assert await said(kandev, session_id) == ["one", "two"]


async def test_agents_can_be_ended_on_it_with_the_backend(disk: Disk, tmp_path: Path) -> None:
    kandev = on(disk, tmp_path, {"KANDEV_STOP_AGENTS": "true"})
    async with kandev:
        _, session_id = await kandev.session("say one\nsleep 600")
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
        disk.fill()
        async with asyncio.timeout(EXIT_S):
            assert await kandev.stop() in (0, 1)
        await nothing_left(session_id)
        disk.make_room()
        await kandev.start()
        async with kandev.watching(session_id) as events:
            await turns_over(events)
            await events.state("WAITING_FOR_INPUT")


@pytest.mark.field("D41")
async def test_an_agentctl_that_cannot_start_on_it_says_why_and_starts_when_there_is_room(disk: Disk) -> None:
    home = disk.path / "home"
    home.mkdir()
    sidecar = Sidecar(home, environment_for(home))
    disk.fill()
    with pytest.raises(Unreachable, match=r"No space left on device.*make room"):
        await sidecar.ensure(20)
    disk.make_room()
    await sidecar.ensure(20)
    await sidecar.end(20)

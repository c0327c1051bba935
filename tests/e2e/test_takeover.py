"""What the next backend does with what it did not begin: takes over, stops, recovers, and leaves alone."""

import sqlite3
from pathlib import Path

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    get,
    marked,
    no_instances,
    nothing_left,
    profile,
    repository,
    repository_id,
    said,
    turns_over,
    until_holds,
    until_true,
)


def prompted(wire: Path) -> int:
    """How many prompts an agent got, from its own log."""
    return wire.read_text().count("session/prompt") if wire.exists() else 0


@pytest.mark.field("A07", "A45", "D01", "E01")
@pytest.mark.parametrize("idle", [False, True])
async def test_a_session_that_was_taken_over_is_stopped_like_any_other(kandev: Kandev, idle: bool) -> None:
    _, session_id = await kandev.session("spawn 600\nsay hello" + ("" if idle else "\nsleep 600"))
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
        if idle:
            await turns_over(events)
    processes = marked(session_id)
    assert len(processes) == 2
    await kandev.kill()
    await kandev.start()
    assert await kandev.call("session.stop", {"session_id": session_id}) == {"success": True}
    assert (await get(kandev, session_id))["state"] == "CANCELLED"
    await nothing_left(session_id)
    assert not [pid for pid in processes if alive(pid)]


@pytest.mark.field("A45", "D01")
async def test_another_client_of_another_backend_cancels_what_neither_of_them_began(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    (agent,) = marked(session_id)
    await kandev.kill()
    await kandev.start()
    async with kandev.events() as stranger, kandev.watching(session_id) as events:
        answer = await stranger.request("agent.cancel", {"session_id": session_id})
        assert answer["payload"] == {"success": True, "session_id": session_id}
        assert (await turns_over(events))["cause"] == "user"
        assert (await add(kandev, task_id, session_id, "say on"))["status"] == "sent"
        await turns_over(events, 2)
    assert marked(session_id) == [agent]


@pytest.mark.field("D43", "D45", "C07")
async def test_what_waited_is_delivered_by_the_next_backend_although_nobody_opens_a_session(
    tmp_path: Path,
) -> None:
    async with Kandev(tmp_path / "home", {"KANDEV_SWEEP_S": "600"}) as kandev:
        parent, sessions = (await kandev.task())["task"]["id"], []
        for number, more in enumerate(({}, {"parent_id": parent})):
            wire = tmp_path / f"wire-{number}.jsonl"
            logged = await profile(kandev, env={"MOCK_AGENT_LOG": str(wire)}, name=f"Logged {number}")
            task_id, session_id = await kandev.session("stream 40 20", agent_profile_id=logged, **more)
            async with kandev.watching(session_id) as events:
                await agent_spoke(events)
            await add(kandev, task_id, session_id, "say queued")
            sessions.append((session_id, wire))
        await kandev.kill()
        assert [prompted(wire) for _, wire in sessions] == [1, 1]
        await kandev.start()
        await until_true(lambda: all(prompted(wire) == 2 for _, wire in sessions), "the queues go on")
        for session_id, _ in sessions:
            async with kandev.watching(session_id) as events:
                await turns_over(events, 2)
            assert (await said(kandev, session_id))[-1] == "queued"


@pytest.mark.field("A13", "A31", "D15")
async def test_a_process_that_no_session_names_is_ended_by_the_next_backend(kandev: Kandev) -> None:
    _, session_id = await kandev.session("spawn 600\nsay hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
    await kandev.kill()
    with sqlite3.connect(kandev.home / "kandev.db") as database:
        database.execute("PRAGMA foreign_keys = ON")
        database.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
    database.close()
    assert len(marked(session_id)) == 2
    await kandev.start()
    await nothing_left(session_id)
    await until_holds(lambda: no_instances(kandev), "agentctl has nothing of it")


@pytest.mark.field("D29")
async def test_a_stopped_session_keeps_words_worktree_and_queue_and_starts_only_when_it_is_resumed(
    tmp_path: Path,
) -> None:
    async with Kandev(tmp_path / "home", {"KANDEV_SWEEP_S": "0.1"}) as kandev:
        known = await repository_id(kandev, repository(tmp_path / "repository"))
        chosen = [{"repository_id": known}]
        task_id, session_id = await kandev.session("say partial\nstream 500 10", repositories=chosen)
        async with kandev.watching(session_id) as events:
            await events.until("session.message.added", lambda p: p["message"]["content"] == "partial")
            await add(kandev, task_id, session_id, "say later")
            worktree = Path((await get(kandev, session_id))["worktree_path"])
            (worktree / "made.txt").write_text("half a thought\n")
            await kandev.call("session.stop", {"session_id": session_id})
            await nothing_left(session_id)
        await kandev.kill()
        await kandev.start()
        _, beside = await kandev.session("say beside")
        async with kandev.watching(beside) as events:
            await turns_over(events)
        with pytest.raises(CallFailed) as refused:
            await add(kandev, task_id, session_id, "say wake up")
        assert refused.value.code == "CONFLICT"
        session = await get(kandev, session_id)
        assert (session["state"], session["queue"]["count"], marked(session_id)) == ("CANCELLED", 1, [])
        assert (worktree / "made.txt").read_text() == "half a thought\n"
        assert (await said(kandev, session_id))[0] == "partial"
        await kandev.call("session.recover", {"session_id": session_id})
        async with kandev.watching(session_id) as events:
            await turns_over(events, 2)
        assert (await said(kandev, session_id))[-1] == "later"
        assert (worktree / "made.txt").exists()

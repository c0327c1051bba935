"""Hostile clients at both doors, and words that a program below does not take."""

import asyncio
import json
from collections import Counter
from pathlib import Path

from websockets.asyncio.client import connect

from tests.attacks.scenes import hostile, memory
from tests.e2e.kandev import Kandev
from tests.e2e.scenes import add, agent_spoke, get, repository, repository_id, said, turns_over

LARGE = 2_000_000


async def test_fifty_repeats_of_a_message_at_once_are_one_message_and_harm_nobody_beside_them(
    kandev: Kandev,
) -> None:
    for round in range(4):
        task_id, session_id = await kandev.session("say hello\nsleep 600")
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
        message = {"task_id": task_id, "session_id": session_id, "content": "say once"}
        asks = [kandev.post("message.add", {**message, "idempotency_key": "k"}) for _ in range(50)]
        others = [kandev.post("message.add", {**message, "content": f"say {n}"}) for n in range(5)]
        answers = await asyncio.gather(*asks, *others)
        assert Counter(answer.status_code for answer in answers) == {200: 55}, round
        queue = await kandev.call("message.queue.get", {"session_id": session_id})
        assert len(queue["entries"]) == 6
        await kandev.call("session.stop", {"session_id": session_id})


async def test_a_client_that_asks_for_much_and_reads_nothing_costs_little_memory(kandev: Kandev) -> None:
    agent = await hostile(kandev)
    task_id, session_id = await kandev.session("say hello", agent_profile_id=agent)
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    for count in range(2, 8):
        await add(kandev, task_id, session_id, f"long {LARGE}")
        async with kandev.watching(session_id) as events:
            await turns_over(events, count)
    assert kandev.process is not None
    before = memory(kandev.process.pid)
    async with connect(kandev.url.replace("http", "ws", 1) + "/ws", proxy=None) as deaf:
        deaf.transport.pause_reading()
        frame = {"type": "request", "action": "session.subscribe", "payload": {"session_id": session_id}}
        for n in range(60):
            await deaf.send(json.dumps({"id": str(n), **frame}))
        for _ in range(20):  # behind each of these, more of those were answered
            await get(kandev, session_id)
            await kandev.call("message.list", {"session_id": session_id, "limit": 1})
        grown = memory(kandev.process.pid) - before
        deaf.transport.abort()
    assert grown < 80 << 20, f"{grown >> 20} MiB for one client"


async def test_a_path_that_no_disk_has_is_named_in_a_sentence(kandev: Kandev) -> None:
    payload = {"workspace_id": await kandev.workspace(), "local_path": "/" + "a" * 4000}
    answer = await kandev.post("repository.create", payload)
    assert answer.status_code == 422, answer.text


async def test_a_base_branch_with_a_nul_is_refused_at_the_door(kandev: Kandev, tmp_path: Path) -> None:
    known = await repository_id(kandev, repository(tmp_path / "repository"))
    workspace_id = await kandev.workspace()
    workflows = (await kandev.call("workflow.list", {"workspace_id": workspace_id}))["workflows"]
    chosen = [{"repository_id": known, "base_branch": "ma\0in"}]
    payload = {"workspace_id": workspace_id, "workflow_id": workflows[0]["id"], "title": "A task"}
    answer = await kandev.post("task.create", {**payload, "repositories": chosen})
    assert answer.status_code == 422, answer.text


async def test_a_worktree_that_the_disk_refuses_ends_the_launch_at_once_with_the_reason(
    kandev: Kandev, tmp_path: Path
) -> None:
    known = await repository_id(kandev, repository(tmp_path / "repository"))
    (kandev.home / "tasks").write_text("in the way")
    _, session_id = await kandev.session("say hello", repositories=[{"repository_id": known}])
    async with kandev.watching(session_id) as events:
        async with asyncio.timeout(10):
            await events.state("FAILED")
    (line,) = await said(kandev, session_id, "system", "error")
    assert "Not a directory" in line or "File exists" in line

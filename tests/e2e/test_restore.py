"""Backup, work on, restore: the next start owns its agents, repeats nothing by itself, and work goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from kandev.execution.seen import read_seen
from tests.e2e.kandev import Kandev
from tests.e2e.program import Ran, run
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    get,
    marked,
    said,
    turns_over,
    until_true,
)
from tests.storage import damaging


async def _backup(kandev: Kandev) -> str:
    ran = await run(kandev, "db", "backup")
    assert ran.code == 0, ran
    return ran.out.strip()


async def _restore(kandev: Kandev, copy: str, *words: str) -> Ran:
    ran = await run(kandev, "db", "restore", copy, *words)
    assert ran.code == 0, ran
    return ran


@pytest.mark.proves("STORE-backup", "STORE-restore", "STORE-restored-start")
async def test_after_a_restore_a_message_is_answered_in_the_same_conversation(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say one")
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    copy = await _backup(kandev)
    # What the copy knows nothing of: turns, executions, tasks, starts of the backend.
    await add(kandev, task_id, session_id, "say two")
    async with kandev.watching(session_id) as events:
        await turns_over(events, 2)
    await kandev.stop()
    await kandev.start()
    await add(kandev, task_id, session_id, "say three")
    async with kandev.watching(session_id) as events:
        await turns_over(events, 3)
    last = (await get(kandev, session_id))["execution"]["id"]
    late_task, late_session = await kandev.session("say late")
    async with kandev.watching(late_session) as events:
        await turns_over(events)
    await kandev.stop()
    seen = read_seen(kandev.home)
    await _restore(kandev, copy)
    await kandev.start()
    assert await said(kandev, session_id) == ["one"]
    assert late_task not in [t["id"] for t in (await kandev.call("task.list"))["tasks"]]
    async with kandev.watching(session_id) as events:
        sent = await add(kandev, task_id, session_id, "say four")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "four")
        await events.state("WAITING_FOR_INPUT")
    assert (await kandev.call("message.status", {"entry_id": sent["entry_id"]}))["state"] == "delivered"
    assert await said(kandev, session_id) == ["one", "four"]
    execution = (await get(kandev, session_id))["execution"]["id"]
    number = int(execution.rpartition(".")[2])
    assert number > int(last.rpartition(".")[2]), "no execution has the name of another"
    assert read_seen(kandev.home).epoch > seen.epoch


@pytest.mark.proves("STORE-restored-start")
async def test_what_was_at_work_when_the_copy_was_made_is_idle_and_what_waited_waits(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say begun\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    waiting = await add(kandev, task_id, session_id, "say queued")
    copy = await _backup(kandev)
    await kandev.call("agent.cancel", {"session_id": session_id})
    await kandev.stop()
    await _restore(kandev, copy)
    await kandev.start()
    session = await get(kandev, session_id)
    assert (session["state"], session["queue"]["count"]) == ("WAITING_FOR_INPUT", 1)
    assert "restored from a copy" in session["parked_reason"]
    assert (await kandev.call("task.get", {"id": task_id}))["state"] == "REVIEW"
    assert marked(session_id) == []
    async with kandev.watching(session_id) as events:
        await add(kandev, task_id, session_id, "say new")
        await turns_over(events, 2)
    assert await said(kandev, session_id) == ["begun", "new", "queued"]
    state = await kandev.call("message.status", {"entry_id": waiting["entry_id"]})
    assert state["state"] == "delivered"


@pytest.mark.proves("STORE-restore-alone", "STORE-restored-start")
async def test_agents_at_work_are_ended_before_a_restore_and_only_when_that_is_asked(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say begun\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    copy = await _backup(kandev)
    refused = await run(kandev, "db", "restore", copy)
    assert (refused.code, "A backend uses the home" in refused.err) == (1, True)
    await kandev.kill()
    refused = await run(kandev, "db", "restore", copy)
    assert (refused.code, "--stop-agents" in refused.err) == (1, True)
    (agent,), agentctl = marked(session_id), kandev.agentctl_pid()
    damaged = kandev.home / "damaged.db"
    shutil.copyfile(copy, damaged)
    damaging.damage_root(damaged, "messages")
    refused = await run(kandev, "db", "restore", str(damaged), "--stop-agents")
    assert (refused.code, "nothing was changed" in refused.err) == (1, True)
    assert alive(agent) and alive(agentctl), "nobody is ended for a file that cannot be taken"
    await _restore(kandev, copy, "--stop-agents")
    assert not (alive(agent) or alive(agentctl))
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await add(kandev, task_id, session_id, "say again")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "again")
    assert await said(kandev, session_id) == ["begun", "again"]


@pytest.mark.proves("STORE-restored-start")
async def test_a_database_that_was_put_back_by_hand_is_told_from_what_agentctl_saw(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say one")
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    copy = Path(await _backup(kandev))
    await kandev.kill()
    await kandev.start()
    await add(kandev, task_id, session_id, "say two\nsleep 600")
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "two")
    await kandev.kill()
    (agent,) = marked(session_id)
    for suffix in ("-wal", "-shm"):
        (kandev.home / f"kandev.db{suffix}").unlink(missing_ok=True)
    (kandev.home / "kandev.db").write_bytes(copy.read_bytes())
    await kandev.start()
    assert not alive(agent), "nobody's agent works on"
    async with kandev.watching(session_id) as events:
        await add(kandev, task_id, session_id, "say three")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "three")
    assert await said(kandev, session_id) == ["one", "three"]


@pytest.mark.proves("STORE-restored-start")
async def test_what_a_dead_agentctl_left_running_ends_before_a_restored_database_is_used(
    kandev: Kandev,
) -> None:
    _, session_id = await kandev.session("stubborn\nsay begun\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    copy = await _backup(kandev)
    (agent,), agentctl = marked(session_id), kandev.agentctl_pid()
    await kandev.kill()
    os.kill(agentctl, signal.SIGKILL)
    await until_true(lambda: not alive(agentctl), "agentctl is gone")
    assert alive(agent)
    await _restore(kandev, copy)
    await kandev.start()
    assert not alive(agent)
    assert (await get(kandev, session_id))["state"] == "WAITING_FOR_INPUT"


@pytest.mark.proves("STORE-damaged-start")
async def test_a_start_on_a_damaged_database_is_one_sentence_and_a_restore_mends_it(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say one")
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    copy = await _backup(kandev)
    await kandev.stop()
    path = kandev.home / "kandev.db"
    damaging.damage_root(path, "messages")
    before = path.read_bytes()
    ran = await run(kandev, "serve", "--port", "0", "--no-browser")
    assert (ran.code, ran.out) == (1, "")
    (sentence,) = ran.err.splitlines()
    assert str(path) in sentence
    assert Path(copy).name in sentence
    assert "kandev db restore" in sentence
    assert path.read_bytes() == before
    checked = await run(kandev, "db", "check")
    assert (checked.code, "damaged" in checked.out) == (1, True)
    await _restore(kandev, copy)
    await kandev.start()
    assert await said(kandev, session_id) == ["one"]


@pytest.mark.proves("STORE-damaged-running")
async def test_damage_met_at_work_is_a_clear_state_and_nothing_more_is_written(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say one")
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    copy = await _backup(kandev)
    await kandev.stop()
    await kandev.start()
    assert (await kandev.get("/health")).json()["status"] == "ok"
    damaging.damage_root(kandev.home / "kandev.db", "messages")
    answer = await kandev.post("message.list", {"session_id": session_id})
    assert (answer.status_code, answer.json()["code"]) == (500, "INTERNAL_ERROR")
    health = await kandev.get("/health")
    assert (health.status_code, health.json()["status"]) == (503, "damaged")
    assert "kandev db restore" in health.json()["error"]
    refused = await kandev.post("task.update", {"id": task_id, "title": "Another title"})
    assert refused.json()["code"] == "INTERNAL_ERROR"
    assert (await kandev.call("task.get", {"id": task_id}))["title"] == "A task"
    assert "the database is damaged" in (kandev.home / "backend.err").read_text()
    explained = await kandev.call("session.explain", {"session_id": session_id})
    assert "kandev db restore" in explained["trouble"] and explained["trouble"] in explained["sentence"]
    doctor = await run(kandev, "doctor", "--json")
    (found,) = [c for c in json.loads(doctor.out)["checks"] if c["name"] == "backend"]
    assert (found["verdict"], "damaged" in found["sentence"]) == ("missing", True)
    with suppress(httpx.HTTPError):
        assert await kandev.stop() == 0, "it still ends by itself"
    await _restore(kandev, copy)
    await kandev.start()
    assert await said(kandev, session_id) == ["one"]

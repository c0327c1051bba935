"""The main job on the command line, as a newcomer does it, for people and for programs."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.kandev import DEADLINE_S, Kandev
from tests.e2e.program import run
from tests.e2e.scenes import agent_spoke, marked, repository, turns_over, until_true


@pytest.mark.proves("CLI-commands", "CLI-tail", "CANCEL-layer-cli")
async def test_a_newcomer_starts_watches_cancels_asks_again_reviews_and_stops(
    house: Kandev, tmp_path: Path
) -> None:
    folder = repository(tmp_path / "repo")
    made = await run(
        house,
        *("task", "create", "Fix the login page", "--repo", str(folder), "--agent", "mock"),
        *("--prompt", "-", "--start"),
        stdin="say I begin\nsleep 600",
    )
    assert made.code == 0, made
    assert "kandev tail" in made.out
    session_id = made.out.split("kandev tail ")[1].split("`")[0]
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        shown = await run(house, "session", "explain", session_id)
        assert shown.out.startswith("The agent is working.")
        cancelled = await run(house, "cancel", session_id)
        assert (cancelled.code, cancelled.out) == (0, "Turn cancelled; the session takes a new prompt.\n")
        nothing = await run(house, "cancel", session_id)
        assert (nothing.code, nothing.out) == (0, "No turn was running; nothing was cancelled.\n")
        again = await run(house, "message", "send", session_id, "say all done")
        assert again.code == 0 and again.out.startswith("sent")
        await turns_over(events, 2)
    watched = await run(house, "tail", "--until-idle", session_id)
    assert watched.code == 0, watched
    for words in ("I begin", "cancelled", "all done"):
        assert words in watched.out
    tree = Path((await house.call("session.get", {"session_id": session_id}))["worktree_path"])
    (tree / "README.md").write_text("# Hello\nworld\n")
    diff = await run(house, "session", "diff", session_id)
    assert "+world" in diff.out
    nowhere = await run(house, "session", "diff", session_id, "nowhere.txt")
    assert nowhere.code == 1 and "There is no 'nowhere.txt'" in nowhere.err
    changes = await run(house, "session", "changes", session_id)
    assert "README.md" in changes.out
    (tree / "README.md").write_text("# Hello\n")
    task_id = (await house.call("session.get", {"session_id": session_id}))["task_id"]
    stopped = await run(house, "stop", task_id)
    assert stopped.code == 0, stopped
    again = await run(house, "stop", task_id)
    assert (again.code, again.err) == (1, "kandev: Nothing of it runs: there is nothing to stop.\n")
    assert (await run(house, "task", "delete", task_id)).code == 2
    assert "Traceback" not in (house.home / "backend.err").read_text()
    await until_true(lambda: not marked(session_id), "the agent is gone")


@pytest.mark.proves("CLI-commands", "CANCEL-layer-cli")
async def test_a_program_does_the_same_and_reads_json(house: Kandev, tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    words = ("task", "create", "T", "--repo", str(folder), "--prompt", "say hi\nsleep 600", "--start")
    made = (await run(house, *words, "--json")).data
    task_id, session_id = made["task"]["id"], made["session_id"]
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        explained = (await run(house, "session", "explain", session_id, "--json")).data
        assert explained["sentence"].startswith("The agent is working.") and explained["phase"] == "running"
        assert (await run(house, "cancel", task_id, "--json")).data == {
            "success": True,
            "session_id": session_id,
        }
        sent = (await run(house, "message", "send", task_id, "say more", "--json")).data
        assert sent["status"] == "sent"
        await turns_over(events, 2)
    fate = (await run(house, "message", "status", sent["entry_id"], "--json")).data
    assert fate["state"] == "delivered"
    listed = (await run(house, "message", "list", session_id, "--json")).data["messages"]
    assert [m["content"] for m in listed if m["author_type"] == "agent"] == ["hi", "more"]
    assert [t["id"] for t in (await run(house, "task", "list", "--json")).data["tasks"]] == [task_id]
    sessions = (await run(house, "session", "list", task_id, "--json")).data["sessions"]
    assert [s["id"] for s in sessions] == [session_id]
    assert (await run(house, "session", "diff", session_id, "--json")).data == {"diff": ""}
    tailed = await run(house, "tail", "--until-idle", "--json", session_id)
    first = json.loads(tailed.out.splitlines()[0])
    assert first["action"] == "snapshot" and first["payload"]["session"]["id"] == session_id
    assert (await run(house, "stop", task_id, "--json")).data["success"] is True
    shown = (await run(house, "task", "show", task_id, "--json")).data
    assert (shown["state"], shown["sessions"][0]["state"]) == ("REVIEW", "CANCELLED")
    assert (await run(house, "task", "delete", task_id, "--yes", "--json")).data["success"] is True


@pytest.mark.proves("CLI-commands", "CANCEL-layer-cli")
async def test_a_task_that_was_only_created_is_started_with_what_it_says(house: Kandev) -> None:
    made = await run(house, "task", "create", "say hello", "--agent", "mock")
    launched = await run(house, *made.out.split("`kandev ")[1].split("`")[0].split())
    assert launched.code == 0 and "Its first message is the task's title." in launched.out
    session_id = launched.out.split("kandev tail ")[1].split("`")[0]
    watched = await run(house, "tail", "--until-idle", session_id)
    assert "agent: hello" in watched.out


@pytest.mark.proves("CLI-commands", "CANCEL-layer-cli")
async def test_a_task_with_several_sessions_means_the_one_at_work(house: Kandev) -> None:
    task_id, first = await house.session("say hello")
    async with house.watching(first) as events:
        await turns_over(events)
    launch = {"task_id": task_id, "prompt": "say second\nsleep 600"}
    second = str((await house.call("session.launch", launch))["session_id"])
    async with house.watching(second) as events:
        await agent_spoke(events)
        explained = (await run(house, "session", "explain", task_id, "--json")).data
        assert explained["session_id"] == second
        await house.call("message.add", {"task_id": task_id, "session_id": first, "content": "sleep 600"})
        several = await run(house, "cancel", task_id)
        assert several.code == 1 and first in several.err and second in several.err
        assert (await house.call("session.get", {"session_id": second}))["state"] == "RUNNING"
        await house.call("agent.cancel", {"session_id": first})
        assert (await run(house, "cancel", task_id, "--json")).data["session_id"] == second
        await turns_over(events)


@pytest.mark.proves("CLI-tail")
async def test_a_permission_that_was_rejected_reads_so_in_tail(house: Kandev) -> None:
    _, session_id = await house.session("ask May I delete it?")
    async with house.watching(session_id) as events:
        await events.until("session.permission_requested")
        answered = await run(house, "permission", "answer", session_id, "--reject")
        assert answered.code == 0, answered
        await turns_over(events)
    watched = await run(house, "tail", "--until-idle", session_id)
    assert "permission: May I delete it?: rejected" in watched.out.splitlines()


@pytest.mark.proves("CLI-tail")
async def test_tail_follows_a_session_live_until_it_is_over(house: Kandev) -> None:
    _, session_id = await house.session("ask Go on\nstream 20 5")
    command = [sys.executable, "-m", "kandev", "tail", session_id]
    process = subprocess.Popen(
        command, env=house.env(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert process.stdout is not None
    try:
        async with house.watching(session_id) as events, asyncio.timeout(DEADLINE_S):
            asked = await events.until("session.permission_requested")
            seen = ""
            while "Go on" not in seen:
                seen += await asyncio.to_thread(process.stdout.readline)
            answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": "allow_once"}
            await house.call("permission.respond", answer)
            await turns_over(events)
            await house.call("session.stop", {"session_id": session_id})
            seen += await asyncio.to_thread(process.stdout.read)
            assert await asyncio.to_thread(process.wait, DEADLINE_S) == 0
    finally:
        process.kill()
        process.stdout.close()
    assert "".join(f"chunk {n} " for n in range(1, 21)).strip() in seen.replace("\n", "")
    assert "CANCELLED" in seen


@pytest.mark.proves("CANCEL-layer-cli")
async def test_a_cancel_that_the_agent_does_not_obey_exits_1_and_says_so(house: Kandev) -> None:
    _, session_id = await house.session("say hello\ndeaf 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        ran = await run(house, "cancel", session_id)
        assert (ran.code, ran.out) == (1, "")
        assert "cancel timed out, still under way" in ran.err
        assert f"`kandev session explain {session_id}`" in ran.err
        await events.state("WAITING_FOR_INPUT")
    called = await run(house, "call", "agent.cancel", json.dumps({"session_id": session_id}))
    assert called.code == 1 and called.error["code"] == "CONFLICT"


@pytest.mark.proves("CLI-call", "CLI-find-backend")
async def test_call_prints_the_answer_or_the_error_object(house: Kandev, tmp_path: Path) -> None:
    assert (await run(house, "call", "health.check")).data["status"] == "ok"
    refused = await run(house, "call", "task.get", '{"id": "nobody"}')
    assert (refused.out, refused.error["code"]) == ("", "NOT_FOUND")
    unknown = await run(house, "call", "no.such.action", "{}")
    assert unknown.error["code"] == "UNKNOWN_ACTION"
    for payload in ("{", "[]", "7"):
        wrong = await run(house, "call", "task.get", payload)
        assert wrong.code != 0 and wrong.out == "" and "Traceback" not in wrong.err
    elsewhere = {"KANDEV_HOME": str(tmp_path / "nobody-here")}
    nobody = await run(house, "task", "list", **elsewhere)
    assert nobody.code == 1 and "kandev" in nobody.err and "Traceback" not in nobody.err
    away = await run(house, "call", "health.check", KANDEV_URL=house.url, **elsewhere)
    assert away.data["status"] == "ok"
    named = await run(house, "call", "health.check", "--url", house.url)
    assert named.data["status"] == "ok"


@pytest.mark.proves("CLI-version", "CLI-doctor", "CLI-agents")
async def test_version_doctor_and_agents_answer(house: Kandev) -> None:
    version = await run(house, "--version")
    assert version.code == 0 and version.out.startswith("kandev ")
    doctor = (await run(house, "doctor", "--json")).data
    assert "git" in json.dumps(doctor)
    poor = await run(house, "doctor", PATH="/nowhere")
    assert poor.code == 1 and "git" in poor.out and "Traceback" not in poor.err
    agents = (await run(house, "agents", "--json")).data["agents"]
    assert {"gemini", "opencode"} <= {a["name"] for a in agents}
    assert all(isinstance(a["found"], bool) for a in agents)


async def test_a_reader_that_has_enough_ends_tail_quietly(house: Kandev) -> None:
    _, session_id = await house.session("say " + "x" * 200)
    async with house.watching(session_id) as events:
        await turns_over(events)
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "kandev", "tail", "--until-idle", session_id]
    with open(writing, "wb") as full:  # noqa: PTH123 - a descriptor
        done = await asyncio.to_thread(
            subprocess.run, command, env=house.env(), stdout=full, stderr=subprocess.PIPE, timeout=DEADLINE_S
        )
    assert b"Traceback" not in done.stderr

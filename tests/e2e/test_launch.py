"""Launches that cannot work say why, keep the message and the task, and work as soon as the cause is gone."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import (
    add,
    get,
    git,
    marked,
    profile,
    repository,
    repository_id,
    said,
    turns_over,
    until_true,
)


async def failed(house: Kandev, task_id: str, session_id: str) -> str:
    """The launch failed as it must: the session FAILED, the message waiting, the task as before. Its
    sentence."""
    async with house.watching(session_id) as events:
        await events.state("FAILED")
        told = await events.until("session.agentctl_error")
    session = await get(house, session_id)
    assert (session["state"], session["queue"]["count"]) == ("FAILED", 1)
    task = await house.call("task.get", {"id": task_id})
    assert task["state"] == "TODO"
    assert task["error"] == session["error"] == told["error"]
    lines = await said(house, session_id, "system", "error")
    assert len(lines) == 1 and session["error"] in lines[0]
    assert "Traceback" not in lines[0]
    assert (await house.call("session.explain", {"session_id": session_id}))["error"] == session["error"]
    await until_true(lambda: not marked(session_id), "nothing of the launch is left")
    return str(session["error"])


async def recovers(house: Kandev, task_id: str, session_id: str) -> None:
    """The explicit resume tries again, and the message that waited is delivered."""
    answer = await house.call("session.recover", {"session_id": session_id})
    assert answer == {"success": True, "state": "STARTING", "queued": 1}
    async with house.watching(session_id) as events:
        await turns_over(events)
    assert await said(house, session_id) == ["hello"]
    task = await house.call("task.get", {"id": task_id})
    assert (task["state"], task.get("error")) == ("REVIEW", None)


async def good_command(house: Kandev) -> list[str]:
    profiles = await house.call("agent.profile.list")
    return list(profiles["profiles"][0]["command"])


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[Kandev]:
    """One that waits a second for a launch."""
    async with Kandev(tmp_path / "home", {"KANDEV_LAUNCH_S": "1"}) as running:
        yield running


@pytest.mark.proves("BAD-command-missing", "ACT-session.recover", "NOTE-session.agentctl")
async def test_a_command_that_does_not_exist_is_named_and_mended_in_the_profile(house: Kandev) -> None:
    broken = await profile(house, ["no-such-agent-anywhere", "--acp"])
    task_id, session_id = await house.session("say hello", agent_profile_id=broken)
    assert "no-such-agent-anywhere" in await failed(house, task_id, session_id)
    await house.call("agent.profile.update", {"id": broken, "command": await good_command(house)})
    await recovers(house, task_id, session_id)


@pytest.mark.proves("BAD-command-exits", "BAD-no-traceback")
async def test_a_command_that_exits_at_once_shows_its_code_and_last_words(house: Kandev) -> None:
    script = "echo first words >&2; echo out of credit >&2; exit 7"
    broken = await profile(house, ["/bin/sh", "-c", script])
    task_id, session_id = await house.session("say hello", agent_profile_id=broken)
    sentence = await failed(house, task_id, session_id)
    assert sentence == "The agent exited with code 7 before it was ready."
    line = next(m for m in await house.messages(session_id) if m["type"] == "error")
    assert line["content"].endswith("\nfirst words\nout of credit")
    assert line["metadata"]["stderr_tail"] == ["first words", "out of credit"]
    await house.call("agent.profile.update", {"id": broken, "command": await good_command(house)})
    await recovers(house, task_id, session_id)


@pytest.mark.proves("BAD-command-no-protocol", "INV-8", "INV-10")
@pytest.mark.field("A31", "D07")
async def test_a_command_that_speaks_no_protocol_fails_at_its_deadline_and_is_ended(quick: Kandev) -> None:
    broken = await profile(quick, ["sleep", "600"])
    task_id, session_id = await quick.session("say hello", agent_profile_id=broken)
    sentence = await failed(quick, task_id, session_id)
    assert "not ready within 1 s" in sentence
    await quick.call("agent.profile.update", {"id": broken, "command": await good_command(quick)})
    await recovers(quick, task_id, session_id)


async def test_an_agent_that_demands_a_login_is_quoted(house: Kandev) -> None:
    locked = await profile(house, env={"MOCK_AGENT_LOGIN": "1"})
    task_id, session_id = await house.session("say hello", agent_profile_id=locked)
    sentence = await failed(house, task_id, session_id)
    assert sentence.startswith("The agent demands a login: "), sentence
    await house.call("agent.profile.update", {"id": locked, "env": {}})
    await recovers(house, task_id, session_id)


async def test_a_repository_that_was_deleted_is_named(house: Kandev, tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    known = await repository_id(house, folder)
    task_id, session_id = "", ""
    folder.rename(tmp_path / "elsewhere")
    task = await house.task(repositories=[{"repository_id": known}])
    task_id = task["task"]["id"]
    launched = await house.call("session.launch", {"task_id": task_id, "prompt": "say hello"})
    session_id = launched["session_id"]
    assert str(folder) in await failed(house, task_id, session_id)
    (tmp_path / "elsewhere").rename(folder)
    await recovers(house, task_id, session_id)


async def test_a_base_branch_that_does_not_exist_is_named(house: Kandev, tmp_path: Path) -> None:
    folder = repository(tmp_path / "repo")
    known = await repository_id(house, folder)
    task_id, session_id = await house.session(
        "say hello", repositories=[{"repository_id": known, "base_branch": "no-such-branch"}]
    )
    assert "no-such-branch" in await failed(house, task_id, session_id)
    git(folder, "branch", "no-such-branch")
    await recovers(house, task_id, session_id)


@pytest.mark.proves("ACT-session.launch")
async def test_each_intent_of_a_launch_does_what_it_says(house: Kandev) -> None:
    task_id = (await house.task())["task"]["id"]

    async def launch(**more: Any) -> dict[str, Any]:
        return await house.call("session.launch", {"task_id": task_id, **more})

    prepared = await launch(intent="prepare")
    assert (prepared["success"], prepared["state"]) == (True, "CREATED")
    assert "agent_execution_id" not in prepared
    assert Path(prepared["worktree_path"]).is_dir()
    session_id = prepared["session_id"]
    assert not marked(session_id)
    with pytest.raises(CallFailed) as early:
        await launch(intent="resume", session_id=session_id)
    assert early.value.code == "CONFLICT"
    begun = await launch(intent="start_created", session_id=session_id, prompt="say one")
    assert (begun["session_id"], begun["state"]) == (session_id, "STARTING")
    assert begun["agent_execution_id"]
    async with house.watching(session_id) as events:
        await turns_over(events)
        with pytest.raises(CallFailed) as twice:
            await launch(intent="start_created", session_id=session_id)
        assert twice.value.code == "CONFLICT"
        with pytest.raises(CallFailed) as running:
            await launch(intent="resume", session_id=session_id)
        assert running.value.code == "CONFLICT"
        await house.call("session.stop", {"session_id": session_id})
        resumed = await launch(intent="resume", session_id=session_id)
        assert resumed["session_id"] == session_id
        await events.until("session.state_changed", lambda p: p["old_state"] == "CANCELLED")
        assert (await add(house, task_id, session_id, "recall"))["status"] in ("sent", "queued")
        await turns_over(events, 2)
    assert await said(house, session_id) == ["one", "recall: say one"]
    assert (await launch(intent="start", prompt="say two"))["session_id"] != session_id
    for missing in ("start_created", "resume"):
        with pytest.raises(CallFailed) as refused:
            await launch(intent=missing)
        assert refused.value.code == "VALIDATION_ERROR"


@pytest.mark.proves("CLI-agent-environment")
async def test_an_agent_inherits_what_it_needs_and_none_of_the_backends_secrets(tmp_path: Path) -> None:
    secrets = {"KANDEV_TOKEN": "s3cret-of-the-backend", "OPENAI_API_KEY": "not-yours", "LANG": "C.UTF-8"}
    home = tmp_path / "home"
    async with Kandev(home, {**secrets, "HTTPS_PROXY": "http://127.0.0.1:1"}) as kandev:
        kandev.token = secrets["KANDEV_TOKEN"]
        mine = await profile(kandev, env={"MY_AGENTS_KEY": "its own"})
        _, session_id = await kandev.session("spawn 600", agent_profile_id=mine)
        async with kandev.watching(session_id) as events:
            await turns_over(events)
        pid = int((await said(kandev, session_id))[0].removeprefix("pid "))
        raw = Path(f"/proc/{pid}/environ").read_bytes()
        env = dict(word.split("=", 1) for word in raw.decode().split("\0") if "=" in word)
    assert b"s3cret" not in raw and b"not-yours" not in raw
    assert env["KANDEV_HOME"] == str(home)
    assert env["MY_AGENTS_KEY"] == "its own"
    assert env["HTTPS_PROXY"] == "http://127.0.0.1:1"
    assert {"PATH", "HOME", "LANG"} <= env.keys()
    assert Path(sys.executable).exists() and os.environ["HOME"] == env["HOME"]

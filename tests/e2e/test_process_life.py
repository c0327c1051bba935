"""Ends and new starts of the backend and of agentctl: what goes on, what is adopted, what is said."""

import asyncio
import json
import os
import signal
import stat
from pathlib import Path

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    get,
    kill_everything,
    marked,
    nth,
    said,
    turns_over,
    until_holds,
    until_true,
)


def errors(kandev: Kandev) -> str:
    """What the backend said on stderr."""
    return (kandev.home / "backend.err").read_text()


async def release(kandev: Kandev, session_id: str, request_id: str) -> None:
    answer = {"session_id": session_id, "request_id": request_id, "option_id": "allow_once"}
    await kandev.call("permission.respond", answer)


@pytest.mark.proves("CLI-ready-line", "CLI-port-0", "CLI-find-backend")
async def test_the_ready_line_and_backend_json_say_where_it_is(kandev: Kandev) -> None:
    assert kandev.process is not None
    path = kandev.home / "backend.json"
    announced = json.loads(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert announced["url"] == kandev.url and announced["pid"] == kandev.process.pid
    assert announced["token"]
    await kandev.stop()
    assert not path.exists()
    ready = await kandev.start()
    assert set(ready) == {"event", "url", "home", "pid"}
    assert (ready["event"], ready["home"]) == ("ready", str(kandev.home))
    assert ready["pid"] == kandev.process.pid
    assert ready["url"].startswith("http://127.0.0.1:") and not ready["url"].endswith(":0")
    assert (await kandev.call("health.check"))["status"] == "ok"


@pytest.mark.proves("CLI-sigterm", "TURN-no-execution")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_idle_agent_ends_with_the_backend_and_the_conversation_goes_on_later(
    kandev: Kandev, number: int
) -> None:
    task_id, session_id = await kandev.session("say hello")
    async with kandev.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
    agentctl = kandev.agentctl_pid()
    assert await kandev.stop(number) == 0
    assert not marked(session_id)
    await until_true(lambda: not alive(agentctl), "agentctl is gone too: nothing runs under it")
    assert "under agentctl" not in errors(kandev)
    await kandev.start()
    session = await get(kandev, session_id)
    assert session["state"] == "WAITING_FOR_INPUT"
    assert "execution" not in session, "its end was committed before the backend ended"
    assert not marked(session_id), "no agent is started before it is needed"
    with pytest.raises(CallFailed) as refused:
        await kandev.call("agent.cancel", {"session_id": session_id})
    assert (refused.value.code, refused.value.message) == ("CONFLICT", "agent not running")
    assert (await add(kandev, task_id, session_id, "recall"))["status"] == "sent"
    async with kandev.watching(session_id) as events:
        await turns_over(events, 2)
    assert await said(kandev, session_id) == ["hello", "recall: say hello"]


async def test_a_message_right_behind_a_new_start_is_delivered_once(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello")
    async with kandev.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
    await kandev.stop()
    await kandev.start()
    sent = await add(kandev, task_id, session_id, "recall")
    assert sent["status"] == "sent", "the old process was known to be gone when the backend ended"
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"].startswith("recall:"))
        await events.until("session.turn.completed", lambda p: p["cause"] == "agent")
    assert await said(kandev, session_id) == ["hello", "recall: say hello"]
    assert (await kandev.call("message.status", {"entry_id": sent["entry_id"]}))["state"] == "delivered"


@pytest.mark.proves("CLI-sigterm", "SURVIVE-backend-kill")
@pytest.mark.field("D01", "D17")
async def test_a_running_turn_goes_on_without_the_backend_and_the_next_one_follows_it(
    kandev: Kandev,
) -> None:
    task_id, session_id = await kandev.session("stream 150 20\nsay last")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        await add(kandev, task_id, session_id, "say queued")
    (agent,) = marked(session_id)
    await kandev.stop()
    assert "1 turn goes on under agentctl" in errors(kandev)
    assert alive(agent)
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await turns_over(events, 2)
    assert marked(session_id) == [agent], "the same process"
    chunks = "".join(f"chunk {n} " for n in range(1, 151))
    assert await said(kandev, session_id) == [chunks, "last", "queued"]
    assert await said(kandev, session_id, "user") == ["stream 150 20\nsay last", "say queued"]


@pytest.mark.proves("SURVIVE-backend-kill", "CLI-one-backend", "INV-2")
async def test_after_a_kill_in_the_middle_of_a_stream_nothing_is_lost_or_doubled(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("stream 200 10")
    async with kandev.watching(session_id) as events:
        await nth(events, "session.message.updated", 3)
        await add(kandev, task_id, session_id, "say queued")
    (agent,) = marked(session_id)
    await kandev.kill()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await turns_over(events, 2)
    assert marked(session_id) == [agent]
    assert await said(kandev, session_id) == ["".join(f"chunk {n} " for n in range(1, 201)), "queued"]
    assert (await get(kandev, session_id))["queue"]["count"] == 0


@pytest.mark.field("A13")
async def test_a_permission_that_was_open_at_a_kill_can_still_be_answered(kandev: Kandev) -> None:
    _, session_id = await kandev.session("ask Go on\nsay done")
    async with kandev.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
    await kandev.kill()
    await kandev.start()
    assert (await get(kandev, session_id))["waiting_for"] == "permission"
    await release(kandev, session_id, asked["request_id"])
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    assert await said(kandev, session_id) == ["outcome: selected allow_once", "done"]


@pytest.mark.proves("TURN-row-without-execution")
@pytest.mark.field("C37", "D01", "D09")
async def test_when_everything_was_killed_the_turn_is_settled_and_the_next_message_remembers(
    kandev: Kandev,
) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    await kill_everything(kandev, session_id)
    await kandev.start()
    async with kandev.watching(session_id) as events:
        await turns_over(events)
        await events.state("WAITING_FOR_INPUT")
        with pytest.raises(CallFailed) as refused:
            await kandev.call("agent.cancel", {"session_id": session_id})
        assert (refused.value.code, refused.value.message) == ("CONFLICT", "agent not running")
        await add(kandev, task_id, session_id, "recall")
        await turns_over(events, 2)
    assert await said(kandev, session_id) == ["hello", "recall: say hello / sleep 600"]


@pytest.mark.proves("CLI-stop-agents")
@pytest.mark.field("A03")
async def test_stop_agents_ends_running_turns_too(tmp_path: Path) -> None:
    kandev = Kandev(tmp_path / "home")
    await kandev.start("--stop-agents")
    try:
        _, session_id = await kandev.session("stubborn\nspawn 600\nsay hello\nsleep 600")
        async with kandev.watching(session_id) as events:
            await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
        assert len(marked(session_id)) == 2
        assert await kandev.stop() == 0
        assert not marked(session_id)
        assert "under agentctl" not in errors(kandev)
        await kandev.start()
        async with kandev.watching(session_id) as events:
            await turns_over(events)
        assert (await get(kandev, session_id))["state"] == "WAITING_FOR_INPUT"
    finally:
        await kandev.end()


@pytest.mark.field("B41")
@pytest.mark.parametrize(
    ("line", "words"), [("exit 3", "exit code 3"), ("crash", "exit code -9"), ("exit 0", "exit code 0")]
)
async def test_a_process_that_dies_in_its_turn_is_told_and_the_next_one_remembers(
    house: Kandev, line: str, words: str
) -> None:
    task_id, session_id = await house.session(f"say hello\n{line}")
    async with house.watching(session_id) as events:
        ended = await turns_over(events)
        assert ended["cause"] == "process"
        await events.state("WAITING_FOR_INPUT")
        (told,) = await said(house, session_id, "system", "error")
        assert words in told
        assert (await house.call("task.get", {"id": task_id}))["state"] == "REVIEW"
        assert (await add(house, task_id, session_id, "recall"))["status"] == "sent"
        again = await turns_over(events, 2)
        assert again["execution_id"] != ended["execution_id"]
    assert (await said(house, session_id))[-1] == f"recall: say hello / {line}"


async def test_what_waited_when_the_process_died_is_parked_with_the_reason(house: Kandev) -> None:
    task_id, session_id = await house.session("ask Go on\nexit 3")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        await add(house, task_id, session_id, "say later")
        await release(house, session_id, asked["request_id"])
        await turns_over(events)
        await events.state("WAITING_FOR_INPUT")
        session = await get(house, session_id)
        assert session["queue"]["count"] == 1
        assert "exit code 3" in session["parked_reason"]
        await add(house, task_id, session_id, "say now")
        await turns_over(events, 3)
    assert (await said(house, session_id))[-2:] == ["now", "later"]


async def test_when_agentctl_is_killed_its_agents_end_and_the_session_goes_on_with_another(
    kandev: Kandev,
) -> None:
    task_id, session_id = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        (agent,) = marked(session_id)
        os.kill(kandev.agentctl_pid(), signal.SIGKILL)
        await turns_over(events)
        await events.state("WAITING_FOR_INPUT")
        await until_true(lambda: not alive(agent), "the old agent is gone")
        assert (await add(kandev, task_id, session_id, "recall"))["status"] == "sent"
        await turns_over(events, 2)
    assert await said(kandev, session_id) == ["hello", "recall: say hello / sleep 600"]


@pytest.mark.field("D45")
async def test_many_sessions_at_once_survive_a_kill(kandev: Kandev) -> None:
    made = await asyncio.gather(*(kandev.session(f"stream 60 20\nsay end {n}") for n in range(4)))
    for _, session_id in made:
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
    await kandev.kill()
    await kandev.start()
    chunks = "".join(f"chunk {n} " for n in range(1, 61))
    for number, (_, session_id) in enumerate(made):
        async with kandev.watching(session_id) as events:
            await turns_over(events)
        assert await said(kandev, session_id) == [chunks, f"end {number}"]


async def test_a_journal_whose_end_is_committed_goes_when_its_deletion_was_lost(kandev: Kandev) -> None:
    """A backend that is killed behind the commit leaves it; agentctl, killed too, takes it up again."""
    _, session_id = await kandev.session("say hello")
    async with kandev.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
    journal = kandev.home / "agentctl" / "journals" / f"{session_id}.1"
    kept = (journal / "meta.json").read_bytes()
    await kandev.call("session.stop", {"session_id": session_id})
    await until_true(lambda: not journal.exists(), "its journal is gone")
    os.kill(kandev.agentctl_pid(), signal.SIGKILL)
    journal.mkdir()
    (journal / "meta.json").write_bytes(kept)
    _, other = await kandev.session("say hello\nsleep 600")
    async with kandev.watching(other) as events:
        await agent_spoke(events)
    await kandev.kill()
    await kandev.start()
    await until_true(lambda: not journal.exists(), "the next backend clears it away")
    assert marked(other), "what is under way goes on"


async def test_a_backend_that_is_ended_while_it_still_looks_around_complains_of_nothing(
    kandev: Kandev,
) -> None:
    _, session_id = await kandev.session("say hello")
    async with kandev.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
    agentctl = kandev.agentctl_pid()
    await kandev.kill()
    os.kill(agentctl, signal.SIGSTOP)
    try:
        await kandev.start()
        ending = asyncio.create_task(kandev.stop())
        await until_true(lambda: not (kandev.home / "backend.json").exists(), "it is ending")
    finally:
        os.kill(agentctl, signal.SIGCONT)
    assert await ending == 0
    assert "never awaited" not in errors(kandev)
    assert list((kandev.home / "agentctl" / "journals").iterdir()) == []


async def test_an_agentctl_that_is_killed_again_and_again_costs_the_backend_no_descriptors(
    kandev: Kandev,
) -> None:
    assert kandev.process is not None
    descriptors = Path(f"/proc/{kandev.process.pid}/fd")
    sessions = await asyncio.gather(*(kandev.session("say hello") for _ in range(6)))

    async def said_again(task_id: str, session_id: str, word: str) -> None:
        async with kandev.watching(session_id) as events:
            await add(kandev, task_id, session_id, f"say {word}")
            await events.until("session.message.added", lambda p: p["message"]["content"] == word)

    async def without_process(session_id: str) -> bool:
        return "execution" not in await get(kandev, session_id)

    await asyncio.gather(*(said_again(*session, "at first") for session in sessions))
    at_first = len(list(descriptors.iterdir()))
    for word in ("one", "two", "three"):
        os.kill(kandev.agentctl_pid(), signal.SIGKILL)
        for _, session_id in sessions:
            await until_holds(lambda id=session_id: without_process(id), "its end is noticed")  # type: ignore[misc]
        await asyncio.gather(*(said_again(*session, word) for session in sessions))
    await until_true(
        lambda: len(list(descriptors.iterdir())) <= at_first + 6, "connections to the dead ones are closed"
    )

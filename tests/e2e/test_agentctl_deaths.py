"""`kill -9` of agentctl, alone and with the backend: its agents end before anything resumes, turns are lost,
and every message has one fate."""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable

import httpx
import pytest

from tests.e2e.kandev import DEADLINE_S, CallFailed, Events, Kandev
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    command_of,
    get,
    marked,
    nth,
    profile,
    said,
    turns_over,
    until_holds,
    until_true,
)

pytestmark = pytest.mark.proves("SURVIVE-agentctl-kill")

LOST = "agentctl ended unexpectedly while this agent ran"
LONG = "x" * 400_000
"""More than a pipe holds."""


def kill_agentctl(kandev: Kandev) -> int:
    """At once; its pid."""
    pid = kandev.agentctl_pid()
    os.kill(pid, signal.SIGKILL)
    return pid


async def alone(kandev: Kandev) -> None:
    kill_agentctl(kandev)


async def with_the_backend(kandev: Kandev) -> None:
    kill_agentctl(kandev)
    await kandev.kill()
    await kandev.start()


async def behind_the_backend(kandev: Kandev) -> None:
    await kandev.kill()
    kill_agentctl(kandev)
    await kandev.start()


async def twice(kandev: Kandev) -> None:
    """The next one too, in the middle of ending what the first left."""
    first = kill_agentctl(kandev)
    await until_true(lambda: agentctls(kandev) - {first}, "the next one has begun")
    for pid in agentctls(kandev) - {first}:
        os.kill(pid, signal.SIGKILL)


KILLS = [alone, with_the_backend, behind_the_backend, twice]


def agentctls(kandev: Kandev) -> set[int]:
    """Every agentctl of this home, ready or not."""
    found = set()
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only
        if name.isdigit() and alive(int(name)):
            words = command_of(int(name)).split()
            if "agentctl" in words and str(kandev.home) in words:
                found.add(int(name))
    return found


async def went_on(kandev: Kandev, task_id: str, session_id: str, events: Events, turns: int) -> None:
    """The next message is answered out of the conversation."""
    await add(kandev, task_id, session_id, "recall")
    await turns_over(events, turns)
    assert (await said(kandev, session_id))[-1].startswith("recall: ")


@pytest.mark.field("C37", "D09", "D11")
@pytest.mark.parametrize("kill", KILLS)
async def test_a_turn_is_lost_with_the_reason_and_the_next_message_has_the_conversation(
    kandev: Kandev, kill: Callable[[Kandev], Awaitable[None]]
) -> None:
    script = "stubborn\nspawn 600\nsay hello\nsleep 600"
    task_id, session_id = await kandev.session(script)
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
        await add(kandev, task_id, session_id, "say queued")
    old = marked(session_id)
    await kill(kandev)
    async with kandev.watching(session_id) as events:
        ended = await turns_over(events)
        assert (ended["cause"], ended["error"]) == ("lost", LOST)
        await events.state("WAITING_FOR_INPUT")
        assert not [pid for pid in old if alive(pid)], "ended before the turn was called over"
        assert await said(kandev, session_id, "system", "error") == [f"The turn was lost: {LOST}."]
        session = await get(kandev, session_id)
        assert (session["queue"]["count"], session["parked_reason"]) == (1, f"the last turn failed: {LOST}")
        await add(kandev, task_id, session_id, "recall")
        await turns_over(events, 3)
    words = await said(kandev, session_id)
    assert words[1:] == ["hello", f"recall: {script}".replace("\n", " / "), "queued"]


@pytest.mark.field("D15", "D19", "E09", "E11")
@pytest.mark.parametrize("kill", KILLS)
async def test_nothing_resumes_before_the_old_agent_and_its_children_are_gone(
    kandev: Kandev, kill: Callable[[Kandev], Awaitable[None]]
) -> None:
    task_id, session_id = await kandev.session("stubborn\nspawn 600\nsay hello")
    async with kandev.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
    old = marked(session_id)
    assert len(old) == 2
    await kill(kandev)

    async def noticed() -> bool:
        # A prompt that is on its way at this moment never arrives: its message is parked, nothing resumes.
        execution = (await get(kandev, session_id)).get("execution")
        return execution is None or execution["status"] != "ready"

    await until_holds(noticed, "the backend knows that the agent is lost")
    await add(kandev, task_id, session_id, "recall")

    def resumed() -> bool:
        still = [pid for pid in old if alive(pid)]
        new = set(marked(session_id)) - set(old)
        assert not (still and new), "two processes on one conversation"
        return bool(new)

    await until_true(resumed, "the next agent is there")
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"].startswith("recall:"))
        await events.until("session.turn.completed", lambda p: p["cause"] == "agent")
    assert (await said(kandev, session_id))[-1] == "recall: stubborn / spawn 600 / say hello"


async def begin_a_long_prompt(kandev: Kandev) -> tuple[str, str, "asyncio.Task[httpx.Response]", str]:
    """A session whose agent reads nothing, and a message half written to it: task, session, asker, entry."""
    task_id, session_id = await kandev.session("say hello")
    async with kandev.watching(session_id) as events:
        await events.state("WAITING_FOR_INPUT")
        (agent,) = marked(session_id)
        os.kill(agent, signal.SIGSTOP)
        asker = asyncio.create_task(kandev.post("message.add", message(task_id, session_id)))
        told = await events.until("session.message.added", lambda p: p["message"]["content"] == LONG)
    folder = kandev.home / "agentctl" / "journals" / f"{session_id}.1" / "claims"
    await until_true(lambda: folder.read_text().count("\n") == 2, "the claim is on the disk")
    return task_id, session_id, asker, told["message"]["metadata"]["entry_id"]


def message(task_id: str, session_id: str) -> dict[str, object]:
    return {"task_id": task_id, "session_id": session_id, "content": LONG, "idempotency_key": "once"}


@pytest.mark.proves("SURVIVE-unknown-entry", "MESSAGE-one-fate", "INV-2")
@pytest.mark.field("C15")
@pytest.mark.parametrize("kill", [alone, twice])
async def test_a_message_whose_fate_nobody_can_tell_is_unknown_and_not_sent_again(
    kandev: Kandev, kill: Callable[[Kandev], Awaitable[None]]
) -> None:
    task_id, session_id, asker, entry = await begin_a_long_prompt(kandev)
    await kill(kandev)
    answer = await asker
    assert answer.status_code == 500
    assert answer.json()["details"]["error"] == "delivery_unknown"
    await fate_stays_unknown(kandev, task_id, session_id, entry)


@pytest.mark.proves("SURVIVE-unknown-entry", "SURVIVE-backend-kill", "MESSAGE-one-fate", "INV-2")
@pytest.mark.parametrize("kill", [with_the_backend, behind_the_backend])
async def test_it_is_unknown_for_the_next_backend_too(
    kandev: Kandev, kill: Callable[[Kandev], Awaitable[None]]
) -> None:
    task_id, session_id, asker, entry = await begin_a_long_prompt(kandev)
    await kill(kandev)
    await asyncio.wait({asker})
    asker.exception()
    await fate_stays_unknown(kandev, task_id, session_id, entry)


async def fate_stays_unknown(kandev: Kandev, task_id: str, session_id: str, entry: str) -> None:
    async with kandev.watching(session_id) as events:
        ended = await turns_over(events, 2)
        assert (ended["cause"], ended["error"]) == ("lost", LOST)
        await events.state("WAITING_FOR_INPUT")
        assert (await kandev.call("message.status", {"entry_id": entry}))["state"] == "unknown"
        assert (await get(kandev, session_id))["queue"]["count"] == 0
        lines = await said(kandev, session_id, "system", "error")
        assert any(line.startswith("Nobody can tell whether the agent got the message") for line in lines)
        shown = [m for m in await kandev.messages(session_id) if m["content"] == LONG]
        assert [m["metadata"]["delivery"] for m in shown] == ["unknown"]
        await add(kandev, task_id, session_id, "recall")
        await turns_over(events, 3)
    await kandev.kill()
    await kandev.start()
    assert (await said(kandev, session_id))[-1] == "recall: say hello", "the agent never got it"
    assert (await kandev.call("message.status", {"entry_id": entry}))["state"] == "unknown"
    with pytest.raises(CallFailed) as again:
        await kandev.call("message.add", message(task_id, session_id))
    assert again.value.code == "INTERNAL_ERROR", "asked again under its key: the same answer"


@pytest.mark.proves("SURVIVE-unknown-entry", "MESSAGE-one-fate")
async def test_after_a_new_boot_of_the_machine_turns_are_lost_and_claimed_messages_unknown(
    kandev: Kandev,
) -> None:
    """The newest frames may never have reached the disk: journals of an earlier boot are not read."""
    script = "say hello\nsleep 600"
    working_task, working = await kandev.session(script)
    async with kandev.watching(working) as events:
        await agent_spoke(events)
    task_id, session_id, asker, entry = await begin_a_long_prompt(kandev)
    await kandev.kill()
    await asyncio.wait({asker})
    asker.exception()
    old = [*marked(working), *marked(session_id)]
    for pid in (kill_agentctl(kandev), *old):
        os.kill(pid, signal.SIGKILL)
    await until_true(lambda: not [pid for pid in old if alive(pid)], "everything is gone")
    for path in (kandev.home / "agentctl" / "journals").glob("*/meta.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"boot_id": "an-earlier-boot"}))
    await kandev.start()
    async with kandev.watching(working) as events:
        ended = await turns_over(events)
        assert ended["cause"] == "lost"
        assert ended["error"] == "agentctl does not know the agent's process any more"
        await went_on(kandev, working_task, working, events, 2)
    async with kandev.watching(session_id) as events:
        assert (await turns_over(events, 2))["cause"] == "lost"
        assert (await kandev.call("message.status", {"entry_id": entry}))["state"] == "unknown"
        await went_on(kandev, task_id, session_id, events, 3)


@pytest.mark.parametrize("kill", KILLS)
async def test_a_launch_that_was_under_way_begins_anew_and_says_nothing_untrue(
    kandev: Kandev, kill: Callable[[Kandev], Awaitable[None]]
) -> None:
    slow = await profile(kandev, env={"MOCK_AGENT_START": "slow 1.5"})
    _, session_id = await kandev.session("say hello", agent_profile_id=slow)
    await until_true(lambda: marked(session_id), "the process is there")
    old = marked(session_id)
    await kill(kandev)
    async with kandev.watching(session_id) as events:
        ended = await turns_over(events)
        assert (ended["cause"], ended["execution_id"]) == ("agent", f"{session_id}.1")
        actions = [frame["action"] for frame in events.seen]
        assert actions.count("session.agentctl_ready") == 1
        assert actions.count("session.turn.started") == 1
    assert await said(kandev, session_id) == ["hello"]
    assert not [pid for pid in old if alive(pid)]
    assert len(marked(session_id)) == 1


@pytest.mark.parametrize("kill", KILLS)
async def test_a_stop_whose_teardown_was_under_way_is_finished(
    kandev: Kandev, kill: Callable[[Kandev], Awaitable[None]]
) -> None:
    task_id, session_id = await kandev.session("stubborn\nspawn 600\nsay hello\nsleep 600")
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
    await kandev.call("session.stop", {"session_id": session_id})
    await kill(kandev)
    assert (await get(kandev, session_id))["state"] == "CANCELLED"
    await until_true(lambda: not marked(session_id), "nothing of it is left")
    async with kandev.watching(session_id) as events:
        assert (await turns_over(events))["cause"] == "stopped"
        await kandev.call("session.recover", {"session_id": session_id})
        await went_on(kandev, task_id, session_id, events, 2)


@pytest.mark.parametrize("kill", KILLS)
async def test_a_cancel_that_was_under_way_is_settled_and_parks_what_waited(
    kandev: Kandev, kill: Callable[[Kandev], Awaitable[None]]
) -> None:
    task_id, session_id = await kandev.session("say hello\nlate 600")
    async with kandev.watching(session_id) as events, kandev.events() as caller:
        await agent_spoke(events)
        await add(kandev, task_id, session_id, "say queued")
        await caller.send("agent.cancel", {"session_id": session_id})
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        await kill(kandev)
    async with kandev.watching(session_id) as events:
        assert (await turns_over(events))["cause"] in ("lost", "user")
        await events.state("WAITING_FOR_INPUT")
        session = await get(kandev, session_id)
        assert (session["cancellation_pending"], session["queue"]["count"]) == (False, 1)
        assert session["parked_reason"]
        await went_on_before(kandev, task_id, session_id, events)


async def went_on_before(kandev: Kandev, task_id: str, session_id: str, events: Events) -> None:
    """The new message first, then the one that was parked."""
    await add(kandev, task_id, session_id, "recall")
    await turns_over(events, 3)
    assert (await said(kandev, session_id))[1:] == ["recall: say hello / late 600", "queued"]


async def test_many_sessions_are_lost_and_go_on_together(kandev: Kandev) -> None:
    made = await asyncio.gather(*(kandev.session(f"say hello {n}\nsleep 600") for n in range(6)))
    for _, session_id in made:
        async with kandev.watching(session_id) as events:
            await agent_spoke(events)
    kill_agentctl(kandev)
    async with asyncio.timeout(DEADLINE_S):
        for number, (task_id, session_id) in enumerate(made):
            async with kandev.watching(session_id) as events:
                assert (await nth(events, "session.turn.completed", 1))["cause"] == "lost"
                await events.state("WAITING_FOR_INPUT")
                await went_on(kandev, task_id, session_id, events, 2)
            assert (await said(kandev, session_id))[-1] == f"recall: say hello {number} / sleep 600"
    assert len(agentctls(kandev)) == 1

"""Programs that stand still for longer than their deadlines, alone or together, and go on."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.kandev import DEADLINE_S, Kandev
from tests.e2e.program import run
from tests.e2e.scenes import (
    add,
    agent_spoke,
    alive,
    get,
    marked,
    nothing_left,
    said,
    turns_over,
    until_holds,
    until_true,
)

pytestmark = pytest.mark.proves("SURVIVE-suspend")

SHORT = {
    "KANDEV_PROMPT_ACCEPT_S": "1",
    "KANDEV_AGENTCTL_CALL_S": "1",
    "KANDEV_AGENTCTL_LOST_S": "3",
    "KANDEV_MESSAGE_ANSWER_S": "3",
    "KANDEV_COMMIT_S": "1",
}
LONGER_S = 7
"""Than each of these, and than what they add up to for one effect."""


@pytest.fixture
async def short(tmp_path: Path) -> AsyncIterator[Kandev]:
    """All that one program waits for another is short."""
    async with Kandev(tmp_path / "home", SHORT) as running:
        yield running


@contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """They stand still."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in reversed(pids):
            if alive(pid):
                os.kill(pid, signal.SIGCONT)


def backend(kandev: Kandev) -> int:
    assert kandev.process is not None
    return kandev.process.pid


@pytest.mark.field("D09")
async def test_a_machine_that_was_suspended_in_a_cancel_replaces_no_agent_that_obeys(short: Kandev) -> None:
    task_id, session_id = await short.session("say one\nlate 0.6")
    async with short.watching(session_id) as events:
        await agent_spoke(events)
        (agent,) = marked(session_id)
        cancelling = asyncio.create_task(short.call("agent.cancel", {"session_id": session_id}))
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        with stopped(backend(short), short.agentctl_pid(), agent):
            await asyncio.sleep(LONGER_S)
        assert (await cancelling)["success"]
        assert (await turns_over(events))["cause"] == "user"
        await add(short, task_id, session_id, "say two")
        await turns_over(events, 2)
    assert marked(session_id) == [agent]
    assert await said(short, session_id) == ["one", "two"]


async def test_a_backend_that_stood_still_takes_the_end_that_lies_in_its_socket(short: Kandev) -> None:
    _, session_id = await short.session("say one\nlate 0.6")
    async with short.watching(session_id) as events:
        await agent_spoke(events)
        (agent,) = marked(session_id)
        cancelling = asyncio.create_task(short.call("agent.cancel", {"session_id": session_id}))
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        with stopped(backend(short)):
            await asyncio.sleep(LONGER_S)
        assert (await cancelling)["success"]
        assert (await turns_over(events))["cause"] == "user"
    assert marked(session_id) == [agent]


async def test_a_prompt_that_was_taken_meanwhile_is_not_taken_for_refused_or_lost(short: Kandev) -> None:
    task_id, session_id = await short.session("say one")
    async with short.watching(session_id) as events:
        await turns_over(events)
        (agent,), agentctl = marked(session_id), short.agentctl_pid()
        with stopped(agentctl):
            sending = asyncio.create_task(add(short, task_id, session_id, "say two"))
            await events.state("RUNNING", after=len(events.seen))
            os.kill(backend(short), signal.SIGSTOP)
        try:
            await asyncio.sleep(LONGER_S)
        finally:
            os.kill(backend(short), signal.SIGCONT)
        assert (await sending)["status"] in ("sent", "queued")
        assert (await turns_over(events, 2))["cause"] == "agent"
    assert marked(session_id) == [agent]
    assert await said(short, session_id) == ["one", "two"]


async def test_an_agentctl_that_stood_still_for_a_while_costs_no_turn(short: Kandev) -> None:
    _, session_id = await short.session("say one\nsleep 3\nsay two")
    async with short.watching(session_id) as events:
        await agent_spoke(events)
        agents = marked(session_id)
        with stopped(short.agentctl_pid()):
            await asyncio.sleep(LONGER_S)
        assert (await turns_over(events))["cause"] == "agent"
    assert marked(session_id) == agents
    assert await said(short, session_id) == ["one", "two"]


async def test_one_that_is_silent_for_too_long_is_lost_but_nothing_starts_beside_its_agent(
    short: Kandev,
) -> None:
    task_id, session_id = await short.session("say one\nsleep 600")
    async with short.watching(session_id) as events:
        await agent_spoke(events)
        (agent,), agentctl = marked(session_id), short.agentctl_pid()
        with stopped(agentctl):
            # A cancel needs agentctl, and its deadline ends what agentctl does not.
            answer = await short.call("agent.cancel", {"session_id": session_id})
            assert not answer["success"]
            await until_holds(lambda: _lost(short, session_id), "it is not proven gone")
            queued = await add(short, task_id, session_id, "say two")
            assert queued["status"] == "queued"
            assert marked(session_id) == [agent], "nothing was started beside it"
        await until_true(lambda: not alive(agent), "the old process is ended")
        await until_holds(lambda: _free(short, session_id), "and proven gone")
        await add(short, task_id, session_id, "say three")
        await until_holds(lambda: _said(short, session_id, "three"), "the next one works")
    assert len(marked(session_id)) == 1


async def _lost(kandev: Kandev, session_id: str) -> bool:
    return bool((await kandev.call("session.explain", {"session_id": session_id}))["launch"] == "lost")


async def _free(kandev: Kandev, session_id: str) -> bool:
    return bool((await kandev.call("session.explain", {"session_id": session_id}))["launch"] != "lost")


async def _said(kandev: Kandev, session_id: str, text: str) -> bool:
    return text in await said(kandev, session_id)


async def test_an_agent_that_stands_still_is_replaced_by_a_cancel(short: Kandev) -> None:
    task_id, session_id = await short.session("say one\nsleep 600")
    async with short.watching(session_id) as events:
        await agent_spoke(events)
        (agent,) = marked(session_id)
        with stopped(agent):
            assert not (await short.call("agent.cancel", {"session_id": session_id}))["success"]
            await turns_over(events)
        assert not alive(agent)
        await add(short, task_id, session_id, "say two")
        await until_holds(lambda: _said(short, session_id, "two"), "the next one works")
    await short.call("session.stop", {"session_id": session_id})
    await nothing_left(session_id)


async def test_a_stopped_backend_holds_its_home_and_the_second_one_says_which_it_is(short: Kandev) -> None:
    with stopped(backend(short)):
        ran = await run(short, "serve", "--port", "0", "--no-browser")
        assert (ran.code, ran.out) == (1, "")
        assert "another backend uses the home" in ran.err
        assert f"process {backend(short)} is it, and stands still" in ran.err
        assert f"kill -CONT {backend(short)}" in ran.err and f"kill -KILL {backend(short)}" in ran.err
    assert (await short.get("/health")).status_code == 200


async def test_a_backend_that_wakes_after_another_took_over_does_nothing_and_ends(short: Kandev) -> None:
    task_id, session_id = await short.session("say one\nsleep 600")
    async with short.watching(session_id) as events:
        await agent_spoke(events)
        await add(short, task_id, session_id, "say two")
    (agent,), old, old_url = marked(session_id), short.process, short.url
    assert old is not None
    with stopped(old.pid):
        # Nobody should: the lock is what says that this home is taken.
        (short.home / "backend.lock").unlink()
        await short.start()
    try:
        for action, payload in (
            ("session.stop", {"session_id": session_id}),
            ("task.update", {"id": task_id, "title": "Another title"}),
        ):
            await _refused(old_url, action, payload)
        async with asyncio.timeout(30):
            assert await asyncio.to_thread(old.wait) == 1
    finally:
        old.kill()
        assert old.stdout is not None
        old.stdout.close()
    assert "another backend has taken over the home" in short.errors.read_text()
    assert json.loads((short.home / "backend.json").read_text())["url"] == short.url
    assert (await short.call("task.get", {"id": task_id}))["title"] == "A task"
    assert (await get(short, session_id))["state"] == "RUNNING"
    assert marked(session_id) == [agent]
    async with short.watching(session_id) as events:
        assert (await short.call("agent.cancel", {"session_id": session_id}))["success"]
        await add(short, task_id, session_id, "say three")
        await turns_over(events, 3)
    assert await said(short, session_id) == ["one", "three", "two"]


async def _refused(url: str, action: str, payload: dict[str, Any]) -> None:
    """By the old backend, if it is still there to be asked."""
    async with httpx.AsyncClient(trust_env=False, timeout=DEADLINE_S) as http:
        with suppress(httpx.TransportError):
            answer = await http.post(f"{url}/api/v1/actions/{action}", json=payload)
            assert answer.status_code == 500
            assert "Another backend has taken over this home" in answer.json()["message"]

"""Idle agents sleep and wake: real processes, and the conversation goes on."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import add, agent_spoke, alive, get, marked, said, turns_over, until_holds, until_true

pytestmark = pytest.mark.proves("SURVIVE-sleep")
IDLE_S = "0.4"


@pytest.fixture
async def sleepy(tmp_path: Path) -> AsyncIterator[Kandev]:
    async with Kandev(tmp_path / "home", {"KANDEV_IDLE_SLEEP_S": IDLE_S}) as kandev:
        yield kandev


async def explained(kandev: Kandev, session_id: str) -> str:
    return str((await kandev.call("session.explain", {"session_id": session_id}))["sentence"])


async def until_up(session_id: str) -> list[int]:
    await until_true(lambda: marked(session_id), "the agent is there")
    return marked(session_id)


async def asleep(kandev: Kandev, session_id: str) -> None:
    async def gone() -> bool:
        return "execution" not in await get(kandev, session_id)

    await until_holds(gone, "it fell asleep")
    assert not marked(session_id)


async def test_an_idle_agent_sleeps_and_the_next_message_wakes_it_with_its_conversation(
    sleepy: Kandev,
) -> None:
    task_id, session_id = await sleepy.session("say hello")
    async with sleepy.watching(session_id) as events:
        await turns_over(events)
        await asleep(sleepy, session_id)
        session = await get(sleepy, session_id)
        assert (session["state"], session.get("error")) == ("WAITING_FOR_INPUT", None)
        assert "asleep" in await explained(sleepy, session_id)
        with pytest.raises(CallFailed, match="agent not running"):
            await sleepy.call("agent.cancel", {"session_id": session_id})
        assert (await add(sleepy, task_id, session_id, "recall"))["status"] == "sent"
        await turns_over(events, 2)
    assert await said(sleepy, session_id) == ["hello", "recall: say hello"]
    assert not await said(sleepy, session_id, "system", "status"), "sleep is no news"


@pytest.mark.field("D27")
async def test_an_agent_at_work_does_not_sleep_however_silent_it_is(sleepy: Kandev) -> None:
    _, session_id = await sleepy.session("say hello\nsleep 2\nsay done")
    async with sleepy.watching(session_id) as events:
        await turns_over(events)
    assert await said(sleepy, session_id) == ["hello", "done"]
    await asleep(sleepy, session_id)


async def test_what_a_turn_left_running_keeps_its_agent_up(sleepy: Kandev) -> None:
    _, session_id = await sleepy.session("spawn 2")
    async with sleepy.watching(session_id) as events:
        await agent_spoke(events)
        await turns_over(events)
    child = int((await said(sleepy, session_id))[0].split()[1])
    await until_true(lambda: "kept awake" in (sleepy.home / "backend.err").read_text(), "it was tried")
    assert alive(child) and marked(session_id), "the child was not ended"
    await asleep(sleepy, session_id)
    assert not alive(child), "it ran to its own end, or the agent would still be up"


async def test_a_message_that_meets_the_agent_on_its_way_to_sleep_goes_to_the_next_one(
    sleepy: Kandev,
) -> None:
    task_id, session_id = await sleepy.session("say hello\nstubborn")
    (before,) = await until_up(session_id)

    async def dozes() -> bool:
        shown = await sleepy.call("session.explain", {"session_id": session_id})
        return bool(shown["launch"] == "dozing")

    await until_holds(dozes, "it is being put to sleep, and resists")
    sent = await add(sleepy, task_id, session_id, "recall")
    async with sleepy.watching(session_id) as events:
        await turns_over(events, 2)
    assert not alive(before) and (await said(sleepy, session_id))[-1].startswith("recall: say hello")
    assert sent["status"] == "sent"
    assert (await sleepy.call("message.status", {"entry_id": sent["entry_id"]}))["state"] == "delivered"


async def test_after_a_kill_of_the_backend_a_sleeper_is_still_a_row(sleepy: Kandev) -> None:
    task_id, session_id = await sleepy.session("say hello")
    await asleep(sleepy, session_id)
    await sleepy.kill()
    await sleepy.start()
    assert "asleep" in await explained(sleepy, session_id)
    assert not marked(session_id)
    await add(sleepy, task_id, session_id, "recall")
    async with sleepy.watching(session_id) as events:
        await turns_over(events, 2)
    assert (await said(sleepy, session_id))[-1] == "recall: say hello"


async def test_idle_sleep_0_means_never(tmp_path: Path) -> None:
    async with Kandev(tmp_path / "home", {"KANDEV_IDLE_SLEEP_S": "0"}) as kandev:
        _, session_id = await kandev.session("say hello")
        async with kandev.watching(session_id) as events:
            await turns_over(events)
        shown = await kandev.call("session.explain", {"session_id": session_id})
        assert not [work for work in shown["under_way"] if "idle" in work["what"]]


async def test_one_that_was_never_told_anything_wakes_without_a_word_about_memory(sleepy: Kandev) -> None:
    task_id, session_id = await sleepy.session()
    await until_up(session_id)
    await asleep(sleepy, session_id)
    await add(sleepy, task_id, session_id, "say hello")
    async with sleepy.watching(session_id) as events:
        await turns_over(events)
    assert await said(sleepy, session_id) == ["hello"]
    assert not await said(sleepy, session_id, "system", "status")

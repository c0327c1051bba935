"""What is silent, half started, or asked for several times at once ends in a state that can be named."""

import asyncio
from pathlib import Path

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import (
    add,
    get,
    marked,
    no_instances,
    nothing_left,
    profile,
    turns_over,
    until_holds,
    until_true,
)


@pytest.mark.field("D03")
async def test_a_silent_agent_is_said_to_be_silent_and_can_be_ended(tmp_path: Path) -> None:
    async with Kandev(tmp_path / "home", {"KANDEV_SILENT_NOTICE_S": "0.3"}) as kandev:
        task_id, session_id = await kandev.session("say hello\nsilent")

        async def silent() -> bool:
            told = await kandev.call("session.explain", {"session_id": session_id})
            return "It has been silent for" in told["sentence"]

        await until_holds(silent, "the silence is said")
        assert (await get(kandev, session_id))["state"] == "RUNNING", "nothing is ended by silence"
        async with kandev.watching(session_id) as events:
            assert (await kandev.call("agent.cancel", {"session_id": session_id}))["success"] is False
            assert (await turns_over(events))["cause"] == "user"
            assert (await add(kandev, task_id, session_id, "recall"))["status"] == "sent"
            await turns_over(events, 2)
        assert not await silent()


@pytest.mark.field("D49")
@pytest.mark.parametrize("command", [["sh", "-c", "sleep 600 & exit 7"], ["sh", "-c", "sleep 600 & cat"]])
async def test_a_start_that_fails_leaves_no_instance_no_process_and_no_journal(
    tmp_path: Path, command: list[str]
) -> None:
    async with Kandev(tmp_path / "home", {"KANDEV_LAUNCH_S": "1"}) as kandev:
        broken = await profile(kandev, command)
        _, session_id = await kandev.session("say hello", agent_profile_id=broken)
        async with kandev.watching(session_id) as events:
            await events.state("FAILED")
        await nothing_left(session_id)
        await until_holds(lambda: no_instances(kandev), "agentctl has nothing of it")
        journals = kandev.home / "agentctl" / "journals"
        await until_true(lambda: not list(journals.iterdir()), "its journal is gone")
        session = await get(kandev, session_id)
        assert "execution" not in session and session["queue"]["count"] == 1
        assert await kandev.call("session.delete", {"session_id": session_id}) == {"success": True}


async def is_waiting(kandev: Kandev, session_id: str) -> bool:
    return bool((await get(kandev, session_id))["state"] == "WAITING_FOR_INPUT")


@pytest.mark.field("D05", "D17")
async def test_many_resumes_at_once_start_one_process(kandev: Kandev) -> None:
    _, session_id = await kandev.session("say hello")
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    await kandev.call("session.stop", {"session_id": session_id})
    await nothing_left(session_id)
    asked = [kandev.call("session.recover", {"session_id": session_id}) for _ in range(5)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, CallFailed)]
    assert [one.code for one in refused] == ["CONFLICT"] * 4
    await until_holds(lambda: is_waiting(kandev, session_id), "it is up")
    assert len(marked(session_id)) == 1

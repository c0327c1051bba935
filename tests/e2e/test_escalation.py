"""The deaf, the late and the lying agent: a cancel ends in time, by the agent or by its replacement."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.kandev import CallFailed, Events, Kandev
from tests.e2e.scenes import (
    add,
    alive,
    get,
    marked,
    profile,
    said,
    turns_over,
    until_holds,
    until_true,
)

TIMED_OUT = "cancel timed out, still under way"
DEAF = {
    "deaf": "say hello\ndeaf 600",
    "deaf and stubborn": "stubborn\nsay hello\ndeaf 600",
    "deaf with a child": "spawn 600\nsay hello\ndeaf 600",
    "stubborn with a child": "stubborn\nspawn 600\nsay hello\nsilent",
    "silent": "say hello\nsilent",
    "later than allowed": "say hello\nlate 600",
    "losing every cancel": "lose 100000\nsay hello\nsleep 600",
}
"""What never acknowledges within the deadline."""
OBEYING = {
    "late, within the deadline": "say hello\nlate 0.3",
    "lying": "say hello\nlie 600",
    "losing some cancels": "lose 3\nsay hello\nsleep 600",
    "losing some, then late": "lose 2\nsay hello\nlate 0.3",
    "losing some, then lying": "lose 2\nsay hello\nlie 600",
    "failing the prompt instead": "say hello\nsleep 600\nfail -32603 aborted",
    "talking on": "say hello\nsleep 600\nsay never",
    "stubborn": "stubborn\nsay hello\nsleep 600",
}


async def hello(events: Events) -> None:
    await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")


async def cancel(kandev: Kandev, session_id: str) -> dict[str, Any]:
    return await kandev.call("agent.cancel", {"session_id": session_id})


async def cancelled(kandev: Kandev, session_id: str, events: Events) -> str:
    """It ended as a person's cancel, once; the execution in which it did."""
    ended = await turns_over(events)
    assert ended["cause"] == "user"
    await events.state("WAITING_FOR_INPUT")
    session = await get(kandev, session_id)
    assert session["cancellation_pending"] is False
    lines = await said(kandev, session_id, "system", "status")
    assert [line for line in lines if line.startswith("Turn cancelled by user")] == [
        "Turn cancelled by user."
    ]
    return str(ended["execution_id"])


async def goes_on(kandev: Kandev, task_id: str, session_id: str, events: Events) -> str:
    """The next message is answered out of the conversation; the execution that answered."""
    await add(kandev, task_id, session_id, "recall")
    again = await turns_over(events, 2)
    assert again["cause"] == "agent"
    assert (await said(kandev, session_id))[-1].startswith("recall: ")
    return str(again["execution_id"])


@pytest.mark.proves("TURN-not-acknowledged", "TURN-escalated-process-replaced", "TURN-intent-decides")
@pytest.mark.field("A15", "D13")
@pytest.mark.parametrize("script", DEAF.values(), ids=DEAF.keys())
async def test_an_agent_that_does_not_acknowledge_is_replaced_with_its_whole_tree(
    house: Kandev, script: str
) -> None:
    task_id, session_id = await house.session(script)
    async with house.watching(session_id) as events:
        await hello(events)
        old = marked(session_id)
        answer = await cancel(house, session_id)
        assert (answer["success"], answer["error"]) == (False, TIMED_OUT)
        first = await cancelled(house, session_id, events)
        assert not [pid for pid in old if alive(pid)], "told when nothing of it was left"
        assert await goes_on(house, task_id, session_id, events) != first


@pytest.mark.proves("TURN-intent-decides", "TURN-repeated", "TURN-ended")
@pytest.mark.parametrize("script", OBEYING.values(), ids=OBEYING.keys())
async def test_an_agent_that_ends_its_turn_in_time_keeps_its_process_however_it_calls_the_end(
    house: Kandev, script: str
) -> None:
    task_id, session_id = await house.session(script)
    async with house.watching(session_id) as events:
        await hello(events)
        assert (await cancel(house, session_id))["success"] is True
        first = await cancelled(house, session_id, events)
        assert await goes_on(house, task_id, session_id, events) == first
    assert "never" not in await said(house, session_id)


@pytest.mark.proves("TURN-escalated-process-replaced", "TURN-parked")
async def test_what_waited_is_parked_and_follows_the_next_message_into_the_new_process(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\ndeaf 600")
    async with house.watching(session_id) as events:
        await hello(events)
        await add(house, task_id, session_id, "say waited")
        assert (await cancel(house, session_id))["error"] == TIMED_OUT
        await cancelled(house, session_id, events)
        session = await get(house, session_id)
        assert (session["queue"]["count"], session["parked_reason"]) == (1, "cancelled by a person")
        await add(house, task_id, session_id, "recall")
        await turns_over(events, 3)
    assert (await said(house, session_id))[1:] == ["recall: say hello / deaf 600", "waited"]


@pytest.mark.proves("TURN-escalated-process-replaced", "MESSAGE-unparks")
async def test_what_its_person_says_during_the_cancel_is_first_in_the_new_process(house: Kandev) -> None:
    patient = await profile(house, cancel_acknowledge_s=3)
    task_id, session_id = await house.session("say hello\ndeaf 600", agent_profile_id=patient)
    async with house.watching(session_id) as events:
        await hello(events)
        await add(house, task_id, session_id, "say waited")
        asked = asyncio.create_task(cancel(house, session_id))
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        during = asyncio.create_task(add(house, task_id, session_id, "say during"))
        assert (await asked)["error"] == TIMED_OUT
        await turns_over(events, 3)
        entry = (await during)["entry_id"]
    assert (await said(house, session_id))[1:] == ["during", "waited"]
    assert (await house.call("message.status", {"entry_id": entry}))["state"] == "delivered"


@pytest.mark.proves("TURN-deadline-per-profile")
async def test_a_profiles_own_deadline_holds_in_both_programs_and_its_rest_is_shown(house: Kandev) -> None:
    patient = await profile(house, cancel_acknowledge_s=60, name="patient")
    hasty = await profile(house, cancel_acknowledge_s=0.2, name="hasty")
    _, slow = await house.session("say hello\nlate 2.5", agent_profile_id=patient)
    _, quick = await house.session("say hello\nlate 600", agent_profile_id=hasty)
    async with house.watching(slow) as events, house.watching(quick) as others, house.events() as caller:
        await hello(events)
        await hello(others)
        asked = asyncio.create_task(caller.request("agent.cancel", {"session_id": slow}))
        assert (await cancel(house, quick))["success"] is False, (
            "the setting's whole second was not waited for"
        )

        async def bound() -> bool:
            told = await house.call("session.explain", {"session_id": slow})
            (left,) = [work["left_s"] for work in told["under_way"] if work["what"] == "CancelTurn"]
            assert 50 < left < 60
            return "s more to acknowledge it, then its process is replaced" in str(told["sentence"])

        await until_holds(bound, "the rest of the deadline is said")
        assert (await asked)["payload"]["success"] is True, (
            "two and a half seconds are more than the setting's"
        )
        assert (await turns_over(events))["cause"] == "user"


@pytest.mark.proves("TURN-deadline-per-profile", "SURVIVE-backend-kill")
async def test_a_profiles_own_deadline_outlives_the_backend(kandev: Kandev) -> None:
    patient = await profile(kandev, cancel_acknowledge_s=60)
    task_id, session_id = await kandev.session("say hello\nlate 2", agent_profile_id=patient)
    async with kandev.watching(session_id) as events, kandev.events() as caller:
        await hello(events)
        await caller.send("agent.cancel", {"session_id": session_id})
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
    await kandev.kill()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        first = await cancelled(kandev, session_id, events)
        assert await goes_on(kandev, task_id, session_id, events) == first


class Fallen:
    """A kill -9 of one of the three programs in the middle of an escalation."""

    @staticmethod
    async def agent(kandev: Kandev, session_id: str) -> None:
        for pid in marked(session_id):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    async def agentctl(kandev: Kandev, session_id: str) -> None:
        os.kill(kandev.agentctl_pid(), signal.SIGKILL)

    @staticmethod
    async def backend(kandev: Kandev, session_id: str) -> None:
        await kandev.kill()
        await kandev.start()

    @staticmethod
    async def both(kandev: Kandev, session_id: str) -> None:
        os.kill(kandev.agentctl_pid(), signal.SIGKILL)
        await kandev.kill()
        await kandev.start()

    @staticmethod
    async def everything(kandev: Kandev, session_id: str) -> None:
        os.kill(kandev.agentctl_pid(), signal.SIGKILL)
        await Fallen.agent(kandev, session_id)
        await kandev.kill()
        await kandev.start()


MOMENTS = ("asked", "replacing")
"""Right behind the cancel's acceptance; when the escalation has begun to end the process."""


@pytest.mark.proves("SURVIVE-backend-kill", "SURVIVE-agentctl-kill", "SURVIVE-agent-death", "INV-8")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("who", ["agent", "agentctl", "backend", "both", "everything"])
async def test_whoever_is_killed_during_an_escalation_the_turn_ends_and_the_session_goes_on(
    tmp_path: Path, who: str, moment: str
) -> None:
    slow = {"KANDEV_TEARDOWN_TERM_S": "1.5"}
    async with Kandev(tmp_path / "home", slow) as kandev:
        task_id, session_id = await kandev.session("stubborn\nspawn 600\nsay hello\ndeaf 600")
        async with kandev.watching(session_id) as events, kandev.events() as caller:
            await hello(events)
            await add(kandev, task_id, session_id, "say queued")
            old = marked(session_id)
            await caller.send("agent.cancel", {"session_id": session_id})
            await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
            if moment == "replacing":
                line = "The agent did not acknowledge"
                await events.until(
                    "session.message.added", lambda p: p["message"]["content"].startswith(line)
                )
            await getattr(Fallen, who)(kandev, session_id)
        async with kandev.watching(session_id) as events:
            ended = await turns_over(events)
            await events.state("WAITING_FOR_INPUT")
            assert ended["cause"] in ("user", "lost")
            await until_true(lambda: not [pid for pid in old if alive(pid)], "nothing of it is left")
            session = await get(kandev, session_id)
            assert session["cancellation_pending"] is False
            assert session["queue"] == {"count": 1, "max": 10, "auto_run": False}, "and parked"
            await add(kandev, task_id, session_id, "recall")
            await turns_over(events, 3)
        assert (await said(kandev, session_id))[-2:] == [
            "recall: stubborn / spawn 600 / say hello / deaf 600",
            "queued",
        ]


@pytest.mark.proves("TURN-stop-meanwhile", "INV-8")
async def test_a_stop_in_the_middle_of_an_escalation_whose_backend_died_still_holds(kandev: Kandev) -> None:
    _, session_id = await kandev.session("stubborn\nsay hello\ndeaf 600")
    async with kandev.watching(session_id) as events, kandev.events() as caller:
        await hello(events)
        await caller.send("agent.cancel", {"session_id": session_id})
        await events.until("session.cancellation_changed", lambda p: p["cancellation_pending"])
        await kandev.call("session.stop", {"session_id": session_id})
    await kandev.kill()
    with suppress(httpx.HTTPError, CallFailed):
        await kandev.call("session.stop", {"session_id": session_id})
    await kandev.start()
    assert (await get(kandev, session_id))["state"] == "CANCELLED"
    await until_true(lambda: not marked(session_id), "nothing of it is left")
    async with kandev.watching(session_id) as events:
        assert (await turns_over(events))["cause"] in ("stopped", "user")
    await agent_is_not_back(kandev, session_id)


async def agent_is_not_back(kandev: Kandev, session_id: str) -> None:
    assert (await get(kandev, session_id))["state"] == "CANCELLED"
    assert not marked(session_id)

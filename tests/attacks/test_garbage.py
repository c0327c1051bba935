"""Agents that say what is no protocol, ask without end and finish nothing, over a whole Kandev."""

import asyncio

import pytest

from tests.attacks.scenes import hostile, memory
from tests.e2e.kandev import Kandev
from tests.e2e.scenes import add, get, marked, said, turns_over, until_holds

LIMIT = 2_000_000


@pytest.mark.proves(
    "SURVIVE-hostile-agent-garbage", "ACP-not-json", "ACP-split-utf8", "ACP-huge-line", "ACP-unknown-request"
)
async def test_garbage_costs_no_word_of_the_turn_around_it_and_the_agent_goes_on(kandev: Kandev) -> None:
    kandev.environment["KANDEV_AGENTCTL_LINE_MAX_BYTES"] = str(LIMIT)
    await kandev.stop()
    await kandev.start()
    task_id, session_id = await kandev.session(f"garbage {LIMIT}", agent_profile_id=await hostile(kandev))
    async with kandev.watching(session_id) as events:
        ended = await turns_over(events)
        assert (ended["stop_reason"], ended["cause"]) == ("end_turn", "agent")
        (agent,) = marked(session_id)
        await add(kandev, task_id, session_id, "say next")
        await turns_over(events, 2)
    assert "".join(await said(kandev, session_id)) == "one zwölf 🙂 漢next", (
        "what comes behind an end is history"
    )
    assert marked(session_id) == [agent], "it is the same process"
    told = await said(kandev, session_id, "system", "status")
    assert any("no protocol message" in line for line in told)
    assert f"The agent wrote a line longer than {LIMIT} bytes; it was skipped." in told
    assert len(told) < 20, told
    assert (await get(kandev, session_id))["state"] == "WAITING_FOR_INPUT"


@pytest.mark.proves("SURVIVE-hostile-agent-requests")
async def test_of_four_hundred_permission_requests_those_beyond_the_bound_are_cancelled(
    kandev: Kandev,
) -> None:
    agent = await hostile(kandev)
    task_id, session_id = await kandev.session("asks 400", agent_profile_id=agent)
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "asked")
        requests = [m for m in await kandev.messages(session_id) if m["type"] == "permission_request"]
        assert len(requests) == 256
        (notice,) = await said(kandev, session_id, "system", "status")
        assert "256 permission requests open" in notice
        assert (await kandev.call("agent.cancel", {"session_id": session_id}))["success"]
        await turns_over(events)
        await add(kandev, task_id, session_id, "say next")
        await turns_over(events, 2)
    requests = [m for m in await kandev.messages(session_id) if m["type"] == "permission_request"]
    assert {request["metadata"]["status"] for request in requests} == {"cancelled"}
    assert (await said(kandev, session_id))[-1] == "next"


@pytest.mark.proves("SURVIVE-hostile-agent-memory")
async def test_ten_thousand_unfinished_tool_calls_with_long_names_cost_agentctl_little(
    kandev: Kandev,
) -> None:
    task_id, session_id = await kandev.session("say first", agent_profile_id=await hostile(kandev))
    async with kandev.watching(session_id) as events:
        await turns_over(events)
        before = memory(kandev.agentctl_pid())
        await add(kandev, task_id, session_id, "calls 10000")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "called")
        grown = memory(kandev.agentctl_pid()) - before
        assert (await kandev.call("agent.cancel", {"session_id": session_id}))["success"]
        await turns_over(events, 2)
    assert grown < 25 << 20, f"{grown >> 20} MiB for what is 40 MiB in names"


@pytest.mark.proves("TURN-acknowledged-behind-output")
async def test_an_agent_that_obeyed_is_kept_although_much_of_what_it_said_is_not_stored_yet(
    kandev: Kandev,
) -> None:
    kandev.environment |= {"KANDEV_PROMPT_ACCEPT_S": "1", "KANDEV_CANCEL_ACKNOWLEDGE_S": "3"}
    await kandev.stop()
    await kandev.start()
    agent = await hostile(kandev)
    task_id, session_id = await kandev.session("say first", agent_profile_id=agent)
    async with kandev.watching(session_id) as events:
        await turns_over(events)
        (process,) = marked(session_id)
        await add(kandev, task_id, session_id, "many 15000 20")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "x" * 20)
        cancelled = asyncio.create_task(kandev.call("agent.cancel", {"session_id": session_id}))
        ended = await turns_over(events, 2)
        answer = await cancelled
        added = [e["payload"]["message"] for e in events.seen if e["action"] == "session.message.added"]
    assert ended["cause"] == "user"
    assert answer["success"] or "still under way" in answer["error"]
    lines = [message["content"] for message in added if message["author_type"] == "system"]
    assert lines == ["Turn cancelled by user."]
    await until_holds(lambda: _waits(kandev, session_id), "it waits for the next message")
    assert marked(session_id) == [process]
    async with kandev.watching(session_id) as events:
        await add(kandev, task_id, session_id, "say next")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "next")


@pytest.mark.proves("SURVIVE-hostile-agent-garbage")
async def test_an_agent_that_talks_before_anything_was_agreed_on_takes_its_first_message_all_the_same(
    kandev: Kandev,
) -> None:
    _, session_id = await kandev.session("say hello", agent_profile_id=await hostile(kandev, "early"))
    async with kandev.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
    await until_holds(lambda: _waits(kandev, session_id), "it waits for the next message")
    requests = [m for m in await kandev.messages(session_id) if m["type"] == "permission_request"]
    assert all(request["metadata"]["status"] == "cancelled" for request in requests)


@pytest.mark.proves("SURVIVE-hostile-agent-silence")
async def test_an_agent_that_never_stops_talking_by_itself_is_ended_by_a_cancel(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("chatter", agent_profile_id=await hostile(kandev))
    async with kandev.watching(session_id) as events:
        await turns_over(events)
        await events.until("session.turn.started", lambda p: p.get("own_turn_id") is not None)
        answer = await kandev.call("agent.cancel", {"session_id": session_id})
        assert (answer["success"], answer["error"]) == (False, "cancel timed out, still under way")
        assert (await turns_over(events, 2))["cause"] == "user"
        await add(kandev, task_id, session_id, "say next")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "next")


async def _waits(kandev: Kandev, session_id: str) -> bool:
    return bool((await get(kandev, session_id))["state"] == "WAITING_FOR_INPUT")

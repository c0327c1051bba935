"""Messages to a session: at once or in order, one fate each, and what parks and releases the queue."""

import asyncio

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.scenes import add, agent_spoke, get, profile, said, turns_over


async def queued(house: Kandev, session_id: str) -> list[str]:
    """What waits, in order."""
    queue = await house.call("message.queue.get", {"session_id": session_id})
    assert queue["count"] == len(queue["entries"])
    assert [e["position"] for e in queue["entries"]] == list(range(queue["count"]))
    return [e["content"] for e in queue["entries"]]


async def fate(house: Kandev, entry_id: str) -> str:
    return str((await house.call("message.status", {"entry_id": entry_id}))["state"])


@pytest.mark.proves(
    "MESSAGE-queued-fifo",
    "MESSAGE-one-fate",
    "ACT-message.add",
    "ACT-message.status",
    "ACT-message.queue.get",
    "NOTE-message.queue.status_changed",
    "INV-2",
    "INV-9",
)
@pytest.mark.field("C41")
async def test_messages_to_a_busy_session_wait_and_go_out_in_order_each_in_its_own_turn(
    house: Kandev,
) -> None:
    task_id, session_id = await house.session("ask Go on\nsay first")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        sent = [
            await add(house, task_id, session_id, f"say {word}") for word in ("second", "third", "fourth")
        ]
        assert [s["status"] for s in sent] == ["queued"] * 3
        assert await queued(house, session_id) == ["say second", "say third", "say fourth"]
        assert [await fate(house, s["entry_id"]) for s in sent] == ["queued"] * 3
        changed = await events.until("message.queue.status_changed", lambda p: p["count"] == 3)
        assert (changed["max"], changed["auto_run"]) == (10, True)
        answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": "allow_once"}
        await house.call("permission.respond", answer)
        await turns_over(events, 4)
        assert await queued(house, session_id) == []
    fates = [await house.call("message.status", {"entry_id": s["entry_id"]}) for s in sent]
    assert [f["state"] for f in fates] == ["delivered"] * 3
    assert len({f["turn_id"] for f in fates}) == 3, "each in its own turn"
    spoken = ["outcome: selected allow_once", "first", "second", "third", "fourth"]
    assert await said(house, session_id) == spoken
    transcript = await house.messages(session_id)
    for one, told in zip(sent, fates, strict=True):
        stored = next(m for m in transcript if m["id"] == one["message_id"])
        assert (stored["author_type"], stored["turn_id"]) == ("user", told["turn_id"])


async def test_a_message_starts_a_prepared_session_and_an_idle_one_hears_it_at_once(house: Kandev) -> None:
    task_id = (await house.task())["task"]["id"]
    prepared = await house.call("session.launch", {"task_id": task_id, "intent": "prepare"})
    session_id = prepared["session_id"]
    assert prepared["state"] == "CREATED"
    started = await add(house, task_id, session_id, "say one")
    assert started["status"] == "started"
    async with house.watching(session_id) as events:
        await turns_over(events)
        assert (await add(house, task_id, session_id, "say two"))["status"] == "sent"
        await turns_over(events, 2)
    assert await said(house, session_id) == ["one", "two"]


@pytest.mark.proves("MESSAGE-idempotency")
@pytest.mark.field("C01", "C31")
async def test_the_same_key_is_one_message(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        same = [add(house, task_id, session_id, "say once", idempotency_key="k1") for _ in range(5)]
        answers = await asyncio.gather(*same)
        assert {a["entry_id"] for a in answers} == {answers[0]["entry_id"]}
        assert {a["message_id"] for a in answers} == {answers[0]["message_id"]}
        assert await queued(house, session_id) == ["say once"]
        with pytest.raises(CallFailed) as refused:
            await add(house, task_id, session_id, "say else", idempotency_key="k1")
        assert (refused.value.status, refused.value.code) == (409, "CONFLICT")
        assert "idempotency_key" in refused.value.message
        assert await queued(house, session_id) == ["say once"]


@pytest.mark.proves("MESSAGE-queue-full", "INV-7")
async def test_a_full_queue_takes_nothing_more_and_says_how_full_it_is(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        for number in range(10):
            await add(house, task_id, session_id, f"say {number}")
        before = await get(house, session_id)
        with pytest.raises(CallFailed) as refused:
            await add(house, task_id, session_id, "say one too many")
        assert (refused.value.status, refused.value.code) == (409, "CONFLICT")
        assert refused.value.error["details"] == {"error": "queue_full", "queue_size": 10, "max": 10}
        assert await queued(house, session_id) == [f"say {number}" for number in range(10)]
        assert await get(house, session_id) == before


@pytest.mark.proves("ACT-message.queue.remove")
async def test_a_waiting_entry_can_be_taken_out_and_is_never_delivered(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        kept = await add(house, task_id, session_id, "say kept")
        gone = await add(house, task_id, session_id, "say gone")
        removal = {"session_id": session_id, "entry_id": gone["entry_id"]}
        await house.call("message.queue.remove", removal)
        assert await queued(house, session_id) == ["say kept"]
        told = await house.call("message.status", {"entry_id": gone["entry_id"]})
        assert (told["state"], told["by"]) == ("removed", "user")
        with pytest.raises(CallFailed) as again:
            await house.call("message.queue.remove", removal)
        assert again.value.code == "CONFLICT"
        await house.call("agent.cancel", {"session_id": session_id})
        await add(house, task_id, session_id, "say released")
        await turns_over(events, 3)
    assert await said(house, session_id) == ["hello", "released", "kept"]
    assert await fate(house, kept["entry_id"]) == "delivered"


@pytest.mark.proves("MESSAGE-unparks", "TURN-parked")
async def test_a_new_message_runs_at_once_and_the_parked_ones_follow(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello\nsleep 600")
    async with house.watching(session_id) as events:
        await agent_spoke(events)
        await add(house, task_id, session_id, "say parked one")
        await add(house, task_id, session_id, "say parked two")
        await house.call("agent.cancel", {"session_id": session_id})
        session = await get(house, session_id)
        assert session["queue"] == {"count": 2, "max": 10, "auto_run": False}
        assert session["parked_reason"] == "cancelled by a person"
        assert (await house.call("session.explain", {"session_id": session_id}))["sentence"].endswith(
            "2 messages wait, parked: cancelled by a person."
        )
        assert (await add(house, task_id, session_id, "say now"))["status"] == "sent"
        await turns_over(events, 4)
        assert (await get(house, session_id))["queue"]["auto_run"] is True
    assert await said(house, session_id) == ["hello", "now", "parked one", "parked two"]


@pytest.mark.proves("MESSAGE-failed-turn-parks")
async def test_a_turn_that_fails_parks_what_waits_instead_of_burning_it(house: Kandev) -> None:
    task_id, session_id = await house.session("ask Go on\nfail -32000 Rate limit reached")
    async with house.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        await add(house, task_id, session_id, "say later")
        answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": "allow_once"}
        await house.call("permission.respond", answer)
        ended = await turns_over(events)
        assert "Rate limit reached" in ended["error"]
        session = await get(house, session_id)
        assert session["queue"]["auto_run"] is False
        assert "Rate limit reached" in session["parked_reason"]
        assert any("Rate limit reached" in line for line in await said(house, session_id, "system", "error"))
        assert await queued(house, session_id) == ["say later"]
        await add(house, task_id, session_id, "say again")
        await turns_over(events, 3)
    assert (await said(house, session_id))[1:] == ["again", "later"]


@pytest.mark.proves("MESSAGE-terminal-conflict")
async def test_a_message_to_a_failed_session_is_refused_with_the_way_back(house: Kandev) -> None:
    broken = await profile(house, ["/nowhere/agent"])
    task_id, session_id = await house.session("say hello", agent_profile_id=broken)
    async with house.watching(session_id) as events:
        await events.state("FAILED")
    with pytest.raises(CallFailed) as refused:
        await add(house, task_id, session_id, "say no")
    assert (refused.value.status, refused.value.code) == (409, "CONFLICT")
    assert "FAILED" in refused.value.message and "resume" in refused.value.message
    assert await queued(house, session_id) == ["say hello"]


@pytest.mark.proves("ACT-message.list", "DOOR-lists")
async def test_the_transcript_is_read_in_pages_from_both_ends(house: Kandev) -> None:
    _, session_id = await house.session("\n".join(f"say {number}" for number in range(1, 8)))
    async with house.watching(session_id) as events:
        await turns_over(events)
    everything = await house.messages(session_id)
    assert [m["content"] for m in everything[1:]] == [str(n) for n in range(1, 8)]
    assert [m["seq"] for m in everything] == sorted(m["seq"] for m in everything)
    ids = [m["id"] for m in everything]

    async def page(**more: object) -> list[str]:
        found = await house.call("message.list", {"session_id": session_id, **more})
        return [m["id"] for m in found["messages"]]

    assert await page(limit=3) == ids[:3], "without a place, from the oldest"
    assert await page(limit=3, after=ids[2]) == ids[3:6]
    assert await page(limit=3, before=ids[6]) == ids[3:6]
    assert await page(after=ids[-1]) == []
    with pytest.raises(CallFailed) as refused:
        await page(before=ids[0], after=ids[1])
    assert refused.value.code == "VALIDATION_ERROR"


async def test_an_empty_message_and_an_unknown_entry_are_refused(house: Kandev) -> None:
    task_id, session_id = await house.session("say hello")
    for content in ("", "  \n "):
        with pytest.raises(CallFailed) as refused:
            await add(house, task_id, session_id, content)
        assert refused.value.code == "VALIDATION_ERROR"
        assert "content" in refused.value.message
    with pytest.raises(CallFailed) as unknown:
        await house.call("message.status", {"entry_id": "nobody"})
    assert (unknown.value.code, unknown.value.message) == ("NOT_FOUND", "entry not found")

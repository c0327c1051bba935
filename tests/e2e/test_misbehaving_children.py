"""However a child's agent misbehaves, its parent's interrupt has one fate, told truthfully, and the child
hears everything once and in order."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.kandev import Kandev
from tests.e2e.parents import Parent, family, succeeded
from tests.e2e.scenes import (
    add,
    alive,
    get,
    marked,
    nothing_left,
    profile,
    said,
    turns_over,
    until_holds,
)

pytestmark = pytest.mark.proves("MCP-message-task", "INV-8")


@dataclass(frozen=True)
class Way:
    """What a child plays, and whether the interrupt costs it its process."""

    script: str
    replaced: bool
    patience_s: float | None = None


WAYS = {
    "obeying": Way("say hello\nsleep 600", replaced=False),
    "deaf": Way("say hello\ndeaf 600", replaced=True),
    "deaf and stubborn with a child": Way("stubborn\nspawn 600\nsay hello\ndeaf 600", replaced=True),
    "late": Way("say hello\nlate 0.3", replaced=False),
    "later than allowed": Way("say hello\nlate 600", replaced=True),
    "lie": Way("say hello\nlie 600", replaced=False),
    "crash": Way("say hello\ndeaf 2\ncrash", replaced=True, patience_s=20),
    "silent": Way("say hello\nsilent", replaced=True),
    "losing some cancels": Way("lose 3\nsay hello\nsleep 600", replaced=False),
    "losing every cancel": Way("lose 100000\nsay hello\nsleep 600", replaced=True),
    "failing the prompt": Way("say hello\nsleep 600\nfail -32603 aborted", replaced=False),
}


async def hello(house: Kandev, session_id: str) -> None:
    """The child is in the middle of its work."""
    async with house.watching(session_id) as events:
        await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")


async def entries(house: Kandev, session_id: str) -> dict[str, dict[str, Any]]:
    """The transcript's messages that were sent to the agent, by their text."""
    messages = [m for m in await house.messages(session_id) if m["author_type"] == "user"]
    found = {message["content"]: message for message in messages}
    assert len(found) == len(messages), "each stands there once"
    return found


async def nothing_but_its_agent(house: Kandev, parent: Parent, session_id: str) -> None:
    """One process per session, an empty queue, nothing under way; and a stop leaves nothing."""
    for name in (session_id, parent.session_id):
        assert len(marked(name)) == 1, name
        session = await get(house, name)
        assert (session["state"], session["queue"]["count"]) == ("WAITING_FOR_INPUT", 0)
        assert (session["cancellation_pending"], session.get("parked_reason")) == (False, None)
        await house.call("session.stop", {"session_id": name})
        await nothing_left(name)


async def attributed(house: Kandev, parent: Parent, session_id: str, *texts: str) -> None:
    """These came from the parent, and each was delivered."""
    found = await entries(house, session_id)
    for text in texts:
        metadata = found[text]["metadata"]
        assert metadata["sender_task_id"] == parent.task_id
        assert metadata["sender_session_id"] == parent.session_id
        fate = await house.call("message.status", {"entry_id": metadata["entry_id"]})
        assert fate["state"] == "delivered"


@pytest.mark.proves("RACE-I1", "RACE-I2")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_a_child_that_misbehaves_under_an_interrupt_hears_it_once_and_before_what_waited(
    house: Kandev, way: Way
) -> None:
    patience: dict[str, Any] = {} if way.patience_s is None else {"cancel_acknowledge_s": way.patience_s}
    agent = await profile(house, **patience)
    parent, child, session_id = await family(house, way.script, agent_profile_id=agent)
    await hello(house, session_id)
    before = marked(session_id)
    async with house.watching(session_id) as events:
        if way.patience_s is None:  # else its death is near, and the interrupt has to be there first
            queued = await parent.gets("message_task", task_id=child, prompt="say later")
            assert queued["status"] == "queued"
        message = {"task_id": child, "prompt": "recall", "delivery_mode": "interrupt"}
        sent = await parent.gets("message_task", **message)
        assert sent == {"task_id": child, "session_id": session_id, "status": "sent"}
        first = await turns_over(events)
        last = await turns_over(events, 2 if way.patience_s else 3)
        await events.state("WAITING_FOR_INPUT", after=events.seen.index(_frame(events.seen, last)))
    assert first["cause"] in (("interrupted", "lost") if way.patience_s else ("interrupted",))
    assert last["cause"] == "agent"
    assert (first["execution_id"] != last["execution_id"]) is way.replaced
    assert bool([pid for pid in before if alive(pid)]) is not way.replaced
    recalled = "recall: " + way.script.replace("\n", " / ")
    waited = [] if way.patience_s else ["later"]
    heard = [line for line in await said(house, session_id) if not line.startswith("pid ")]
    assert heard == ["hello", recalled, *waited]
    texts = ["recall", *(f"say {word}" for word in waited)]
    assert await said(house, session_id, "user") == [way.script, *texts]
    await attributed(house, parent, session_id, *texts)
    lines = await said(house, session_id, "system", "status")
    assert not [line for line in lines if "cancelled by" in line], lines
    await nothing_but_its_agent(house, parent, session_id)


def _frame(seen: list[dict[str, Any]], payload: dict[str, Any]) -> dict[str, Any]:
    return next(frame for frame in seen if frame["payload"] == payload)


async def test_a_child_whose_agent_has_crashed_is_started_again_with_the_interrupt(house: Kandev) -> None:
    parent, child, session_id = await family(house, "say hello\ncrash")
    async with house.watching(session_id) as events:
        assert (await turns_over(events))["cause"] == "process"
        await events.state("WAITING_FOR_INPUT")
        message = {"task_id": child, "prompt": "recall", "delivery_mode": "interrupt"}
        assert (await parent.gets("message_task", **message))["status"] == "sent"
        assert (await turns_over(events, 2))["cause"] == "agent"
    assert await said(house, session_id) == ["hello", "recall: say hello / crash"]
    await attributed(house, parent, session_id, "recall")


async def test_a_turn_that_the_child_began_by_itself_is_interrupted_too(tmp_path: Path) -> None:
    """An own turn lasts while the agent talks, and here a whole minute longer."""
    async with Kandev(tmp_path / "home", {"KANDEV_OWN_TURN_SILENT_S": "60"}) as kandev:
        parent, child, session_id = await family(kandev, "say hello\nwake 0.4 an idea")
        async with kandev.watching(session_id) as events:
            await events.until("session.message.added", lambda p: p["message"]["content"] == "an idea")
            assert (await get(kandev, session_id))["state"] == "RUNNING"
            message = {"task_id": child, "prompt": "say now", "delivery_mode": "interrupt"}
            assert (await parent.gets("message_task", **message))["status"] == "sent"
            own = await turns_over(events, 2)
            assert (own["cause"], own["prompt_generation"]) == ("interrupted", 0)
            await turns_over(events, 3)
        assert await said(kandev, session_id) == ["hello", "an idea", "now"]
        await attributed(kandev, parent, session_id, "say now")
        await nothing_but_its_agent(kandev, parent, session_id)


async def test_a_child_that_does_not_end_in_the_time_of_an_answer_is_queued_for_and_hears_it_later(
    house: Kandev,
) -> None:
    """The answer does not wait as long as the cancel may, and is true when it is given."""
    patient = await profile(house, cancel_acknowledge_s=60)
    parent, child, session_id = await family(house, "say hello\nlate 7", agent_profile_id=patient)
    await hello(house, session_id)
    async with house.watching(session_id) as events:
        message = {"task_id": child, "prompt": "say now", "delivery_mode": "interrupt"}
        assert (await parent.gets("message_task", **message))["status"] == "queued"
        await turns_over(events, 2)
    assert await said(house, session_id) == ["hello", "now"]
    await attributed(house, parent, session_id, "say now")


@pytest.mark.proves("RACE-I9a")
async def test_two_interrupts_of_a_deaf_child_and_what_a_person_says_meanwhile_keep_their_order(
    house: Kandev,
) -> None:
    agent = await profile(house, cancel_acknowledge_s=3)
    parent, child, session_id = await family(house, "say hello\ndeaf 600", agent_profile_id=agent)
    other = await beside(house, parent)
    await hello(house, session_id)
    message = {"task_id": child, "delivery_mode": "interrupt"}
    async with house.watching(session_id) as events:
        begun = len(events.seen)
        await parent.begins("message_task", prompt="say first", **message)
        await events.until("message.queue.status_changed", lambda p: p["count"] == 1, after=begun)
        await other.begins("message_task", prompt="say second", **message)
        await events.until("message.queue.status_changed", lambda p: p["count"] == 2)
        await add(house, child, session_id, "say third")
        await turns_over(events, 3)
    for one in (parent, other):
        assert succeeded(await one.result())["status"] == "sent"
    assert await said(house, session_id) == ["hello", "first", "second", "third"]
    assert (await said(house, session_id, "user"))[1:] == ["say first", "say second", "say third"]
    await house.call("session.stop", {"session_id": other.session_id})
    await until_holds(lambda: _idle(house, session_id), "it waits")
    await nothing_but_its_agent(house, parent, session_id)


async def beside(house: Kandev, parent: Parent) -> Parent:
    """Another session of the parent's task."""
    launch = {"task_id": parent.task_id, "prompt": "say ready"}
    session_id = str((await house.call("session.launch", launch))["session_id"])
    async with house.watching(session_id) as events:
        await turns_over(events)
    return Parent(house, parent.task_id, session_id)


async def _idle(house: Kandev, session_id: str) -> bool:
    return bool((await get(house, session_id))["state"] == "WAITING_FOR_INPUT")

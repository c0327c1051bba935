"""What is refused at the queue's doors changes nothing: every row is as it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.gateway.house import MOCK, WAIT_S, House
from tests.gateway.queue_line import Line


@pytest.fixture
async def three(busy: Line) -> tuple[Line, dict[str, Any]]:
    """A busy session with three that wait, and names of things that may be asked for."""
    ids = [await busy.add(f"say {number}") for number in range(3)]
    other = await busy.house.ok("session.launch", task_id=busy.task, prompt="sleep 30")
    foreign = Line(busy.house, busy.task, other["session_id"])
    await busy.house.until(foreign.session, "RUNNING")
    (in_turn,) = [r["metadata"]["entry_id"] for r in await _said(foreign)]
    removed = await busy.add("say removed")
    await busy.ok("remove", entry_id=removed)
    entries = await foreign.add("say elsewhere")
    return busy, {"ids": ids, "foreign": entries, "in_turn": in_turn, "removed": removed}


async def _said(line: Line) -> list[dict[str, Any]]:
    messages = (await line.house.ok("message.list", session_id=line.session))["messages"]
    return [m for m in messages if m["author_type"] == "user"]


NO_ENTRY = ("NOT_FOUND", "entry not found")
GONE = ("CONFLICT", "does not wait any more")
EACH_ONCE = ("VALIDATION_ERROR", "entry_ids must name every entry that waits, each once")
SAY = ("VALIDATION_ERROR", "content is empty: say something.")
Payload = Callable[[dict[str, Any]], dict[str, Any]]
REFUSALS: dict[str, tuple[str, Payload, tuple[str, str]]] = {
    "an unknown entry is removed": ("remove", lambda k: {"entry_id": "x"}, NO_ENTRY),
    "an unknown entry is changed": ("update", lambda k: {"entry_id": "x", "content": "y"}, NO_ENTRY),
    "an unknown entry is sent now": ("send_now", lambda k: {"entry_id": "x"}, NO_ENTRY),
    "another session's entry is removed": ("remove", lambda k: {"entry_id": k["foreign"]}, NO_ENTRY),
    "another session's entry is changed": (
        "update",
        lambda k: {"entry_id": k["foreign"], "content": "y"},
        NO_ENTRY,
    ),
    "another session's entry is sent now": ("send_now", lambda k: {"entry_id": k["foreign"]}, NO_ENTRY),
    "a removed entry is removed": ("remove", lambda k: {"entry_id": k["removed"]}, GONE),
    "a removed entry is changed": ("update", lambda k: {"entry_id": k["removed"], "content": "y"}, GONE),
    "a removed entry is sent now": ("send_now", lambda k: {"entry_id": k["removed"]}, GONE),
    "nothing is added": ("add", lambda k: {"content": " \n"}, SAY),
    "an entry is emptied": ("update", lambda k: {"entry_id": k["ids"][0], "content": "\t"}, SAY),
    "one is left out of the order": ("reorder", lambda k: {"entry_ids": k["ids"][1:]}, EACH_ONCE),
    "one is named twice": ("reorder", lambda k: {"entry_ids": [*k["ids"], k["ids"][0]]}, EACH_ONCE),
    "one is named for another": ("reorder", lambda k: {"entry_ids": [*k["ids"][:2], k["ids"][0]]}, EACH_ONCE),
    "a foreign one is put in order": (
        "reorder",
        lambda k: {"entry_ids": [*k["ids"], k["foreign"]]},
        EACH_ONCE,
    ),
    "a queue is run beside a turn": ("drain", lambda k: {}, ("CONFLICT", "A turn is under way")),
}


@pytest.mark.proves("INV-7", "ACT-message.queue.reorder")
@pytest.mark.parametrize("what", REFUSALS)
async def test_what_is_refused_leaves_every_row_as_it_was(
    three: tuple[Line, dict[str, Any]], what: str
) -> None:
    line, known = three
    action, payload, (code, sentence) = REFUSALS[what]
    before = line.house.rows()

    said = await line.refused(action, code, **payload(known))

    assert sentence in said
    assert line.house.rows() == before


@pytest.mark.proves("INV-7")
@pytest.mark.parametrize("action", ["remove", "update", "send_now"])
async def test_an_entry_that_a_turn_has_is_left_to_it(
    three: tuple[Line, dict[str, Any]], action: str
) -> None:
    line, known = three
    fate = await line.house.ok("message.status", entry_id=known["in_turn"])
    line.session = fate["turn_id"].partition(".")[0]
    before = line.house.rows()
    more = {"content": "y"} if action == "update" else {}

    said = await line.refused(action, "CONFLICT", entry_id=known["in_turn"], **more)

    assert said == "The entry is in the present turn already: cancel that turn instead."
    assert line.house.rows() == before


QUEUE_ACTIONS: dict[str, dict[str, Any]] = {
    "get": {},
    "add": {"content": "say x"},
    "update": {"entry_id": "x", "content": "say x"},
    "remove": {"entry_id": "x"},
    "clear": {},
    "reorder": {"entry_ids": []},
    "send_now": {"entry_id": "x"},
    "drain": {},
    "auto_run.set": {"auto_run": False},
}


@pytest.mark.proves("INV-7")
async def test_an_unknown_session_has_no_queue(busy: Line) -> None:
    before = busy.house.rows()
    for action, payload in QUEUE_ACTIONS.items():
        said = await busy.house.refused(
            f"message.queue.{action}", "NOT_FOUND", session_id="session_x", **payload
        )
        assert said == "session not found"
    assert busy.house.rows() == before


@pytest.mark.proves("INV-7")
async def test_a_session_that_is_over_takes_nothing_and_sends_nothing_until_it_is_resumed(busy: Line) -> None:
    entry = await busy.add("say later")
    await busy.house.ok("session.stop", session_id=busy.session)
    assert await busy.house.ctx.sessions.gone(busy.session, WAIT_S)
    before = busy.house.rows()

    assert "CANCELLED: resume it" in await busy.refused("add", "CONFLICT", content="say more")
    assert "CANCELLED: resume it" in await busy.refused("send_now", "CONFLICT", entry_id=entry)
    assert "CANCELLED: resume it" in await busy.refused("drain", "CONFLICT")

    assert busy.house.rows() == before
    assert await busy.waiting() == ["say later"]
    await busy.ok("update", entry_id=entry, content="say instead")
    await busy.house.ok("session.recover", session_id=busy.session)
    assert await busy.until(lambda said: len(said) == 2) == ["sleep 30", "say instead"]


async def test_an_archived_task_takes_nothing(house: House) -> None:
    profile = await house.ok("agent.profile.create", name="Mock", command=list(MOCK))
    task = await house.task(agent_profile_id=profile["id"])
    prepared = await house.ok("session.launch", task_id=task["id"], intent="prepare")
    await house.ok("task.archive", id=task["id"])

    line = Line(house, task["id"], prepared["session_id"])
    await line.refused("add", "CONFLICT", content="say x")
    assert await line.waiting() == []

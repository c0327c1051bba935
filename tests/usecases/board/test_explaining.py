"""Why a message waits is said in every state in which one can, also after a start and when nobody looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from kandev.core.effects import Timer
from kandev.core.inputs import Ended, Exited, Expired, Gone, LaunchFailed, Stop
from kandev.core.views import needs_actor, wire_state
from tests.core.story import (
    Story,
    asleep,
    busy_by_itself,
    dozing,
    message,
    parked,
    refused_once,
    running,
    starting,
    waiting,
)
from tests.gateway.house import House


def failed_turn() -> Story:
    s = running()(message("D"))
    return s(Ended(s.ref, "error", "429 too many requests"))


WAITS: dict[str, tuple[Callable[[], Story], str]] = {
    "cancelled": (parked, "parked: cancelled by a person."),
    "turn failed": (failed_turn, "parked: the last turn failed: 429 too many requests."),
    "start failed": (
        lambda: starting()(LaunchFailed("s.1", "no agent"))(Gone("s.1")),
        "until the session is resumed.",
    ),
    "next start failed": (
        lambda: asleep()(message("D"))(LaunchFailed("s.2", "no disk"))(Gone("s.2")),
        "parked: the agent did not start: no disk.",
    ),
    "stopped": (lambda: running()(message("D"))(Stop("x"))(Gone("s.1")), "until the session is resumed."),
    "lost": (
        lambda: waiting()(Exited("s.1"))(Expired(Timer("close", "s.1")))(message("D", "peer")),
        "not proven gone, and nothing is started beside it.",
    ),
    "refused": (refused_once, "refused the prompt; it is tried again shortly."),
    "starting": (starting, "The agent is starting."),
    "working": (lambda: running()(message("D")), "The agent is working."),
    "by itself": (lambda: busy_by_itself()(message("D")), "The agent is working."),
    "replaced": (lambda: waiting()(Exited("s.1"))(message("D", "peer")), "process is being ended"),
    "falling asleep": (lambda: dozing()(message("D", "peer")), "put to sleep"),
}
"""Each way in which a message can wait, and the words that say why."""


@pytest.mark.field("D41", "A11", "D03")
@pytest.mark.parametrize("why", WAITS)
async def test_why_a_message_waits_is_said_from_the_row_alone(house: House, why: str) -> None:
    begin, words = WAITS[why]
    task = await house.task()
    await house.ok("agent.profile.create", name="Mock", command=["mock"])
    prepared = await house.ok("session.launch", task_id=task["id"], intent="prepare")
    value = replace(begin().s, id=prepared["session_id"])
    record = await house.ctx.store.read(lambda tx: tx.sessions.get(value.id))
    assert record is not None and value.queue
    fresh = replace(record, value=value, state=wire_state(value))
    await house.ctx.store.write(lambda tx: tx.sessions.update(fresh))
    told = await house.ok("session.explain", session_id=value.id)
    assert words in told["sentence"] and "1 message waits" in told["sentence"], told["sentence"]
    recovered = await house.ctx.store.read(lambda tx: tx.sessions.alive())
    assert (value.id in recovered) is needs_actor(value), "what goes on by itself is taken up at a start"

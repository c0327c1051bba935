"""The rows I of the race matrix that hold for a person's messages, and what a cancel leaves behind."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from kandev.core.inputs import Ended, Exited, Output, PermissionAsked, Refused, Taken
from kandev.core.session import Launch
from kandev.core.transcript import PermissionAsk, Text
from kandev.ports.store import Store
from kandev.usecases import add_message, cancel_turn
from kandev.usecases.context import Context
from tests.simulation.story import Story, in_every_order


async def cancelled(story: Story, session: str) -> cancel_turn.Cancelled:
    """A person cancels, and waits for the answer."""
    return await story.ask(cancel_turn.cancel_turn(story.ctx, session_id=session))


@pytest.mark.proves("INV-3")
@pytest.mark.field("B05", "B25")
@in_every_order
async def test_i13_the_end_of_an_earlier_turn_does_not_touch_the_present_one(story: Story) -> None:
    session = await story.launched("sleep 300")
    earlier = story.value(session).turn
    assert earlier is not None
    await cancelled(story, session)
    story.message(session, "sleep 20")
    await story.until(lambda: story.running(session))
    story.faults.quiet = True
    await asyncio.sleep(2)
    before = story.everything()
    old = earlier.ref
    for late in (
        Ended(old),
        Taken(old),
        Refused(old, "late"),
        Output(old, Text("message", "late")),
        PermissionAsked(old, PermissionAsk("late", "late")),
        Exited("another execution"),
    ):
        await story.ctx.sessions._actors[session].tell(late)
        await asyncio.sleep(1)
    assert story.everything() == before
    await story.calm()


@pytest.mark.proves("RACE-I18", "TURN-parked", "MESSAGE-unparks", "TURN-next-prompt", "TURN-task-review")
@in_every_order
async def test_i18_a_new_message_runs_at_once_and_the_parked_ones_follow_it(story: Story) -> None:
    session = await story.launched("sleep 300")
    await story.message(session)
    await story.message(session)
    assert (await cancelled(story, session)).success
    assert (story.state(session), story.task_state()) == ("WAITING_FOR_INPUT", "REVIEW")
    await asyncio.sleep(120)
    assert story.handed() == ["m1"]
    assert story.value(session).parked
    story.faults.quiet = True
    assert (await story.message(session)).status == "sent"
    await story.calm()
    assert story.handed() == ["m1", "m4", "m2", "m3"]
    assert story.world.everything[0].spec.execution == story.value(session).execution


@pytest.mark.proves("RACE-I19", "MESSAGE-failed-turn-parks")
@pytest.mark.field("C09")
@in_every_order
async def test_i19_messages_are_not_burnt_when_a_turn_fails(story: Story) -> None:
    session = await story.launched("sleep 10\nfail -32000 overloaded")
    await story.message(session)
    await story.message(session)
    await story.until(lambda: story.value(session).turn is None)
    await asyncio.sleep(120)
    assert story.handed() == ["m1"]
    assert "overloaded" in str(story.value(session).parked)
    assert story.fates(session) == {"m1": "delivered", "m2": "queued", "m3": "queued"}
    await story.calm()


@pytest.mark.proves("TURN-not-acknowledged", "TURN-escalated-process-replaced", "INV-1", "INV-8")
@pytest.mark.field("A15", "D13")
@in_every_order
async def test_an_agent_that_ignores_the_cancel_is_replaced_and_gets_no_other_prompt(story: Story) -> None:
    session = await story.launched("deaf 300")
    answer = await cancelled(story, session)
    assert (answer.success, answer.error) == (False, "cancel timed out, still under way")
    await story.until(lambda: story.value(session).launch is Launch.ABSENT)
    story.message(session)
    await story.calm()
    first, second = story.world.handed
    assert first.turn.execution != second.turn.execution
    assert not story.world.living(session) or len(story.world.living(session)) == 1


class LateReads:
    """A store whose answers come when they are no longer true: what was running is over."""

    def __init__(self, story: Story, session: str) -> None:
        self._story, self._session = story, session

    async def read(self, ask: Any) -> Any:
        found = await self._story.ctx.store.read(ask)
        await self._story.until(lambda: self._story.value(self._session).turn is None)
        return found


@pytest.mark.proves("MESSAGE-idempotency")
@in_every_order
async def test_a_message_sent_again_is_answered_although_its_turn_ends_meanwhile(story: Story) -> None:
    session = await story.launched("sleep 3")
    story.faults.quiet = True

    def again(ctx: Context) -> asyncio.Task[add_message.Added]:
        named = {"task_id": story.task_of(session), "session_id": session}
        content = {"content": "say m2\nsleep 3", "idempotency_key": "k"}
        return story.ask(add_message.add_message(ctx, **named, **content))

    first = await again(story.ctx)
    assert first.status == "queued"
    late = cast(Store, LateReads(story, session))
    assert await again(replace(story.ctx, store=late)) == replace(first, status="sent")
    await story.calm()
    assert story.handed() == ["m1", "m2"]


@pytest.mark.proves("MESSAGE-one-fate", "INV-2")
@pytest.mark.field("C31", "D01")
@in_every_order
async def test_a_killed_backend_neither_loses_nor_doubles_a_message(story: Story) -> None:
    session = await story.launched()
    answer = story.faults.gate("prompt", "after")
    story.message(session, "sleep 5")
    await answer.reached.wait()
    await story.rig.kill()
    answer.open()
    await story.rig.start()
    await story.calm()
    assert story.handed() == ["m1", "m2"]
    assert story.fates(session) == {"m1": "delivered", "m2": "delivered"}

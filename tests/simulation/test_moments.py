"""Two things at one moment: an end and a cancel, an end and a message, several resumes, many askers.

Not here: the rows of the race matrix (`test_stopping`, `test_queueing`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from unittest.mock import patch

import pytest

from kandev.core.errors import Conflict
from kandev.core.session import Launch
from kandev.runtime.actor import Actor
from kandev.usecases import cancel_turn, recover_session, stop_session
from tests.simulation.story import Story, in_every_order


def cancelling(story: Story, session: str) -> asyncio.Task[cancel_turn.Cancelled]:
    """Ask for a cancel."""
    return story.ask(cancel_turn.cancel_turn(story.ctx, session_id=session))


async def ends(story: Story, session: str) -> None:
    """The agent's turn comes to its natural end."""
    await story.world.executions[story.value(session).execution].prompt_over("end_turn", None)


async def settled_together(story: Story, session: str) -> str:
    """Turn, session and task are settled in one transaction. The cause that was told."""
    await story.until(lambda: story.state(session) == "WAITING_FOR_INPUT")
    assert story.task_state() == "REVIEW"
    [ended] = story.told(session, "session.turn.completed")
    rows = story.rig.rows.execute(
        "SELECT timestamp FROM notifications WHERE "
        "(action = 'session.turn.completed' AND stream_id = ?) OR "
        "(action = 'task.state_changed' AND payload LIKE '%REVIEW%')",
        (session,),
    ).fetchall()
    assert len(rows) == 2 and len(set(rows)) == 1, rows
    return str(json.loads(ended)["cause"])


@pytest.mark.field("A21", "B09")
@in_every_order
async def test_a_cancel_and_the_end_behind_it_settle_turn_session_and_task_together(story: Story) -> None:
    session = await story.launched("sleep 300")
    commit = story.faults.gate("store", "write")
    cancel = cancelling(story, session)
    await commit.reached.wait()
    await ends(story, session)
    commit.open()
    assert (await cancel).success
    assert await settled_together(story, session) == "user"
    await story.calm()


@pytest.mark.field("A21", "B09")
@in_every_order
async def test_an_end_and_the_cancel_behind_it_settle_them_together_too(story: Story) -> None:
    session = await story.launched("sleep 300")
    commit = story.faults.gate("store", "write")
    await ends(story, session)
    await commit.reached.wait()
    cancel = cancelling(story, session)
    commit.open()
    assert (await cancel).success
    assert await settled_together(story, session) == "agent"
    await story.calm()


@pytest.mark.field("B31", "C19", "C21")
@in_every_order
async def test_a_message_in_the_last_moment_of_a_turn_is_not_left_lying(story: Story) -> None:
    session = await story.launched("sleep 300")
    commit = story.faults.gate("store", "write")
    await ends(story, session)
    await commit.reached.wait()
    message = story.message(session)
    commit.open()
    assert (await message).status in ("sent", "queued")
    await story.calm()
    assert (story.handed(), story.fates(session)["m2"]) == (["m1", "m2"], "delivered")
    assert story.rig.swept == 0, "nobody had to look for it"


@pytest.mark.field("B31")
@in_every_order
async def test_an_end_in_the_moment_of_a_message_drains_it(story: Story) -> None:
    session = await story.launched("sleep 300")
    commit = story.faults.gate("store", "write")
    message = story.message(session)
    await commit.reached.wait()
    await ends(story, session)
    commit.open()
    await message
    await story.calm()
    assert (story.handed(), story.rig.swept) == (["m1", "m2"], 0)


@pytest.mark.field("A23")
@in_every_order
async def test_a_cancel_that_is_refused_is_told_and_the_next_one_counts(story: Story) -> None:
    session = await story.launched("sleep 300")
    story.faults.refused_cancels = 1
    refused = await cancelling(story, session)
    assert not refused.success and "cancel failed" in str(refused.error)
    assert story.running(session) and not story.value(session).cancelling
    assert (await cancelling(story, session)).success
    await story.calm()


@pytest.mark.field("D05", "D17", "C57")
@in_every_order
async def test_of_several_resumes_at_once_one_starts_a_process(story: Story) -> None:
    session = await story.launched("sleep 300")
    await story.ask(stop_session.stop_session(story.ctx, session_id=session))
    await story.until(lambda: story.value(session).launch is Launch.ABSENT)
    asked = [story.ask(recover_session.recover_session(story.ctx, session_id=session)) for _ in range(4)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, Conflict) for answer in answers) == 3, answers
    await story.until(lambda: story.state(session) == "WAITING_FOR_INPUT")
    assert (story.value(session).executions, len(story.world.living(session))) == (2, 1)
    await story.calm()


class Counted(Actor):
    """Knows how many run at a time."""

    running = most = 0

    async def run(self, retire: Callable[[], bool]) -> None:
        Counted.running += 1
        Counted.most = max(Counted.most, Counted.running)
        try:
            await super().run(retire)
        finally:
            Counted.running -= 1


@pytest.mark.field("B29", "C57")
@in_every_order
async def test_one_session_has_one_actor_however_many_ask(story: Story) -> None:
    session = await story.launched("exit 0")
    await story.until(lambda: story.value(session).launch is Launch.ABSENT)
    Counted.running = Counted.most = 0

    async def ask_again_and_again() -> None:
        for _ in range(5):
            with suppress(Conflict):  # nothing runs: each ask may make an actor, which retires behind it
                await cancel_turn.cancel_turn(story.ctx, session_id=session)

    with patch("kandev.runtime.registry.Actor", Counted):
        asked = [story.ask(ask_again_and_again()) for _ in range(8)]
        await story.until(lambda: all(task.done() for task in asked))
    assert Counted.most == 1
    await story.calm()

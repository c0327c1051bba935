"""Answers and frames that come late, twice or never: nothing is guessed from their absence."""

from __future__ import annotations

import pytest

from kandev.core.session import Launch
from tests.simulation.faults import Armed
from tests.simulation.story import Story, in_every_order


def said(story: Story, session: str) -> list[str]:
    """What agents said, in the transcript's order."""
    rows = story.rig.rows.execute(
        "SELECT content FROM messages WHERE session_id = ? AND author_type = 'agent' ORDER BY seq", (session,)
    )
    return [content for (content,) in rows]


async def behind(story: Story) -> str:
    """An idle session, whose agent's next frames are a minute on their way."""
    session = await story.launched()
    story.faults.quiet = True
    story.faults.armed.append(Armed("agentctl", "frame", "after", 60.0))
    await story.world.executions[story.value(session).execution].agent.say("late")
    await story.until(lambda: not story.faults.armed)
    return session


@pytest.mark.proves("HOLE-7", "INV-2")
@in_every_order
async def test_a_prompt_whose_answer_is_lost_is_asked_about_and_not_prompted_again(story: Story) -> None:
    session = await behind(story)
    story.faults.armed += [
        Armed("agentctl", "prompt", "after"),
        Armed("agentctl", "dispatched", "before"),
        Armed("agentctl", "prompt", "after"),
    ]
    assert (await story.message(session, "sleep 5")).status == "sent"
    assert not story.faults.armed, "every answer was lost"
    assert story.value(session).generation == 2, "one attempt, one dispatch"
    await story.calm()
    assert story.handed() == ["m1", "m2"]
    assert story.fates(session) == {"m1": "delivered", "m2": "delivered"}


@pytest.mark.proves("HOLE-13", "INV-3")
@in_every_order
async def test_what_was_stored_just_before_a_crash_is_not_stored_again(story: Story) -> None:
    session = await story.launched("sleep 20")
    story.faults.quiet = True
    execution = story.world.executions[story.value(session).execution]
    seen = story.value(session).seen
    await execution.agent.say("once")
    await story.until(lambda: story.value(session).seen > seen)
    assert execution.acknowledged < story.value(session).seen, "it would come again"
    await story.rig.kill()
    await story.rig.start()
    await story.calm()
    assert said(story, session) == ["m1", "once"]


@pytest.mark.proves("HOLE-15")
@in_every_order
async def test_a_turn_whose_end_was_still_on_its_way_is_not_booked_as_lost(story: Story) -> None:
    session = await behind(story)
    story.faults.gate("prompt", "after")
    story.faults.gate("dispatched", "before")
    story.message(session)
    await story.until(lambda: story.value(session).launch is Launch.CLOSING)
    await story.calm()
    assert said(story, session) == ["m1", "m2"]
    assert story.fates(session) == {"m1": "delivered", "m2": "delivered"}
    assert "The agent took no prompt in time: its process is replaced." in story.lines(session)
    assert not [line for line in story.lines(session) if "lost" in line or "Nobody can tell" in line]

"""A journal that is far behind: nothing is claimed of a process because it takes long to be read."""

from __future__ import annotations

import pytest

from kandev.core.session import Launch
from kandev.usecases import cancel_turn, explain_session, stop_session
from tests.simulation.faults import Armed
from tests.simulation.story import Story, in_every_order

FRAMES = 8
LATE_S = 8.0
"""Of each frame. Together longer than an agent has to obey a cancel, and longer than a teardown may take."""


async def behind(story: Story) -> str:
    """A session whose agent says something, and whose journal is read slowly from now on."""
    story.faults.quiet = True
    session = await story.launched("sleep 300")
    story.faults.armed += [Armed("agentctl", "frame", "after", LATE_S)] * FRAMES
    execution = story.world.executions[story.value(session).execution]
    for number in range(FRAMES):
        await execution.agent.say(f"word {number}")
    return session


@pytest.mark.proves("TURN-acknowledged-behind-output", "INV-8")
@in_every_order
async def test_a_cancel_behind_much_output_is_told_as_under_way_and_the_agent_is_kept(story: Story) -> None:
    session = await behind(story)
    answer = await story.ask(cancel_turn.cancel_turn(story.ctx, session_id=session))
    assert (answer.success, answer.error) == (False, "cancel timed out, still under way")
    told = await story.ask(explain_session.explain_session(story.ctx, session_id=session))
    assert told["sentence"].startswith(
        "The agent has ended the turn; what it said before that is being stored."
    )
    await story.until(lambda: story.value(session).turn is None)
    assert story.lines(session) == ["Turn cancelled by user."]
    assert story.value(session).executions == 1 and story.world.living(session)
    await story.message(session)
    await story.until(lambda: "m2" in story.handed())
    assert story.value(session).executions == 1
    await story.calm()


@pytest.mark.proves("STOP-last-words", "INV-8")
@in_every_order
async def test_a_stopped_process_with_much_left_to_read_is_not_called_lost(story: Story) -> None:
    session = await behind(story)
    await story.ask(stop_session.stop_session(story.ctx, session_id=session))
    await story.until(lambda: story.value(session).looked)
    told = await story.ask(explain_session.explain_session(story.ctx, session_id=session))
    assert told["sentence"].startswith("The agent's process is over; what it said last is being stored.")
    await story.until(lambda: story.value(session).launch is not Launch.CLOSING)
    assert story.value(session).launch is Launch.ABSENT
    assert not [line for line in story.lines(session) if "proven gone" in line]
    await story.calm()

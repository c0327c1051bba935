"""The sweep makes good what should never happen: a session with something to do, and nobody who does it."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from kandev.core.errors import StoreFault
from kandev.runtime.registry import Sessions
from tests.simulation.story import Story, in_every_order


async def without_actors(story: Story, *sessions: str) -> None:
    """As if each actor had been lost in the middle of a turn."""
    registry = story.ctx.sessions
    for session in sessions:
        registry._tasks[session].cancel()
    await story.until(lambda: not any(registry.glance(session) for session in sessions))


@pytest.mark.proves("SWEEP")
@in_every_order
async def test_a_session_that_nobody_drains_is_found_counted_and_drained(story: Story) -> None:
    story.faults.quiet = True
    session = await story.launched("sleep 30")
    await story.message(session)
    await without_actors(story, session)
    await story.until(lambda: story.handed() == ["m1", "m2"])
    assert story.ctx.sessions.swept == 1
    story.ctx.sessions.swept = 0  # seen: any other would be a fault
    await story.calm()


@pytest.mark.proves("SWEEP")
@in_every_order
async def test_one_session_that_cannot_be_loaded_keeps_the_sweep_from_no_other(story: Story) -> None:
    story.faults.quiet = True
    broken, other = await story.launched("sleep 30"), await story.launched("sleep 30", task="t2")
    await story.message(other)
    await without_actors(story, broken, other)
    load = Sessions._load

    async def cannot(self: Sessions, session_id: str) -> Any:
        if session_id == broken:
            raise StoreFault("A row of the database cannot be read.")
        return await load(self, session_id)

    with patch.object(Sessions, "_load", cannot):
        await story.until(lambda: story.handed() == ["m1", "m2", "m3"])
    await story.until(lambda: story.ctx.sessions.glance(broken) or story.value(broken).turn is None)
    story.ctx.sessions.swept = 0  # seen: any other would be a fault
    await story.calm()

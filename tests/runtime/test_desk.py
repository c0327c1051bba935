"""Where an answer meets the call that waits for it, also when it is handed over twice."""

import asyncio

import pytest

from kandev.runtime.desk import Desk

pytestmark = pytest.mark.proves("ACT-clarification.respond")


async def test_an_answer_that_is_handed_over_anew_is_waited_for_by_both() -> None:
    """A session's actor that is built anew hands over what its forerunner had in hand."""
    desk = Desk(0.05)
    handed = await asyncio.gather(*(desk.hand("q", "yes", again=False) for _ in range(2)))
    assert handed == [False, False]


async def test_the_call_that_comes_is_seen_by_whoever_hands_over_last() -> None:
    desk = Desk(10)
    first = asyncio.create_task(desk.hand("q", "yes", again=False))
    await asyncio.sleep(0)
    second = asyncio.create_task(desk.hand("q", "yes", again=True))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait({first})
    with desk.place("q") as place:
        place.arrives(None)
        assert await asyncio.wait_for(second, 5) is True
        assert place.outcome.result() == ("answered", "yes")

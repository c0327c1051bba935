"""Waits in a process that is held up: what is not counted, what is left, and that they end all the same."""

import asyncio
import itertools
import time
from types import ModuleType

import pytest

from kandev.agentctl import awake as agentctls
from kandev.runtime import awake as backends

pytestmark = [
    pytest.mark.proves("SURVIVE-suspend"),
    pytest.mark.parametrize("awake", [backends, agentctls], ids=["backend", "agentctl"]),
]


def total(awake: ModuleType, seconds: float, *held_up: float) -> float:
    """How long a wait lasts whose first parts take so much longer than they should."""
    countdown, lasted = awake.Countdown(seconds), 0.0
    for late in itertools.chain(held_up, itertools.repeat(0.0)):
        if countdown.left <= 0:
            return lasted
        took = countdown.part + late
        countdown.passed(took)
        lasted += took
    raise AssertionError


@pytest.mark.parametrize("seconds", [0.05, 1, 5, 120, 1800])
def test_a_wait_lasts_as_long_as_it_says(awake: ModuleType, seconds: float) -> None:
    assert total(awake, seconds) == pytest.approx(seconds)
    assert total(awake, seconds, 0.1) == pytest.approx(seconds, abs=0.2), "a busy machine adds nothing"


def test_what_fractions_leave_over_is_not_waited_for(awake: ModuleType) -> None:
    countdown = awake.Countdown(8.1)
    for _ in range(3):
        countdown.passed(countdown.part)
    countdown.passed(countdown.part - 1e-9)
    assert countdown.left == 0


def test_time_that_was_not_lived_through_is_not_counted(awake: ModuleType) -> None:
    assert total(awake, 8, 3600) == pytest.approx(8 + 3600 + 2), "one part is waited again"
    assert total(awake, 8, 0, 0, 0, 3600) == pytest.approx(8 + 3600 + 2)


def test_a_moment_is_left_however_late_the_hold_up_came(awake: ModuleType) -> None:
    countdown = awake.Countdown(1.5)
    countdown.passed(1.49)
    assert countdown.left == pytest.approx(0.01)
    countdown.passed(3600)
    assert countdown.left == 1.0
    short = awake.Countdown(0.2)
    short.passed(3600)
    assert short.left == 0.2


def test_a_wait_that_is_held_up_again_and_again_ends(awake: ModuleType) -> None:
    countdown = awake.Countdown(5)
    for _ in range(1000):
        if countdown.left <= 0:
            return
        countdown.passed(countdown.part + 60)
    raise AssertionError("it never ended")


async def test_what_came_while_the_loop_stood_still_is_taken_before_the_limit_acts(awake: ModuleType) -> None:
    loop = asyncio.get_running_loop()
    came: asyncio.Future[str] = loop.create_future()
    # The answer needs a few turns of the loop once it is awake, as one does that lies in a socket.
    loop.call_later(0.25, lambda: loop.call_later(0.05, came.set_result, "in time"))
    async with awake.Within(0.3):
        await asyncio.sleep(0)
        time.sleep(1.5)
        assert await came == "in time"


async def test_a_limit_acts_and_says_so(awake: ModuleType) -> None:
    limit = awake.Within(0.02)
    with pytest.raises(TimeoutError):
        async with limit:
            await asyncio.Event().wait()
    assert limit.expired
    async with awake.Within(0.02):
        pass

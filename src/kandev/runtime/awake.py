"""How long a wait lasts in a process that may be held up: suspended, stopped, or stuck behind a disk.

A deadline says how long the other side may take. Time in which this process did not run says nothing about
the other side, whose answer may lie in a socket by now: such time is not counted, and a moment is left in
which what has arrived is taken before the deadline acts. The event loop's clock is monotonic: the time of day
plays no part. Not here: how long anything may take (`deadlines`); agentctl's own waits
(`kandev.agentctl.awake`, for the two programs share documents only).
"""

import asyncio
from types import TracebackType
from typing import Final

LATE_S: Final = 0.5
"""A loop that comes so much too late was held up; on a busy machine it comes sooner."""
GRACE_S: Final = 1.0
"""At least so much is left of a wait (or all of a shorter one) when a hold-up is over."""
PARTS: Final = 4
PART_S: Final = 1.0
"""A wait is looked at in so many parts, none shorter than this: a part that was held up is waited again."""
LEAST_S: Final = 1e-4
"""What sums of fractions leave over: no clock moves by so little."""
HOLD_UPS: Final = 20
"""More than these are counted as waiting: nothing waits without end."""


class Countdown:
    """What is left of a wait, in seconds. Told how long each part took."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self._part = max(PART_S, seconds / PARTS)
        self._grace = min(GRACE_S, seconds)
        self._hold_ups = HOLD_UPS

    @property
    def part(self) -> float:
        """How long to wait before `passed`."""
        return min(self.left, self._part)

    def passed(self, took: float) -> None:
        """A part is over, and took so long."""
        if took - self.part < LATE_S or not self._hold_ups:
            left = self.left - took
            self.left = left if left > LEAST_S else 0.0
            return
        self._hold_ups -= 1
        self.left = max(self.left, self._grace)


async def sleep(seconds: float) -> None:
    """As `asyncio.sleep`, without the time in which this process was held up."""
    loop = asyncio.get_running_loop()
    countdown = Countdown(seconds)
    while countdown.left > 0:
        begun = loop.time()
        await asyncio.sleep(countdown.part)
        countdown.passed(loop.time() - begun)


class Within:
    """`async with Within(5):` as `asyncio.timeout`, without the time in which this process was held up. None:
    no limit."""

    def __init__(self, seconds: float | None) -> None:
        self._limit = asyncio.timeout(None)
        self._countdown = None if seconds is None else Countdown(seconds)
        self._part: asyncio.TimerHandle | None = None

    @property
    def expired(self) -> bool:
        """Whether the time was over."""
        return self._limit.expired()

    def again(self, seconds: float) -> None:
        """From now on so many seconds more."""
        if self._part is not None:
            self._part.cancel()
        self._wait(Countdown(seconds))

    async def __aenter__(self) -> "Within":
        await self._limit.__aenter__()
        if self._countdown is not None:
            self._wait(self._countdown)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._part is not None:
            self._part.cancel()
        await self._limit.__aexit__(kind, raised, trace)

    def _wait(self, countdown: Countdown) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()

        def over() -> None:
            countdown.passed(loop.time() - begun)
            if countdown.left > 0:
                self._wait(countdown)
            else:
                self._limit.reschedule(loop.time())

        self._part = loop.call_later(countdown.part, over)

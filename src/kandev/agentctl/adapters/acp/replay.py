"""The history that an agent repeats when a conversation is loaded.

ACP says that it comes before the reply. Real agents (gemini 0.61) reply first and send it behind, so a load
is over only when the agent has been quiet for a moment. Not here: which updates are history (`updates`).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any


class Replay:
    """`quiet_s`: silence that ends a replay, `first_s`: how long its first piece may take behind the reply,
    in seconds. `opened` is told in wire order how a conversation began."""

    def __init__(self, quiet_s: float, first_s: float, opened: Callable[[Any, str | None], None]) -> None:
        self._quiet_s, self._first_s = quiet_s, first_s
        self._came = asyncio.Event()
        self._opened = opened
        self._active = False
        self._count = 0

    def begin_replay(self) -> None:
        """From now on history is swallowed and counted."""
        self._active = True
        self._count = 0
        self._came.clear()

    def opened(self, answer: Any, session_id: str | None) -> None:
        """The reply, in wire order. Without a conversation the history is nobody's."""
        self._opened(answer, session_id)

    def swallows(self) -> bool:
        """Asked about each piece of history."""
        if self._active:
            self._count += 1
            self._came.set()
        return self._active

    async def end_replay(self, *, expected: bool) -> int:
        """Wait for the silence, before it for a first piece that is expected; the pieces that came. The
        caller bounds it."""
        if expected:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._first_s):
                    await self._came.wait()
        seen = -1
        while seen != self._count:
            seen = self._count
            await asyncio.sleep(self._quiet_s)
        self._active = False
        return self._count

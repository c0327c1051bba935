"""Where answers to questions meet the tool calls that wait for them. In memory: after a crash of ours a call
comes again, and with it its place at the desk.

Not here: what an answer means (`core.questions`), how a call travels.
"""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

from kandev.core.effects import QuestionClosed
from kandev.runtime.awake import Within

Outcome = Literal["answered", "declined", "cancelled", "expired"]


@dataclass
class Place:
    """One tool call that waits. `outcome` is set once; `served` by whoever carries the answer to the agent:
    whether it arrived."""

    outcome: "asyncio.Future[tuple[Outcome, str]]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    served: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    on_its_way: bool = False
    """Somebody carries the answer, and will say whether it arrived."""

    def arrives(self, served: "asyncio.Future[bool] | None") -> None:
        """The answer is taken to the agent from here; `served` tells the end of that (None: it has it)."""
        self.on_its_way = True
        if served is None:
            self._arrived(arrived=True)
        else:
            served.add_done_callback(lambda f: self._arrived(arrived=not f.cancelled() and f.result()))

    def _arrived(self, *, arrived: bool) -> None:
        if not self.served.done():
            self.served.set_result(arrived)


class Desk:
    """`wait_s` (seconds): how long an answer waits for a call that comes again, and then for the word that
    it arrived."""

    def __init__(self, wait_s: float) -> None:
        self._wait_s = wait_s
        self._places: dict[str, Place] = {}
        self._awaited: dict[str, asyncio.Event] = {}
        self._waiting: Counter[str] = Counter()
        """How many hand the same answer over: an actor that is built anew does so beside its forerunner."""

    @contextmanager
    def place(self, question: str) -> Iterator[Place]:
        """For as long as the call waits. A call that comes again takes the place of the older one."""
        mine = self._places[question] = Place()
        if (came := self._awaited.get(question)) is not None:
            came.set()
        try:
            yield mine
        finally:
            if self._places.get(question) is mine:
                del self._places[question]
            if not mine.on_its_way and not mine.served.done():
                mine.served.set_result(False)

    async def hand(self, question: str, answer: str, *, again: bool) -> bool | None:
        """Whether the tool call took it. None: nobody can tell. `again`: it may have taken it before a crash
        of ours; a call that comes again did not."""
        if not await self._there(question):
            return None if again else False
        place = self._places[question]
        if place.outcome.done():
            return None
        place.outcome.set_result(("answered", answer))
        try:
            async with Within(self._wait_s):
                return await asyncio.shield(place.served)
        except TimeoutError:
            return None

    async def _there(self, question: str) -> bool:
        if question in self._places:
            return True
        came = self._awaited.setdefault(question, asyncio.Event())
        self._waiting[question] += 1
        try:
            async with Within(self._wait_s):
                await came.wait()
        except TimeoutError:
            return False
        finally:
            self._waiting[question] -= 1
            if not self._waiting[question]:
                del self._waiting[question], self._awaited[question]
        return question in self._places

    def closed(self, note: QuestionClosed) -> None:
        """A question ended without an answer."""
        place = self._places.get(note.question)
        if place is not None and note.outcome != "answered" and not place.outcome.done():
            place.outcome.set_result((note.outcome, ""))

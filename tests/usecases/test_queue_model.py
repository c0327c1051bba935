"""Whatever people do with what waits, the queue is what a plain list would be, and goes out in its order."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kandev.core.errors import Conflict, Invalid
from kandev.usecases import add_message, cancel_turn, message_status, messages, queue_entries, sessions
from kandev.usecases.context import Context
from tests.gateway.house import WAIT_S, House, open_house

Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "add", "add", "coalesce", "update", "remove", "reorder", "misorder", "clear"]
        ),
        st.integers(0, 1000),
    ),
    max_size=25,
)


@dataclass
class Model:
    """Who waits, in order, and where the others went."""

    waiting: list[str] = field(default_factory=list)
    text: dict[str, str] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    fates: dict[str, tuple[str, str]] = field(default_factory=dict)

    def drop(self, id: str, state: str, by: str) -> None:
        self.waiting.remove(id)
        self.fates[id] = (state, by)


@dataclass
class Play:
    """Does each step to the session and to the model."""

    ctx: Context
    session: str
    model: Model = field(default_factory=Model)
    said: int = 0

    async def step(self, what: str, number: int) -> None:
        await getattr(self, what)(number)
        queue = await queue_entries.get_queue(self.ctx, session_id=self.session)
        shown = [(e["id"], e["content"], e["position"]) for e in queue["entries"]]
        expected = [(id, self.model.text[id], place) for place, id in enumerate(self.model.waiting)]
        assert shown == expected, what

    def words(self) -> str:
        self.said += 1
        return f"say {self.said}"

    def chosen(self, number: int) -> str | None:
        """One that waits, or one that waited, or nothing."""
        known = [*self.model.waiting, *self.model.fates]
        return known[number % len(known)] if known else None

    async def add(self, _: int, key: str | None = None) -> str:
        words = self.words()
        added = await add_message.queue_message(
            self.ctx, session_id=self.session, content=words, coalescing_key=key
        )
        self.model.text[added.entry_id] = words
        self.model.waiting.append(added.entry_id)
        return added.entry_id

    async def coalesce(self, number: int) -> None:
        key = "ab"[number % 2]
        older = self.model.keys.get(key)
        new = self.model.keys[key] = await self.add(number, key)
        if older in self.model.waiting:
            place = self.model.waiting.index(older)
            self.model.drop(older, "replaced", new)
            self.model.waiting.remove(new)
            self.model.waiting.insert(place, new)

    async def update(self, number: int) -> None:
        if (id := self.chosen(number)) is None:
            return
        words = self.words()
        change = queue_entries.update_entry(self.ctx, session_id=self.session, entry_id=id, content=words)
        if id in self.model.waiting:
            await change
            self.model.text[id] = words
        else:
            with pytest.raises(Conflict):
                await change

    async def remove(self, number: int) -> None:
        if (id := self.chosen(number)) is None:
            return
        change = queue_entries.remove_entry(self.ctx, session_id=self.session, entry_id=id)
        if id in self.model.waiting:
            await change
            self.model.drop(id, "removed", "user")
        else:
            with pytest.raises(Conflict):
                await change

    async def reorder(self, number: int) -> None:
        Random(number).shuffle(self.model.waiting)
        ids = list(self.model.waiting)
        await queue_entries.reorder_queue(self.ctx, session_id=self.session, entry_ids=ids)

    async def misorder(self, number: int) -> None:
        ids = list(self.model.waiting)
        wrong = [*ids, ids[number % len(ids)]] if ids and number % 2 else [*ids[1:], "entry_x"]
        with pytest.raises(Invalid):
            await queue_entries.reorder_queue(self.ctx, session_id=self.session, entry_ids=wrong)

    async def clear(self, number: int) -> None:
        if number % 5:
            return  # seldom, or the queue is never long
        answer = await queue_entries.clear_queue(self.ctx, session_id=self.session)
        assert answer["removed"] == len(self.model.waiting)
        for id in list(self.model.waiting):
            self.model.drop(id, "removed", "user")

    async def end(self) -> None:
        """Let them go, and look at what was said and at where each one is."""
        await cancel_turn.cancel_turn(self.ctx, session_id=self.session)
        await queue_entries.set_auto_run(self.ctx, session_id=self.session, on=True)
        await self.until_idle()
        rows = await messages.list_messages(
            self.ctx, session_id=self.session, limit=1000, before=None, after=None
        )
        said = [row.content for row in rows if row.author_type == "user"]
        assert said == ["sleep 3000", *(self.model.text[id] for id in self.model.waiting)]
        for id in self.model.text:
            state, by = self.model.fates.get(id, ("delivered", None))
            fate = await message_status.message_status(self.ctx, entry_id=id)
            assert (fate["state"], fate.get("by")) == (state, by)

    async def until_idle(self) -> None:
        async with asyncio.timeout(WAIT_S):
            while True:
                session = await sessions.get_session(self.ctx, session_id=self.session)
                if session["state"] == "WAITING_FOR_INPUT" and not session["queue"]["count"]:
                    return
                await asyncio.sleep(0.005)


async def _busy(house: House) -> Play:
    _, session = await house.started("sleep 3000")
    await house.until(session, "RUNNING")
    return Play(house.ctx, session)


async def _played(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with open_house(Path(folder), queue_max=0) as house:
            play = await _busy(house)
            for what, number in steps:
                await play.step(what, number)
            await play.end()


@pytest.mark.proves("ACT-message.queue.reorder", "ACT-message.queue.update", "ACT-message.queue.remove")
@settings(max_examples=40, deadline=None)
@given(STEPS)
def test_the_queue_is_what_a_list_would_be(steps: list[Step]) -> None:
    asyncio.run(_played(steps))

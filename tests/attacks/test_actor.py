"""The actor beside a disk that refuses and a name that is taken."""

import asyncio

import detangle
import pytest

from kandev.core.effects import Enqueued, Note
from kandev.core.errors import StaleVersion
from kandev.core.records import SessionRecord
from kandev.core.steps import Step
from tests.runtime.actor.rig import Rig, finished, send, until

RUNS = 100


class Keyed(Rig):
    """A store in which the entries named `taken…` are there already."""

    async def commit(
        self, before: SessionRecord, decided: Step, inputs: object
    ) -> tuple[SessionRecord, tuple[Note, ...]]:
        if any(isinstance(note, Enqueued) and note.entry.id.startswith("taken") for note in decided[1]):
            await asyncio.sleep(0.001)
            raise StaleVersion("the key is there already")
        return await super().commit(before, decided, inputs)


@detangle.test(runs=RUNS, database=False)
async def test_an_ask_whose_key_is_taken_fails_alone() -> None:
    rig = Keyed()
    running = rig.begin()
    asks = [rig.actor.ask(send(name)) for name in ("taken-1", "M", "taken-2", "N", "taken-3")]
    heard = await asyncio.gather(*asks, return_exceptions=True)
    assert [isinstance(answer, StaleVersion) for answer in heard] == [True, False, True, False, True]
    await until(lambda: rig.told == ["M"])
    assert [*rig.told, *(e.id for e in rig.stored.value.queue)] == ["M", "N"]
    await finished(running)


@pytest.mark.field("C09")
@detangle.test(runs=20, database=False)
async def test_a_disk_that_takes_nothing_is_not_tried_as_fast_as_it_refuses() -> None:
    rig = Rig()
    rig.chunks = {"s.1": 200}
    running = rig.begin()
    await rig.actor.ask(send("M"))
    rig.faults = ["before"] * 10_000
    await asyncio.sleep(10)
    assert 10_000 - len(rig.faults) < 20, "commits in ten seconds of a full disk"
    rig.faults = []
    await until(lambda: rig.stored.value.seen == 200)
    await finished(running)

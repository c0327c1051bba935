"""Deadlines run by themselves: an effect that never settles holds up none of them, and nobody who asks."""

import asyncio

import detangle
import pytest

from kandev.core.effects import CancelTurn, Owed, Prompt, Start, Teardown, Timer
from kandev.core.inputs import Cancel, Stop
from kandev.core.session import Launch, Outcome
from tests.runtime.actor.rig import Rig, Tell, finished, send, until

RUNS = 50
SOON = {"start": 0.2, "accept": 0.2, "end": 0.2, "close": 0.2, "ask": 0.1, "cancel": 0.3}
"""Seconds of the simulated clock."""


class Hanging(Rig):
    """A world in which effects of one kind are never done."""

    def __init__(self, kind: type[Owed]) -> None:
        super().__init__()
        self.kind = kind

    def seconds(self, timer: Timer) -> float:
        return SOON.get(timer.kind, super().seconds(timer))

    async def _answer(self, effect: Owed, tell: Tell) -> None:
        if isinstance(effect, self.kind):
            await asyncio.Event().wait()
        await super()._answer(effect, tell)


async def stopped(rig: Hanging) -> None:
    """A stop is answered at once, whatever hangs."""
    begun = asyncio.get_running_loop().time()
    assert (await rig.actor.ask(Stop)).status == "stopped"
    assert asyncio.get_running_loop().time() - begun < 0.05
    assert rig.stored.value.outcome is not Outcome.OPEN


@pytest.mark.field("E21", "A19")
@detangle.test(runs=RUNS, database=False)
async def test_a_launch_that_never_comes_back_fails_at_its_deadline() -> None:
    rig = Hanging(Start)
    running = rig.begin()
    assert (await rig.actor.ask(send("M"))).status == "started"
    await until(lambda: rig.stored.value.outcome is Outcome.FAILED)
    await until(lambda: rig.stored.value.launch is Launch.ABSENT)
    await finished(running)


@pytest.mark.field("E21", "A19", "B11")
@detangle.test(runs=RUNS, database=False)
async def test_a_prompt_that_is_never_answered_is_given_up_and_a_stop_waits_for_nothing() -> None:
    rig = Hanging(Prompt)
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await until(lambda: rig.stored.value.turn is not None)
    assert (await rig.actor.ask(send("N", "peer"))).status == "queued"
    if detangle.flip():
        await stopped(rig)
    await until(lambda: rig.stored.value.turn is None)
    assert [e.id for e in rig.stored.value.queue] == ["M", "N"] and not rig.prompts
    await finished(running)


@pytest.mark.field("E21", "A19", "B01")
@detangle.test(runs=RUNS, database=False)
async def test_a_cancel_that_hangs_is_answered_at_its_deadline_and_a_stop_before_it() -> None:
    rig = Hanging(CancelTurn)
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await rig.taken.wait()
    asked = [rig.actor.ask(Cancel) for _ in range(30)]
    if detangle.flip():
        answers = await asyncio.gather(*asked)
        assert {answer.status for answer in answers} == {"timeout"}
        await until(lambda: rig.stored.value.launch is Launch.ABSENT)
    else:
        await stopped(rig)
        assert {answer.status for answer in await asyncio.gather(*asked)} == {"stopped"}
    await finished(running)


@pytest.mark.proves("HOLE-27")
@pytest.mark.field("E21", "D19")
@detangle.test(runs=RUNS, database=False)
async def test_an_end_that_is_never_proven_starts_nothing_beside_it() -> None:
    rig = Hanging(Teardown)
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await rig.taken.wait()
    await stopped(rig)
    await until(lambda: rig.stored.value.launch is Launch.LOST)
    assert len(rig.live) == 1 and rig.actor.under_way(), "it is tried on"
    await finished(running)

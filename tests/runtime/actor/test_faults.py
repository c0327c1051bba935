"""The actor when the store fails, the row is gone, or the rules have a bug."""

import asyncio
from typing import Any
from unittest.mock import patch

import detangle
import pytest

from kandev.core.decide import decide
from kandev.core.effects import Reply
from kandev.core.errors import StoreFault
from kandev.core.inputs import Cancel, Input, Stop
from kandev.core.session import Outcome, Session
from kandev.runtime.actor import Actor, Vanished
from tests.runtime.actor.rig import Rig, finished, record, send, until

pytestmark = pytest.mark.proves("INV-2", "INV-8")
RUNS = 100


@detangle.test(runs=RUNS, database=False)
async def test_an_ask_whose_commit_fails_hears_so_and_nothing_of_it_is_done() -> None:
    rig = Rig()
    rig.faults = ["before"]
    running = rig.begin()
    waiting = rig.actor.ask(send("M"))
    (fault,) = await asyncio.gather(waiting, return_exceptions=True)
    assert isinstance(fault, StoreFault) and rig.stored == record() and not rig.prompts
    await rig.actor.ask(send("N"))
    await until(lambda: rig.told == ["N"])
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_what_was_written_although_the_commit_failed_is_done_once() -> None:
    rig = Rig()
    rig.faults = [("none", "after", "before")[detangle.randint(0, 2)] for _ in range(6)]
    running = rig.begin()
    heard: list[Any] = []
    for name in "MNO":
        heard += await asyncio.gather(rig.actor.ask(send(name, "peer")), return_exceptions=True)
    rig.faults = []
    await asyncio.sleep(10)
    value = rig.stored.value
    kept = [*rig.told, *(e.id for e in value.queue)]
    assert len(kept) == len(set(kept))
    for name, answer in zip("MNO", heard, strict=True):
        assert isinstance(answer, StoreFault) or name in kept, "what was acknowledged is there"
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_an_ask_whose_commit_fails_hears_so_although_the_store_cannot_be_read() -> None:
    rig = Rig()
    rig.faults, rig.unreadable = ["before"], 20
    running = rig.begin()
    begun = asyncio.get_running_loop().time()
    (fault,) = await asyncio.gather(rig.actor.ask(send("M")), return_exceptions=True)
    assert isinstance(fault, StoreFault) and asyncio.get_running_loop().time() - begun < 0.01
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_whoever_was_answered_by_a_commit_that_nobody_knows_of_is_told_so() -> None:
    rig = Rig()
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await until(lambda: rig.stored.value.turn is not None and rig.stored.value.turn.taken)
    await rig.actor.ask(Cancel)
    waiting = rig.actor.ask(send("N"))
    await until(lambda: rig.stored.value.generation == 2)
    rig.faults = ["after"]  # the commit that says "sent"
    (fault,) = await asyncio.gather(waiting, return_exceptions=True)
    assert isinstance(fault, StoreFault) and rig.told == ["M", "N"]
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_effects_are_done_again_after_a_failed_commit() -> None:
    rig = Rig()
    running = rig.begin()
    await rig.actor.ask(send("M"))
    rig.faults = [("after", "before")[detangle.randint(0, 1)]]
    await until(lambda: not rig.faults and rig.stored.value.turn is not None and rig.stored.value.turn.taken)
    assert rig.told == ["M"]
    rig.faults = ["before"]
    failed = rig.actor.ask(Cancel)
    (fault,) = await asyncio.gather(failed, return_exceptions=True)
    assert isinstance(fault, StoreFault)
    assert (await rig.actor.ask(Cancel)).status == "cancelled"
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_frames_whose_commit_failed_are_read_again() -> None:
    rig = Rig()
    rig.chunks["s.1"], rig.pace = 100, 0.0002
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await until(lambda: rig.stored.value.seen > 0)
    rig.faults = ["before", "none", "after"]
    await until(lambda: rig.stored.value.seen == 100)
    assert rig.shown == [str(n) for n in range(1, 101)], "nothing is lost, nothing comes twice"
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_a_stop_works_once_the_store_does_again() -> None:
    rig = Rig()
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await rig.taken.wait()
    rig.faults, rig.unreadable = ["before"], 3
    waiting = [rig.actor.ask(Stop)]
    await asyncio.sleep(detangle.randint(0, 40) / 1000)
    waiting.append(rig.actor.ask(Stop))
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert {a.status for a in answers if isinstance(a, Reply)} <= {"stopped", "not_running"}
    assert all(isinstance(a, Reply | StoreFault) for a in answers)
    while rig.stored.value.outcome is Outcome.OPEN:  # whoever heard of the fault asks again
        (answer,) = await asyncio.gather(rig.actor.ask(Stop), return_exceptions=True)
        assert isinstance(answer, StoreFault) or (isinstance(answer, Reply) and answer.status == "stopped")
        await asyncio.sleep(0.05)
    await rig.over(running)
    assert not rig.live and rig.stored.state == "CANCELLED"


@detangle.test(runs=RUNS, database=False)
async def test_a_deleted_session_ends_its_actor_and_says_so() -> None:
    rig = Rig()
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await rig.taken.wait()
    rig.faults, rig.deleted = ["before"], True
    waiting = [rig.actor.ask(Cancel), rig.actor.ask(Cancel)]
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert all(isinstance(a, Vanished | StoreFault) for a in answers)
    await running
    assert isinstance((await asyncio.gather(rig.actor.ask(Cancel), return_exceptions=True))[0], Vanished)
    assert rig.performing == 0


@detangle.test(runs=RUNS, database=False)
async def test_a_bug_in_the_rules_ends_one_actor_and_answers_its_waiters() -> None:
    healthy, sick = Rig(), Rig()

    def buggy(before: Session, given: Input) -> Any:
        if isinstance(given, Cancel) and given.by == "bug":
            raise ZeroDivisionError("a planted bug")
        return decide(before, given)

    with patch("kandev.runtime.actor.decide", buggy):
        tasks = [rig.begin() for rig in (healthy, sick)]
        for rig in (healthy, sick):
            await rig.actor.ask(send("M"))
            await rig.taken.wait()
        waiting = [sick.actor.ask(send("W")), sick.actor.ask(lambda a: Cancel(a, "bug"))]
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(answers[1], StoreFault)
        (ended,) = await asyncio.gather(tasks[1], return_exceptions=True)
        assert isinstance(ended, ZeroDivisionError) and sick.performing == 0
        assert (await healthy.actor.ask(Cancel)).status == "cancelled"
        # The next ask builds it anew from the store, and a stop works on it.
        sick.actor = Actor(sick.stored, sick, sick)
        again = sick.begin()
        assert (await sick.actor.ask(Stop)).status == "stopped"
        await sick.over(again)
        await finished(tasks[0])

"""The actor under many schedules: stops, floods, and who is answered when it ends."""

import asyncio
from itertools import pairwise

import detangle
import pytest

from kandev.core.effects import Follow, Reply
from kandev.core.errors import StoreFault
from kandev.core.inputs import Cancel, Remove, Stop
from kandev.runtime.actor import FOLDED_BYTES
from kandev.runtime.waiting_frames import BYTES_WAITING, FRAMES_WAITING
from tests.runtime.actor.rig import Rig, finished, send, until

pytestmark = pytest.mark.proves("INV-5", "INV-2")
RUNS = 100


@pytest.mark.proves("HOLE-30")
@pytest.mark.field("A07", "B27")
@detangle.test(runs=RUNS, database=False)
async def test_no_prompt_leaves_after_a_stops_commit_and_no_message_is_lost() -> None:
    rig = Rig()
    running = rig.begin()
    replies: dict[str, Reply] = {}

    async def ask(name: str, latest: int, make: object) -> None:
        await asyncio.sleep(detangle.randint(0, latest) / 1000)
        replies[name] = await rig.actor.ask(make)  # type: ignore[arg-type]

    first = asyncio.create_task(ask("M", 0, send("M")))
    others = [ask("P", 12, send("P", "peer")), ask("Q", 12, send("Q")), ask("stop", 20, Stop)]
    await asyncio.gather(first, *others)
    await asyncio.sleep(1)
    value = rig.stored.value
    kept = {m for m in "MPQ" if replies[m].status != "rejected"}
    waiting = {e.id for e in value.queue}
    assert kept == set(rig.told) | waiting and not set(rig.told) & waiting
    assert len(rig.told) == len(set(rig.told))
    assert replies["stop"].status == "not_running" or not rig.live
    await finished(running)


@pytest.mark.field("B01")
@detangle.test(runs=RUNS // 4, database=False)
async def test_a_flood_of_output_is_bounded_and_a_stop_overtakes_it() -> None:
    rig = Rig()
    rig.chunks["s.1"] = 3000
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await rig.taken.wait()
    await until(lambda: rig.stored.value.seen > 0)
    begun = asyncio.get_running_loop().time()
    reply = await rig.actor.ask(Stop)
    assert reply.status == "stopped"
    assert asyncio.get_running_loop().time() - begun < 0.01, "a few commits, not the flood"
    assert 0 < rig.high <= FRAMES_WAITING
    await until(lambda: not rig.live)
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_every_frame_of_a_flood_arrives_once_and_in_order() -> None:
    rig = Rig()
    rig.chunks["s.1"] = 200
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await until(lambda: rig.stored.value.seen == 200)
    assert rig.shown == [str(n) for n in range(1, 201)]
    assert rig.commits < 200, "output is committed in batches"
    await finished(running)


@detangle.test(runs=RUNS // 4, database=False)
async def test_large_frames_wait_and_are_committed_a_few_at_a_time() -> None:
    rig = Rig()
    rig.chunks["s.1"] = 100
    rig.weight = FOLDED_BYTES // 3
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await until(lambda: rig.stored.value.seen == 100)
    assert rig.shown == [str(n) for n in range(1, 101)]
    assert rig.largest <= 4
    assert rig.high <= BYTES_WAITING // rig.weight + 1
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_a_frame_beyond_every_bound_is_taken_alone() -> None:
    rig = Rig()
    rig.chunks["s.1"] = 5
    rig.weight = 64 << 20
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await until(lambda: rig.stored.value.seen == 5)
    assert (rig.largest, rig.high) == (1, 1)
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_whoever_waits_when_the_actor_is_cancelled_is_answered_and_its_effects_have_ended() -> None:
    rig = Rig()
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await asyncio.sleep(detangle.randint(0, 10) / 1000)
    waiting = rig.actor.ask(Cancel) if detangle.flip() else rig.actor.ask(send("Q"))
    await asyncio.sleep(detangle.randint(0, 3) / 1000)
    ended = await finished(running)
    assert isinstance(ended, asyncio.CancelledError)
    assert waiting.done()
    if (fault := waiting.exception()) is not None:
        assert isinstance(fault, StoreFault)
    assert rig.performing == 0


@detangle.test(runs=RUNS, database=False)
async def test_whoever_asks_an_actor_that_has_ended_is_told_at_once() -> None:
    rig = Rig()
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await rig.taken.wait()
    running.cancel()
    late = []
    while not running.done():
        await asyncio.sleep(0.0005)
        late.append(rig.actor.ask(Cancel))
    late.append(rig.actor.ask(Cancel))
    answers = await asyncio.gather(*late, return_exceptions=True)
    assert isinstance(answers[-1], StoreFault)
    assert all(isinstance(a, StoreFault | Reply) for a in answers)
    await asyncio.gather(running, return_exceptions=True)


@detangle.test(runs=RUNS, database=False)
async def test_an_ask_in_the_moment_of_its_eviction_is_not_lost() -> None:
    """The registry drops the actor and asks anew; here it agrees to the end only when nothing came."""
    rig = Rig()
    retired: list[bool] = []

    def retire() -> bool:
        retired.append(True)
        return True

    running = asyncio.create_task(rig.actor.run(retire))
    await asyncio.sleep(0 if detangle.flip() else 0.001)
    waiting = rig.actor.ask(lambda ask: Remove(ask, "none"))
    (answer,) = await asyncio.gather(waiting, return_exceptions=True)
    if retired and isinstance(answer, BaseException):
        assert isinstance(answer, StoreFault), "it hears that it must ask again"
    else:
        assert isinstance(answer, Reply) and answer.status == "not_found"
    await running
    assert rig.commits == 0, "a refusal writes nothing"


@detangle.test(runs=RUNS, database=False)
async def test_an_actor_retires_only_when_nothing_is_under_way() -> None:
    rig = Rig()
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await rig.taken.wait()
    rig.held = False
    rig.actor.nudge()
    await asyncio.sleep(0.1)
    assert not running.done()
    kinds = {type(work.what) for work in rig.actor.under_way()}
    assert Follow in kinds
    await rig.actor.ask(Stop)
    await running
    assert rig.actor.idle and not rig.live and rig.performing == 0


@pytest.mark.proves("HOLE-30")
@detangle.test(runs=RUNS, database=False)
async def test_effects_that_are_not_owed_any_more_are_cancelled() -> None:
    rig = Rig()
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await until(lambda: any(isinstance(work.what, Follow) for work in rig.actor.under_way()))
    await rig.actor.ask(Stop)
    await rig.over(running)
    # What was under way has cleaned up before the actor is gone.
    assert rig.performing == 0 and any(isinstance(e, Follow) for e in rig.ended)


@pytest.mark.proves("HOLE-30")
@pytest.mark.field("B29")
@detangle.test(runs=RUNS, database=False)
async def test_asks_that_come_together_are_committed_one_by_one() -> None:
    rig = Rig()
    running = rig.begin()
    await asyncio.gather(*(rig.actor.ask(send(name)) for name in "MNO"))
    places = [0, *(value.places for value in rig.history)]
    assert all(after - before <= 1 for before, after in pairwise(places))
    await finished(running)


@detangle.test(runs=RUNS, database=False)
async def test_refused_asks_write_nothing() -> None:
    rig = Rig()
    running = rig.begin()
    await rig.actor.ask(send("M"))
    await until(lambda: rig.stored.value.turn is not None and rig.stored.value.turn.taken)
    before = rig.stored
    answers = [
        await rig.actor.ask(lambda a: Remove(a, "none")),
        await rig.actor.ask(lambda a: Remove(a, "M")),
    ]
    assert [a.status for a in answers] == ["not_found", "claimed"] and rig.stored == before
    await finished(running)

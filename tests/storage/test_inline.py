"""The store for simulations: faults and delays between any two awaits, and a kill."""

from __future__ import annotations

import asyncio

import pytest

from kandev.core.errors import StoreFault
from kandev.storage.opening import open_inline
from kandev.storage.sql.inline import Point
from tests.storage.rows import Listener, board


class Holding:
    """A hook that waits at one point until it is let go, or raises there."""

    def __init__(self, at: Point | None, fault: StoreFault | None = None) -> None:
        self.at = at
        self.fault = fault
        self.reached = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, point: Point) -> None:
        if point == self.at:
            self.reached.set()
            if self.fault is not None:
                raise self.fault
            await self.let_go.wait()


async def test_without_a_hook_an_await_yields_exactly_once() -> None:
    store = open_inline(Listener())
    order: list[str] = []

    async def other() -> None:
        for step in ("first", "second"):
            order.append(step)
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    await asyncio.sleep(0)
    await store.write(lambda tx: order.append("written"))
    await beside
    assert order == ["first", "second", "written"]
    await store.close()


@pytest.mark.parametrize(("at", "epoch"), [("write", 0), ("answer", 1)])
async def test_a_fault_before_the_write_and_one_after_the_commit_look_the_same(at: Point, epoch: int) -> None:
    hook = Holding(at, StoreFault("The disk failed."))
    store = open_inline(Listener(), hook=hook)
    with pytest.raises(StoreFault, match="disk failed"):
        await store.write(lambda tx: tx.next_epoch())
    assert await store.read(lambda tx: tx.epoch()) == epoch
    await store.close()


async def test_a_late_write_happens_after_its_caller_gave_up_and_in_order() -> None:
    hook = Holding("write")
    store = open_inline(Listener(), hook=hook, commit_s=0.01)
    with pytest.raises(StoreFault, match="may still happen"):
        await store.write(lambda tx: tx.set_note("a", "late"))
    assert await store.read(lambda tx: tx.note("a")) is None
    second = asyncio.create_task(store.write(lambda tx: tx.note("a"), deadline=20))
    hook.let_go.set()
    assert await second == "late"
    await store.close()


async def test_a_cancelled_caller_does_not_stop_a_write_that_was_begun() -> None:
    hook = Holding("write")
    store = open_inline(Listener(), hook=hook)
    caller = asyncio.create_task(store.write(lambda tx: tx.next_epoch()))
    await hook.reached.wait()
    caller.cancel()
    hook.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert await store.read(lambda tx: tx.epoch()) == 1
    await store.close()


async def test_a_kill_keeps_what_was_committed_and_drops_what_was_begun() -> None:
    store = open_inline(Listener())
    await store.write(board)
    held = Holding("write")
    store = await store.killed(Listener(), hook=held)
    begun = asyncio.create_task(store.write(lambda tx: tx.next_epoch()))
    await held.reached.wait()
    after = Listener()
    again = await store.killed(after)
    with pytest.raises(asyncio.CancelledError):
        await begun
    with pytest.raises(StoreFault, match="closed"):
        await store.read(lambda tx: tx.epoch())
    await again.write(lambda tx: tx.notifications.add("session", "c1", "x", {}))
    assert [each.seq for each in after.heard] == [1]
    assert await again.read(lambda tx: tx.epoch()) == 0
    await again.close()

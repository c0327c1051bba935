"""A write is whole or nothing, alone among those that share its commit, and finished once begun."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kandev.core.errors import Conflict, StoreFault
from kandev.core.transcript import Message
from kandev.ports.store import Store, Tx
from tests.storage.rows import message, workspace


async def test_a_write_that_raises_leaves_nothing_and_its_error_reaches_the_caller(empty: Store) -> None:
    def fails(tx: Tx) -> None:
        tx.workspaces.insert(workspace())
        raise Conflict("Not now.")

    with pytest.raises(Conflict, match="Not now"):
        await empty.write(fails)
    assert await empty.read(lambda tx: tx.workspaces.list()) == []


async def test_one_that_fails_among_many_at_once_is_undone_alone(empty: Store) -> None:
    def numbered(number: int) -> Callable[[Tx], int]:
        def write(tx: Tx) -> int:
            tx.workspaces.insert(workspace(f"w{number}"))
            if number % 3 == 0:
                raise Conflict(str(number))
            return number

        return write

    writes = [empty.write(numbered(number)) for number in range(60)]
    results = await asyncio.gather(*writes, return_exceptions=True)
    assert [number for number in results if isinstance(number, int)] == [n for n in range(60) if n % 3]
    assert sum(isinstance(result, Conflict) for result in results) == 20
    kept = await empty.read(lambda tx: {each.id for each in tx.workspaces.list()})
    assert kept == {f"w{number}" for number in range(60) if number % 3}


async def test_a_function_may_catch_what_the_store_refuses_and_go_on(store: Store) -> None:
    def write(tx: Tx) -> str:
        try:
            tx.workspaces.insert(workspace())
        except StoreFault:
            tx.set_note("seen", "yes")
        return "went on"

    assert await store.write(write) == "went on"
    assert await store.read(lambda tx: tx.note("seen")) == "yes"


@pytest.mark.parametrize("raised", [StopIteration, TimeoutError, ZeroDivisionError])
async def test_no_kind_of_error_in_one_write_holds_up_the_others(
    store: Store, raised: type[Exception]
) -> None:
    def fails(tx: Tx) -> None:
        raise raised

    outcomes = await asyncio.gather(
        store.write(fails), store.write(lambda tx: tx.next_epoch()), return_exceptions=True
    )
    assert isinstance(outcomes[0], RuntimeError if raised is StopIteration else raised)
    assert outcomes[1] == 1


async def test_a_read_sees_what_was_written_before_it_and_writes_nothing(store: Store) -> None:
    await store.write(lambda tx: tx.set_note("a", "1"))
    with pytest.raises(StoreFault):
        await store.read(lambda tx: tx.set_note("a", "2"))
    assert await store.read(lambda tx: tx.note("a")) == "1"
    await store.write(lambda tx: tx.set_note("a", "3"))
    assert await store.read(lambda tx: tx.note("a")) == "3"


async def test_an_error_in_a_read_reaches_the_caller_and_the_next_read_works(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        await store.read(lambda tx: 1 // 0)
    assert await store.read(lambda tx: tx.epoch()) == 0


async def test_writes_of_one_caller_happen_in_their_order(store: Store) -> None:
    def adding(number: int) -> Callable[[Tx], Message]:
        return lambda tx: tx.messages.add(message(f"m{number}"))

    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(store.write(adding(number)))
    found = await store.read(lambda tx: tx.messages.page("c1", limit=99))
    assert [each.id for each in found] == [f"m{number}" for number in range(50)]


async def test_closing_finishes_what_was_begun_and_refuses_the_rest(store: Store) -> None:
    async with asyncio.TaskGroup() as group:
        begun = [group.create_task(store.write(lambda tx: tx.next_epoch())) for _ in range(100)]
        await asyncio.sleep(0)
        await store.close()
    assert [write.result() for write in begun] == list(range(1, 101))
    with pytest.raises(StoreFault, match="closed"):
        await store.write(lambda tx: tx.next_epoch())
    with pytest.raises(StoreFault, match="closed"):
        await store.read(lambda tx: tx.epoch())
    await store.close()

"""What only a store with threads and a file can get into: deadlines, cancelled callers, other programs,
full disks.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kandev.core.errors import StoreFault
from kandev.ports.store import Store, Tx
from kandev.storage.opening import open_store
from kandev.storage.sql.tx import SqlTx
from tests.storage.rows import Listener, board, message, workspace


def raw(tx: Tx, sql: str, *values: str) -> None:
    """SQL that no method has."""
    assert isinstance(tx, SqlTx)
    tx.connection.exec_driver_sql(sql, values)


def says(action: str) -> Callable[[Tx], None]:
    return lambda tx: tx.notifications.add("session", "c1", action, {})


class Gate:
    """A function of the store that stands still until it is let go."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self._open = threading.Event()
        self._loop = asyncio.get_running_loop()

    def __call__(self, tx: Tx) -> str:
        self._loop.call_soon_threadsafe(self.entered.set)
        assert self._open.wait(20)
        return "through"

    def let_go(self) -> None:
        self._open.set()


async def test_a_write_that_takes_too_long_is_a_fault_and_happens_all_the_same(on_file: Store) -> None:
    gate = Gate()

    def write(tx: Tx) -> None:
        gate(tx)
        tx.set_note("late", "written")

    with pytest.raises(StoreFault, match="may still happen"):
        await on_file.write(write, deadline=0.01)
    gate.let_go()
    await on_file.write(lambda tx: None)
    assert await on_file.read(lambda tx: tx.note("late")) == "written"


async def test_a_read_has_a_deadline_too(on_file: Store) -> None:
    gate = Gate()
    with pytest.raises(StoreFault, match="gave no answer in time"):
        await on_file.read(gate, deadline=0.01)
    gate.let_go()


async def test_a_write_outlives_its_cancelled_caller(on_file: Store, listener: Listener) -> None:
    gate = Gate()

    def write(tx: Tx) -> None:
        gate(tx)
        board(tx)
        tx.notifications.add("workspace", "w1", "task.created", {})

    caller = asyncio.create_task(on_file.write(write))
    await gate.entered.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert listener.heard == []
    gate.let_go()
    assert await on_file.write(lambda tx: tx.tasks.get("t1") is not None)
    assert [each.action for each in listener.heard] == ["task.created"]


async def test_a_failure_nobody_waits_for_any_more_harms_nobody(on_file: Store) -> None:
    gate = Gate()

    def write(tx: Tx) -> None:
        gate(tx)
        raise ZeroDivisionError

    caller = asyncio.create_task(on_file.write(write))
    await gate.entered.wait()
    caller.cancel()
    gate.let_go()
    assert await on_file.write(lambda tx: tx.next_epoch()) == 1


async def test_reads_do_not_wait_for_a_write_and_see_the_state_before_it(on_file: Store) -> None:
    gate = Gate()

    def write(tx: Tx) -> str:
        tx.next_epoch()
        return gate(tx)

    writing = asyncio.create_task(on_file.write(write))
    await gate.entered.wait()
    assert await on_file.read(lambda tx: tx.epoch()) == 0
    gate.let_go()
    await writing
    assert await on_file.read(lambda tx: tx.epoch()) == 1


async def test_writes_that_wait_share_one_commit(on_file: Store, listener: Listener) -> None:
    await on_file.write(board)
    gate = Gate()
    async with asyncio.TaskGroup() as group:
        group.create_task(on_file.write(gate))
        await gate.entered.wait()
        for number in range(20):
            group.create_task(on_file.write(says(str(number))))
        await asyncio.sleep(0)
        gate.let_go()
    assert [len(call) for call in listener.calls] == [20]


async def test_a_publisher_that_fails_takes_no_answer_from_anybody(tmp_path: Path) -> None:
    class Broken(Listener):
        def publish(self, notifications: object) -> None:
            raise ValueError("broken")

    store = await open_store(str(tmp_path / "a.db"), publisher=Broken(), commit_s=20)
    told: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: told.append(context["exception"]))
    await store.write(board)
    await store.write(lambda tx: tx.notifications.add("session", "c1", "x", {}))
    assert [str(error) for error in told] == ["broken"]
    await store.close()


async def test_a_database_that_another_program_locks_is_a_fault_until_it_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = await open_store(str(path), publisher=Listener(), commit_s=0.05)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreFault, match="locked by another program"):
        await store.write(lambda tx: tx.next_epoch(), deadline=20)
    other.execute("ROLLBACK")
    other.close()
    assert await store.write(lambda tx: tx.next_epoch(), deadline=20) == 1
    await store.close()


async def test_a_full_disk_fails_what_shares_the_commit_and_is_left_behind_when_there_is_room(
    tmp_path: Path,
) -> None:
    store = await open_store(str(tmp_path / "a.db"), publisher=Listener(), commit_s=20)
    await store.write(board)

    def limit(tx: Tx, pages: int) -> None:
        raw(tx, f"PRAGMA max_page_count = {pages}")

    await store.write(lambda tx: limit(tx, 1))
    small = store.write(lambda tx: tx.workspaces.insert(workspace("w2")))
    large = store.write(lambda tx: tx.messages.add(message(content="x" * 5_000_000)))
    outcomes = await asyncio.gather(small, large, return_exceptions=True)
    assert isinstance(outcomes[1], StoreFault)
    assert "disk of the database is full" in outcomes[1].message
    kept = await store.read(lambda tx: tx.workspaces.get("w2"))
    assert (kept is None) == isinstance(outcomes[0], StoreFault)
    await store.write(lambda tx: limit(tx, 1_000_000))
    await store.write(lambda tx: tx.messages.add(message(content="x" * 5_000_000)))
    await store.close()


async def test_a_damaged_row_is_a_fault_that_says_so(on_file: Store) -> None:
    await on_file.write(board)

    def damage(tx: Tx) -> None:
        raw(tx, "UPDATE sessions SET value = '{'")

    await on_file.write(damage)
    with pytest.raises(StoreFault, match="cannot be read"):
        await on_file.read(lambda tx: tx.sessions.get("c1"))


async def test_a_value_of_an_older_program_takes_defaults_for_what_it_lacks(on_file: Store) -> None:
    await on_file.write(board)
    old = '{"id": "c1", "launch": "ready", "queue": [{"id": "e1"}], "forgotten": 1}'

    def write(tx: Tx) -> None:
        raw(tx, "UPDATE sessions SET value = ?", old)

    await on_file.write(write)
    found = await on_file.read(lambda tx: tx.sessions.get("c1"))
    assert found is not None
    assert (found.value.launch, found.value.queue[0].by, found.value.seen) == ("ready", "person", 0)


async def test_closing_says_when_the_database_stands_still(tmp_path: Path) -> None:
    store = await open_store(str(tmp_path / "a.db"), publisher=Listener(), commit_s=0.05)
    gate = Gate()
    with pytest.raises(StoreFault):
        await store.write(gate)
    with pytest.raises(StoreFault, match="last writes"):
        await store.close()
    gate.let_go()
    await store.close()


async def test_what_was_committed_is_there_after_a_new_start(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    for epoch in (1, 2):
        store = await open_store(path, publisher=Listener(), commit_s=20)
        assert await store.write(lambda tx: tx.next_epoch()) == epoch
        await store.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.db"]

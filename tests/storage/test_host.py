"""A store whose machine is in trouble says why nothing is written, and forgets it when something is."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import pytest

from kandev.core.errors import StoreFault, Unavailable
from kandev.ports.store import Store, Tx
from kandev.storage.opening import open_store
from kandev.storage.sql.engine import allow_writing
from kandev.storage.sql.group import TakenOver
from kandev.storage.sql.store import SqlStore
from kandev.storage.sql.tx import SqlTx
from tests.host.test_descriptors import without_descriptors
from tests.storage.rows import Listener, workspace


def raw(tx: Tx, sql: str) -> None:
    """SQL that no method has."""
    assert isinstance(tx, SqlTx)
    tx.connection.exec_driver_sql(sql)


def hindrance(store: Store) -> str:
    """Empty without any."""
    return store.hindrance or ""


def large(tx: Tx) -> None:
    tx.set_note("large", "x" * 1_000_000)


@pytest.mark.proves("SURVIVE-full-disk")
async def test_a_full_disk_hinders_until_a_write_succeeds(on_file: Store) -> None:
    assert hindrance(on_file) == ""
    await on_file.write(lambda tx: raw(tx, "PRAGMA max_page_count = 1"))
    with pytest.raises(Unavailable, match="full: make room"):
        await on_file.write(large)
    assert "full" in hindrance(on_file)
    assert await on_file.read(lambda tx: tx.note("large")) is None
    assert hindrance(on_file), "reading proves nothing"
    await on_file.write(lambda tx: raw(tx, "PRAGMA max_page_count = 1000000"))
    assert hindrance(on_file), "and so does a commit of nothing"
    await on_file.write(large)
    assert hindrance(on_file) == ""


@pytest.mark.proves("SURVIVE-read-only")
async def test_a_database_that_cannot_be_written_says_so_and_is_read(on_file: Store) -> None:
    await on_file.write(lambda tx: tx.set_note("kept", "yes"))
    assert isinstance(on_file, SqlStore)
    writing = on_file._connections[0]
    allow_writing(writing, False)
    with pytest.raises(Unavailable, match="cannot be written"):
        await on_file.write(lambda tx: tx.set_note("kept", "no"))
    assert await on_file.read(lambda tx: tx.note("kept")) == "yes"
    assert "cannot be written" in hindrance(on_file)
    allow_writing(writing, True)
    await on_file.write(lambda tx: tx.set_note("kept", "again"))
    assert hindrance(on_file) == ""


@pytest.mark.proves("SURVIVE-slow-disk")
async def test_a_slow_disk_hinders_until_it_has_caught_up(on_file: Store) -> None:
    gate = threading.Event()
    with pytest.raises(Unavailable, match="slow"):
        await on_file.write(lambda tx: gate.wait(20), deadline=0.01)
    assert "slow" in hindrance(on_file)
    gate.set()
    await on_file.write(lambda tx: tx.set_note("caught", "up"))
    assert hindrance(on_file) == ""
    again = threading.Event()
    with pytest.raises(Unavailable, match="slow"):
        await on_file.read(lambda tx: again.wait(20), deadline=0.01)
    again.set()
    assert "slow" in hindrance(on_file)
    await on_file.write(lambda tx: tx.set_note("caught", "up"))
    assert hindrance(on_file) == ""


async def test_what_one_write_did_wrong_hinders_nobody(on_file: Store) -> None:
    await on_file.write(lambda tx: tx.workspaces.insert(workspace()))
    with pytest.raises(StoreFault):
        await on_file.write(lambda tx: tx.workspaces.insert(workspace()))
    assert hindrance(on_file) == ""


@pytest.mark.proves("SURVIVE-descriptors", "SURVIVE-full-disk")
async def test_a_transaction_needs_no_file_beside_the_database(on_file: Store) -> None:
    def many(tx: Tx, text: str) -> None:
        for number in range(100):
            tx.set_note(f"note {number}", text * 2000)

    await on_file.write(lambda tx: many(tx, "x"))
    with without_descriptors(os.getpid()):
        # So many pages are changed that the way back from them would go into a file in /var/tmp.
        await on_file.write(lambda tx: many(tx, "y"))
    assert await on_file.read(lambda tx: tx.note("note 99")) == "y" * 2000


@pytest.mark.proves("SURVIVE-suspend")
async def test_an_owner_that_was_replaced_writes_nothing_and_is_told(tmp_path: Path) -> None:
    path = str(tmp_path / "kandev.db")
    old = await open_store(path, publisher=Listener(), commit_s=5)
    old.own(await old.write(lambda tx: tx.next_epoch()))
    await old.write(lambda tx: tx.set_note("whose", "the old one's"))
    new = await open_store(path, publisher=Listener(), commit_s=5)
    new.own(await new.write(lambda tx: tx.next_epoch()))
    await new.write(lambda tx: tx.set_note("whose", "the new one's"))
    with pytest.raises(TakenOver, match="writes nothing any more"):
        await old.write(lambda tx: tx.set_note("whose", "the old one's again"))
    async with asyncio.timeout(5):
        await old.taken_over.wait()
    assert await new.read(lambda tx: tx.note("whose")) == "the new one's"
    await new.write(lambda tx: None)
    assert not new.taken_over.is_set()
    await old.close()
    await new.close()

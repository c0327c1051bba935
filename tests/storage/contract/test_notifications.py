"""Streams of notifications: durable counters, replay, and publishing after the commit, in its order."""

from __future__ import annotations

import asyncio

import pytest

from kandev.core.errors import StaleVersion
from kandev.gateway.hub import MOST_BYTES
from kandev.ports.store import Store, Tx
from kandev.storage.sql import notifications as sql
from tests.storage.rows import Listener


def _say(tx: Tx, *words: str) -> None:
    for word in words:
        tx.notifications.add("session", "c1", word, {"word": word})


async def _since(store: Store, seq: int) -> list[int] | None:
    found = await store.read(lambda tx: tx.notifications.since("session", "c1", seq))
    return None if found is None else [each.seq for each in found]


async def test_a_stream_is_replayed_from_any_place_that_is_kept(store: Store, listener: Listener) -> None:
    assert await _since(store, 0) == []
    await store.write(lambda tx: _say(tx, "a", "b", "c"))
    assert await store.read(lambda tx: tx.notifications.since("session", "c1", 0)) == listener.heard
    assert await _since(store, 2) == [3]
    assert await _since(store, 3) == []
    assert await store.read(lambda tx: tx.notifications.last("session", "c1")) == 3


async def test_a_place_ahead_of_the_stream_cannot_be_replayed(store: Store) -> None:
    await store.write(lambda tx: _say(tx, "a"))
    assert await _since(store, 2) is None
    assert await _since(store, -1) is None


async def test_pruning_keeps_the_newest_and_a_gap_is_told(store: Store) -> None:
    await store.write(lambda tx: _say(tx, *"abcde"))
    await store.write(lambda tx: tx.notifications.prune(2))
    assert await _since(store, 2) is None
    assert await _since(store, 3) == [4, 5]
    await store.write(lambda tx: tx.notifications.prune(0))
    assert await _since(store, 3) is None
    assert await _since(store, 5) == []
    await store.write(lambda tx: _say(tx, "f"))
    assert await _since(store, 5) == [6]


async def test_what_is_too_large_for_a_replay_is_a_gap(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "REPLAYED_CHARACTERS", 1000)
    await store.write(lambda tx: _say(tx, *("x" * 300 for _ in range(5))))
    assert await _since(store, 1) is None
    assert await _since(store, 2) == [3, 4, 5]


def test_a_replay_is_at_most_what_may_wait_for_a_client() -> None:
    assert sql.REPLAYED_CHARACTERS == MOST_BYTES


async def test_streams_count_apart_even_with_equal_ids(store: Store, listener: Listener) -> None:
    def write(tx: Tx) -> None:
        _say(tx, "a")
        tx.notifications.add("workspace", "w1", "x", {})
        _say(tx, "b")

    await store.write(write)
    assert [(each.stream, each.seq) for each in listener.heard] == [
        ("session", 1),
        ("workspace", 1),
        ("session", 2),
    ]


async def test_nothing_is_published_of_a_write_that_failed(store: Store, listener: Listener) -> None:
    def fails(tx: Tx) -> None:
        _say(tx, "a")
        raise ValueError

    with pytest.raises(ValueError):
        await store.write(fails)
    await store.write(lambda tx: _say(tx, "b"))
    assert [(each.action, each.seq) for each in listener.heard] == [("b", 1)]


async def test_what_is_said_before_a_deletion_is_still_published(store: Store, listener: Listener) -> None:
    def write(tx: Tx) -> None:
        _say(tx, "session.deleted")
        tx.sessions.delete("c1")

    await store.write(write)
    assert [each.action for each in listener.heard] == ["session.deleted"]
    with pytest.raises(StaleVersion):
        await store.write(lambda tx: _say(tx, "late"))


async def test_the_writer_resumes_after_its_notifications_were_published(
    store: Store, listener: Listener
) -> None:
    await store.write(lambda tx: _say(tx, "a"))
    assert [each.action for each in listener.heard] == ["a"]


async def test_order_holds_under_200_writers_at_once(store: Store, listener: Listener) -> None:
    async def one(number: int) -> None:
        def write(tx: Tx) -> int:
            _say(tx, str(number))
            return tx.notifications.last("session", "c1")

        seq = await store.write(write)
        heard = [each.action for each in listener.heard]
        assert heard[seq - 1] == str(number)

    async with asyncio.TaskGroup() as group:
        for number in range(200):
            group.create_task(one(number))
    assert [each.seq for each in listener.heard] == list(range(1, 201))
    assert await store.read(lambda tx: tx.notifications.since("session", "c1", 0)) == listener.heard


async def test_streams_that_leap_go_on_behind_and_keep_nothing(store: Store) -> None:
    await store.write(lambda tx: _say(tx, *"abc"))
    await store.write(lambda tx: tx.notifications.leap(100))
    assert [await _since(store, seq) for seq in (0, 2, 3, 99, 100)] == [None, None, None, None, []]
    assert await store.read(lambda tx: tx.notifications.last("workspace", "w1")) == 100, "also unbegun ones"
    await store.write(lambda tx: _say(tx, "d"))
    assert await _since(store, 100) == [101]
    await store.write(lambda tx: tx.notifications.leap(50))
    assert await _since(store, 100) is None
    assert await _since(store, 101) == []

"""A transcript keeps its order, grows, and is read in pages."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kandev.core.errors import NotFound, StaleVersion
from kandev.core.transcript import Message
from kandev.ports.store import Store, Tx
from tests.storage.rows import message, session


def adding(id: str) -> Callable[[Tx], Message]:
    return lambda tx: tx.messages.add(message(id, seq=77))


async def test_seq_grows_by_one_in_each_session_whatever_was_given(store: Store) -> None:
    await store.write(lambda tx: tx.sessions.insert(session("c2", is_primary=False)))
    added = [await store.write(adding(id)) for id in "abc"]
    other = await store.write(lambda tx: tx.messages.add(message("d", session_id="c2")))
    assert [found.seq for found in added] == [1, 2, 3]
    assert other.seq == 1
    assert await store.read(lambda tx: tx.messages.get("b")) == added[1]


async def test_pages_are_oldest_first_in_both_directions(store: Store) -> None:
    def write(tx: Tx) -> None:
        for number in range(1, 8):
            tx.messages.add(message(f"m{number}"))

    await store.write(write)

    async def page(limit: int, before: str | None = None, after: str | None = None) -> list[int]:
        found = await store.read(lambda tx: tx.messages.page("c1", limit=limit, before=before, after=after))
        return [each.seq for each in found]

    assert await page(3) == [1, 2, 3]
    assert await page(3, after="m3") == [4, 5, 6]
    assert await page(3, after="m6") == [7]
    assert await page(3, before="m7") == [4, 5, 6]
    assert await page(3, before="m2") == [1]
    assert await page(3, before="m1") == []
    assert await page(99) == [1, 2, 3, 4, 5, 6, 7]


async def test_the_latest_messages_are_the_last_ones_oldest_first(store: Store) -> None:
    def write(tx: Tx) -> None:
        for number in range(1, 6):
            tx.messages.add(message(f"m{number}"))

    await store.write(write)
    latest = await store.read(lambda tx: tx.messages.latest("c1", 2))
    assert [each.seq for each in latest] == [4, 5]
    assert await store.read(lambda tx: tx.messages.latest("c1", 99)) == await store.read(
        lambda tx: tx.messages.page("c1", limit=99)
    )


async def test_a_page_beside_a_message_of_another_session_is_not_found(store: Store) -> None:
    await store.write(lambda tx: tx.sessions.insert(session("c2", is_primary=False)))
    await store.write(lambda tx: tx.messages.add(message("m1", session_id="c2")))
    with pytest.raises(NotFound, match="'m1'"):
        await store.read(lambda tx: tx.messages.page("c1", limit=5, after="m1"))


async def test_appended_text_begins_at_the_offset_in_characters(store: Store) -> None:
    def write(tx: Tx) -> list[int]:
        tx.messages.add(message(content="é🦊"))
        return [
            tx.messages.append("m1", "\x00ab"),
            tx.messages.append("m1", ""),
            tx.messages.append("m1", "z"),
        ]

    assert await store.write(write) == [2, 5, 5]
    found = await store.read(lambda tx: tx.messages.get("m1"))
    assert found is not None
    assert found.content == "é🦊\x00abz"


async def test_replacing_changes_content_metadata_and_turn_only(store: Store) -> None:
    await store.write(lambda tx: tx.messages.add(message(metadata={"key": "x"})))
    new = message(content="new", metadata={"key": "y", "n": [1, None]}, turn_id="u1", type="plan", seq=9)
    await store.write(lambda tx: tx.messages.replace(new))
    kept = message(content="new", metadata={"key": "y", "n": [1, None]}, turn_id="u1", seq=1)
    assert await store.read(lambda tx: tx.messages.find("c1", "message", "y")) == kept
    assert await store.read(lambda tx: tx.messages.find("c1", "message", "x")) is None
    assert await store.write(lambda tx: tx.messages.append("m1", "!")) == 3


async def test_the_newest_message_of_a_key_is_found(store: Store) -> None:
    def write(tx: Tx) -> None:
        for id, kind in (("a", "tool_call"), ("b", "tool_call"), ("c", "plan")):
            tx.messages.add(message(id, type=kind, metadata={"key": "k"}))

    await store.write(write)
    found = await store.read(lambda tx: tx.messages.find("c1", "tool_call", "k"))
    assert found is not None
    assert found.id == "b"
    assert await store.read(lambda tx: tx.messages.find("c2", "tool_call", "k")) is None


async def test_a_message_that_is_gone_cannot_grow_or_be_replaced(store: Store) -> None:
    with pytest.raises(StaleVersion):
        await store.write(lambda tx: tx.messages.append("gone", "x"))
    with pytest.raises(StaleVersion):
        await store.write(lambda tx: tx.messages.replace(message("gone")))

"""A text grows at the cost of what is added, and reads the same however it came."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from kandev.core.errors import StaleVersion
from kandev.core.transcript import Message
from kandev.ports.store import Store, Tx
from kandev.storage.sql import messages as sql
from kandev.storage.sql.texts import STRETCH
from kandev.storage.sql.tx import SqlTx
from tests.storage.rows import board, message, session, task

LETTERS = "aé漢🦊\x00\n"
LENGTHS = [0, 1, STRETCH - 1, STRETCH, STRETCH + 1, 5 * STRETCH + 3]


def text(length: int, begin: int = 0) -> str:
    """So many characters, no two neighbours alike."""
    return "".join(LETTERS[(begin + n) % len(LETTERS)] for n in range(length))


def parts(tx: Tx) -> int:
    """How many parts there are in all."""
    assert isinstance(tx, SqlTx)
    return int(tx.connection.exec_driver_sql("SELECT count(*) FROM message_parts").scalar() or 0)


async def every_way(store: Store, id: str, key: str) -> list[Message | None]:
    """The message by each way to read it."""

    def look(tx: Tx) -> list[Message | None]:
        pages = [tx.messages.page("c1", limit=500), tx.messages.latest("c1", 500)]
        found = [each for page in pages for each in page if each.id == id]
        return [tx.messages.get(id), tx.messages.find("c1", "message", key), *found]

    return await store.read(look)


@pytest.mark.parametrize("length", LENGTHS)
async def test_a_text_of_any_length_reads_the_same_in_every_way(store: Store, length: int) -> None:
    long = message("long", content=text(length), metadata={"key": "k"}, seq=1)
    await store.write(lambda tx: tx.messages.add(long))
    assert await every_way(store, "long", "k") == [long] * 4


@pytest.mark.parametrize("seed", range(8))
async def test_pieces_of_any_length_add_up_at_their_offsets(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    whole = text(chance.choice(LENGTHS))
    await store.write(lambda tx: tx.messages.add(message("m", content=whole, metadata={"key": "k"})))
    for _ in range(40):
        size = chance.choice([0, 1, 7, 300, STRETCH // 2, STRETCH, 3 * STRETCH])
        piece = text(size, begin=len(whole))
        at = await store.write(lambda tx, piece=piece: tx.messages.append("m", piece))  # type: ignore[misc]
        assert at == len(whole)
        whole += piece
    shown = message("m", content=whole, metadata={"key": "k"}, seq=1)
    assert await every_way(store, "m", "k") == [shown] * 4
    outline = await store.read(lambda tx: tx.messages.outline("m"))
    assert outline == (message("m", content="", metadata={"key": "k"}, seq=1), len(whole))


async def test_pieces_of_one_transaction_are_as_those_of_many(store: Store) -> None:
    def write(tx: Tx) -> Message | None:
        tx.messages.add(message("m", content=""))
        for n in range(30):
            assert tx.messages.append("m", text(STRETCH // 3, begin=n * (STRETCH // 3))) == n * (STRETCH // 3)
        return tx.messages.get("m")

    written = await store.write(write)
    assert written is not None
    assert written.content == text(30 * (STRETCH // 3))
    assert await store.read(lambda tx: tx.messages.get("m")) == written


async def test_a_piece_that_is_undone_leaves_the_text_as_it_was(store: Store) -> None:
    before = text(3 * STRETCH)
    await store.write(lambda tx: tx.messages.add(message("m", content=before)))

    def write(tx: Tx) -> None:
        tx.messages.append("m", "lost")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await store.write(write)
    assert await store.write(lambda tx: tx.messages.append("m", "kept")) == len(before)
    found = await store.read(lambda tx: tx.messages.get("m"))
    assert found is not None
    assert found.content == before + "kept"


@pytest.mark.parametrize("length", LENGTHS)
async def test_a_text_that_grew_is_replaced_whole_and_grows_again(store: Store, length: int) -> None:
    def write(tx: Tx) -> int:
        tx.messages.add(message("m"))
        tx.messages.append("m", text(4 * STRETCH))
        tx.messages.replace(message("m", content=text(length)))
        return tx.messages.append("m", "!")

    assert await store.write(write) == length
    found = await store.read(lambda tx: tx.messages.get("m"))
    assert found is not None
    assert found.content == text(length) + "!"


async def test_the_outline_of_what_is_not_there_is_nothing(store: Store) -> None:
    assert await store.read(lambda tx: tx.messages.outline("gone")) is None


async def test_a_page_of_long_and_short_texts_keeps_its_order(store: Store) -> None:
    contents = [text(length, begin=n) for n, length in enumerate(LENGTHS * 3)]

    def write(tx: Tx) -> None:
        for n, content in enumerate(contents):
            tx.messages.add(message(f"m{n}", content=content[:10]))
        for n, content in enumerate(contents):
            for begin in range(10, len(content), 700):
                tx.messages.append(f"m{n}", content[begin : begin + 700])

    await store.write(write)

    async def page(**place: str) -> list[str]:
        found = await store.read(lambda tx: tx.messages.page("c1", limit=5, **place))
        return [each.content for each in found]

    assert await page() == contents[:5]
    assert await page(after="m3") == contents[4:9]
    assert await page(before="m9") == contents[4:9]
    latest = await store.read(lambda tx: tx.messages.latest("c1", 5))
    assert [each.content for each in latest] == contents[-5:]


async def test_a_page_of_very_long_messages_holds_fewer_but_always_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql, "PAGE_CHARACTERS", 10_000)
    sizes = [4000, 4000, 4000, 50_000, 50_000, 10]

    def write(tx: Tx) -> None:
        for n, size in enumerate(sizes):
            tx.messages.add(message(f"m{n}", content=text(size)))

    await store.write(write)

    async def page(**place: str) -> list[str]:
        found = await store.read(lambda tx: tx.messages.page("c1", limit=500, **place))
        return [each.id for each in found]

    assert await page() == ["m0", "m1"]
    assert await page(after="m1") == ["m2"]
    assert await page(after="m2") == ["m3"]
    assert await page(after="m3") == ["m4"]
    assert await page(after="m4") == ["m5"]
    assert await page(after="m5") == []
    assert await page(before="m5") == ["m4"]
    assert await page(before="m3") == ["m1", "m2"]
    latest = await store.read(lambda tx: tx.messages.latest("c1", 500))
    assert [each.id for each in latest] == ["m5"]


async def test_metadata_counts_for_a_page_too(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "PAGE_CHARACTERS", 10_000)

    def write(tx: Tx) -> None:
        for n in range(3):
            tx.messages.add(message(f"m{n}", metadata={"raw_output": "x" * 6000}))

    await store.write(write)
    page = await store.read(lambda tx: tx.messages.page("c1", limit=500))
    assert [each.id for each in page] == ["m0"]


@pytest.mark.parametrize("gone", ["session", "task", "workspace"])
async def test_a_text_goes_with_all_its_parts(store: Store, gone: str) -> None:
    def write(tx: Tx) -> int:
        tx.tasks.insert(task("t2"))
        tx.sessions.insert(session("c2", task_id="t2"))
        for owner in ("c1", "c2"):
            tx.messages.add(message(owner, session_id=owner, content=text(STRETCH)))
            tx.messages.append(owner, text(3 * STRETCH))
        return parts(tx)

    assert await store.write(write) == 2

    def delete(tx: Tx) -> int:
        if gone == "session":
            tx.sessions.delete("c1")
        elif gone == "task":
            tx.tasks.delete("t1")
        else:
            tx.tasks.delete("t1")
            tx.tasks.delete("t2")
            tx.workspaces.delete("w1")
        return parts(tx)

    assert await store.write(delete) == (0 if gone == "workspace" else 1)
    with pytest.raises(StaleVersion):
        await store.write(lambda tx: tx.messages.append("c1", "x"))


def pages_written(tx: Tx, path: Path) -> int:
    """Bytes of the write-ahead log, which holds every page that a commit wrote."""
    assert isinstance(tx, SqlTx)
    tx.connection.exec_driver_sql("PRAGMA wal_autocheckpoint = 0")
    return Path(f"{path}-wal").stat().st_size


@pytest.mark.parametrize(("size", "many"), [(3, 200), (100, 200), (2500, 100), (30_000, 20)])
async def test_a_piece_costs_the_same_behind_a_megabyte_as_at_the_beginning(
    on_file: Store, tmp_path: Path, size: int, many: int
) -> None:
    path = tmp_path / "kandev.db"

    async def written() -> int:
        return await on_file.write(lambda tx: pages_written(tx, path))

    async def cost() -> int:
        before = await written()
        for _ in range(many):
            await on_file.write(lambda tx: tx.messages.append("m", "x" * size))
        return await written() - before

    await on_file.write(board)
    await on_file.write(lambda tx: tx.messages.add(message("m", content="")))
    first = await cost()
    await on_file.write(lambda tx: tx.messages.append("m", "y" * 1_000_000))
    later = await cost()
    assert later < 1.5 * first + 20 * 4096, "a piece, and not what it is appended to, is written"

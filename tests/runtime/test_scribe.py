"""Output becomes messages, and what grows is not read or written again."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kandev.core import transcript
from kandev.core.cutting import MARK
from kandev.core.effects import Line, Told
from kandev.core.session import TurnRef
from kandev.core.transcript import Content, Message, Meta, Text, ToolCall, ToolChange
from kandev.execution.clock import TimeIds
from kandev.ports.store import Store, Tx
from kandev.runtime import growth as module
from kandev.runtime.scribe import META_MAX, Scribe
from kandev.runtime.tool_lines import DETAILS_MAX
from kandev.storage.opening import open_inline, open_store
from kandev.storage.sql.messages import SqlMessages
from kandev.storage.sql.tx import SqlTx
from tests.storage.rows import NOW, Listener, board

TURN = TurnRef("x", 1)


class Session:
    """One session's transcript, written commit by commit as its actor does."""

    def __init__(self, store: Store, listener: Listener) -> None:
        self.store, self.listener = store, listener
        self.open: str | None = None

    async def commit(self, *contents: Content | Line) -> None:
        """All of it in one commit."""

        def write(tx: Tx) -> str | None:
            scribe = Scribe(tx, TimeIds(), "c1", NOW, self.open)
            for content in contents:
                if isinstance(content, Line):
                    scribe.line(content)
                else:
                    scribe.told(Told(content, TURN))
            return scribe.finish()

        self.open = await self.store.write(write)

    async def messages(self) -> list[Message]:
        return list(await self.store.read(lambda tx: tx.messages.page("c1", limit=1000)))

    async def texts(self) -> list[str]:
        return [message.content for message in await self.messages()]

    def followed(self) -> dict[str, str]:
        """The texts as a client puts them together that heard every notification."""
        texts: dict[str, str] = {}
        for told in self.listener.heard:
            payload = told.payload
            if told.action == "session.message.added":
                texts[payload["message"]["id"]] = payload["message"]["content"]
            elif "append" in payload:
                assert payload["offset"] == len(texts[payload["message_id"]])
                texts[payload["message_id"]] += payload["append"]
            elif told.action == "session.message.updated":
                texts[payload["message_id"]] = payload["message"]["content"]
        return texts


@pytest.fixture
async def session() -> AsyncIterator[Session]:
    listener = Listener()
    store = open_inline(listener)
    await store.write(board)
    yield Session(store, listener)
    await store.close()


def say(text: str, id: str | None = "a") -> Text:
    return Text("message", text, id)


async def test_pieces_of_many_commits_are_one_message_that_a_follower_has_too(session: Session) -> None:
    pieces = [f"{n} é🦊 " * (n % 300) for n in range(400)]
    for piece in pieces:
        await session.commit(say(piece))
    (message,) = await session.messages()
    assert message.content == "".join(pieces)
    assert session.followed() == {message.id: message.content}


async def test_what_a_message_holds_is_not_read_while_it_grows(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    await session.commit(say("begin "))

    def read(self: SqlMessages, id: str) -> Message | None:
        raise AssertionError("the whole text was read")

    with monkeypatch.context() as patched:
        patched.setattr(SqlMessages, "get", read)
        for n in range(50):
            await session.commit(say(f"{n} "), say("and "))
    assert await session.texts() == ["begin " + "".join(f"{n} and " for n in range(50))]


async def test_a_message_that_is_full_goes_on_in_the_next_and_says_so(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROWS_TO", 1000)
    for n in range(100):
        await session.commit(say(f"{n:03}" * 11), say("-" * 7))
    messages = await session.messages()
    whole = "".join(f"{n:03}" * 11 + "-" * 7 for n in range(100))
    assert "".join(message.content for message in messages) == whole
    assert [len(message.content) for message in messages] == [1000] * 4
    before = [message.metadata.get("continues") for message in messages]
    assert before == [None, *(message.id for message in messages[:-1])]
    assert {message.metadata["message_id"] for message in messages} == {"a"}
    assert session.followed() == {message.id: message.content for message in messages}


async def test_one_piece_is_never_cut_however_long(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "GROWS_TO", 1000)
    await session.commit(say("x" * 5000), say("y"), say("z" * 1500), say("end"))
    assert await session.texts() == ["x" * 5000, "y", "z" * 1500, "end"]


async def test_another_message_does_not_count_what_the_last_one_held(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROWS_TO", 1000)
    await session.commit(say("x" * 900))
    await session.commit(say("y" * 900, "b"))
    await session.commit(Line("status", "a line"), say("z" * 900, "b"))
    await session.commit(Text("thought", "t" * 900, "b"))
    messages = await session.messages()
    assert [message.content[:1] for message in messages] == ["x", "y", "a", "z", "t"]
    assert not [message for message in messages if "continues" in message.metadata]


def test_a_message_ends_growing_at_what_may_wait_for_a_client() -> None:
    from kandev.gateway.hub import MOST_BYTES

    assert transcript.GROWS_TO == MOST_BYTES


@pytest.fixture
async def on_file(tmp_path: Path) -> AsyncIterator[Session]:
    listener = Listener()
    store = await open_store(str(tmp_path / "kandev.db"), publisher=listener, commit_s=60)
    await store.write(board)
    yield Session(store, listener)
    await store.close()


async def test_what_was_committed_is_there_after_a_kill_between_any_two_commits(
    on_file: Session, tmp_path: Path
) -> None:
    said = ""
    for moment in range(12):
        piece = f"{moment} é🦊 " * (1 + 97 * moment % 400)
        await on_file.commit(say(piece))
        said += piece
        killed = tmp_path / f"at-{moment}"
        killed.mkdir()
        for name in ("kandev.db", "kandev.db-wal"):  # all that is on the disk, as it is at this moment
            shutil.copy(tmp_path / name, killed / name)
        store = await open_store(str(killed / "kandev.db"), publisher=Listener(), commit_s=60)
        session = Session(store, Listener())
        session.open = on_file.open
        assert await session.texts() == [said]
        await session.commit(say("and on"))
        assert await session.texts() == [said + "and on"], "the message goes on where it was"
        await store.close()


async def test_a_message_costs_twice_as_much_when_it_grows_twice_as_long(
    on_file: Session, tmp_path: Path
) -> None:
    """Counted in pages written, at a megabyte and two: quadratic growth would cost four times as much."""

    def unfolded(tx: Tx) -> None:
        assert isinstance(tx, SqlTx)
        tx.connection.exec_driver_sql("PRAGMA wal_autocheckpoint = 0")

    await on_file.store.write(unfolded)
    log = tmp_path / "kandev.db-wal"
    costs = []
    for _ in range(2):
        before = log.stat().st_size
        for _ in range(250):
            await on_file.commit(say("x" * 4000))
        costs.append(log.stat().st_size - before)
    assert costs[1] < 1.2 * costs[0], costs
    assert costs[0] < 12 * 1_000_000, "some pages for each piece"
    assert await on_file.texts() == ["x" * 2_000_000]


def call(id: str = "t", **details: Any) -> ToolCall:
    return ToolCall(id, "Run", "execute", "pending", details)


def changed(id: str = "t", status: str | None = None, **details: Any) -> ToolChange:
    return ToolChange(id, status=status, details=details)


async def test_the_changes_of_a_tool_call_in_one_commit_are_written_and_told_once(session: Session) -> None:
    await session.commit(call(raw_input={"command": "make"}))
    told = len(session.listener.heard)
    await session.commit(
        changed(status="in_progress"),
        say("text"),
        *(changed(raw_output=f"line {n}") for n in range(100)),
        changed(status="completed"),
    )
    assert len(session.listener.heard) == told + 2
    tool, text = await session.messages()
    assert (tool.metadata["status"], tool.metadata["raw_output"]) == ("completed", "line 99")
    assert (tool.metadata["raw_input"], text.content) == ({"command": "make"}, "text")
    assert session.listener.heard[-1].payload["message"]["metadata"] == tool.metadata


async def test_a_change_that_changes_nothing_is_neither_written_nor_told(session: Session) -> None:
    await session.commit(call(), changed(status="completed"))
    told = len(session.listener.heard)
    await session.commit(changed(status="completed"), changed(status="pending"), changed(status="completed"))
    assert len(session.listener.heard) == told


async def test_many_tool_calls_that_change_side_by_side_are_all_kept(session: Session) -> None:
    names = [f"t{n}" for n in range(200)]
    await session.commit(*(call(name) for name in names))
    rounds = [changed(name, raw_output=f"{turn} of {name}") for turn in range(3) for name in names]
    await session.commit(*rounds)
    kept = [message.metadata["raw_output"] for message in await session.messages()]
    assert kept == [f"2 of {name}" for name in names]


async def test_a_tool_calls_endless_output_is_cut_and_says_so(session: Session) -> None:
    await session.commit(call(raw_input={"command": "yes"}))
    await session.commit(changed(raw_output="y\n" * DETAILS_MAX))
    await session.commit(changed(status="completed"))
    (tool,) = await session.messages()
    assert tool.metadata["raw_output"].endswith(MARK)
    assert (tool.metadata["cut"], tool.metadata["status"]) == (["raw_output"], "completed")
    assert tool.metadata["raw_input"] == {"command": "yes"}
    assert len(msgspec.json.encode(tool.metadata)) < 2 * DETAILS_MAX
    await session.commit(changed(raw_output="n"))
    (tool,) = await session.messages()
    assert tool.metadata["raw_output"] == "n"
    assert "cut" not in tool.metadata


async def test_a_small_change_of_a_large_tool_call_costs_no_more_than_what_is_kept_of_it(
    session: Session,
) -> None:
    await session.commit(call(raw_output="x" * (8 * DETAILS_MAX)))
    told = len(session.listener.heard)
    await session.commit(*(changed(status=f"step {n}") for n in range(250)))
    sizes = [len(msgspec.json.encode(n.payload)) for n in session.listener.heard[told:]]
    assert len(sizes) == 1 and sizes[0] < 2 * DETAILS_MAX


async def test_what_an_agent_says_of_itself_is_kept_within_a_bound(session: Session) -> None:
    def write(tx: Tx) -> dict[str, Any]:
        scribe = Scribe(tx, TimeIds(), "c1", NOW, None)
        scribe.told(Told(Meta("commands", [{"name": f"c{n}", "text": "x" * 1000} for n in range(5000)])))
        scribe.told(Told(Meta("usage", {"used": 1})))
        scribe.finish()
        return scribe.meta

    meta = await session.store.write(write)
    assert meta["usage"] == {"used": 1}
    assert META_MAX // 2 < len(msgspec.json.encode(meta)) < 2 * META_MAX


async def test_a_message_id_without_end_is_no_name_and_is_not_kept(session: Session) -> None:
    await session.commit(say("one ", "n" * 5000))
    await session.commit(say("two", "n" * 5000))
    (message,) = await session.messages()
    assert (message.content, message.metadata) == ("one two", {})

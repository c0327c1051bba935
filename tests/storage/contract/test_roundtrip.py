"""Whatever a session's value is, and whatever JSON an agent sends, it comes back from the store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kandev.core.session import Answer, Entry, Permission, Session, Turn, TurnRef
from kandev.core.transcript import Message
from kandev.ports.store import Store, Tx
from kandev.storage.opening import open_inline
from tests.storage.rows import Listener, board, message

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = st.integers(0, 2**62)
st.register_type_strategy(str, TEXT)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**62), 2**62)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ASKS = st.lists(TEXT, max_size=2).map(tuple)
ENTRY = st.builds(Entry, id=TEXT, place=NUMBER, asks=ASKS)
REF = st.builds(TurnRef, execution=TEXT, generation=NUMBER, own=st.none() | TEXT)
TURN = st.builds(Turn, ref=REF, entries=st.lists(ENTRY, max_size=2).map(tuple), attempt=NUMBER, asks=ASKS)
ANSWER = st.builds(Answer, option_id=st.none() | TEXT, rejected=st.booleans())
PERMISSION = st.builds(Permission, request=TEXT, answer=st.none() | ANSWER)
SESSION = st.builds(
    Session,
    id=TEXT,
    generation=NUMBER,
    turn=st.none() | TURN,
    queue=st.lists(ENTRY, max_size=3).map(tuple),
    jumps=ASKS,
    permissions=st.lists(PERMISSION, max_size=2).map(tuple),
)


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="module")
def store(runner: asyncio.Runner) -> Iterator[Store]:
    store = open_inline(Listener())
    runner.run(store.write(board))
    yield store
    runner.run(store.close())


@settings(deadline=None, max_examples=300)
@given(value=SESSION)
def test_any_value_of_a_session_survives_the_store(
    runner: asyncio.Runner, store: Store, value: Session
) -> None:
    def write(tx: Tx) -> None:
        row = tx.sessions.get("c1")
        assert row is not None
        tx.sessions.update(replace(row, value=value))

    runner.run(store.write(write))
    found = runner.run(store.read(lambda tx: tx.sessions.get("c1")))
    assert found is not None
    assert found.value == value


@settings(deadline=None, max_examples=200)
@given(metadata=st.dictionaries(TEXT, JSON, max_size=4), content=TEXT)
def test_any_json_and_any_text_survive_the_store(
    runner: asyncio.Runner, store: Store, metadata: dict[str, Any], content: str
) -> None:
    def write(tx: Tx) -> tuple[Message, int]:
        added = tx.messages.add(message(f"m{tx.next_epoch()}", content=content, metadata=metadata))
        tx.notifications.add("session", "c1", "x", metadata)
        return added, tx.notifications.last("session", "c1")

    added, seq = runner.run(store.write(write))
    assert runner.run(store.read(lambda tx: tx.messages.get(added.id))) == added
    heard = runner.run(store.read(lambda tx: tx.notifications.since("session", "c1", seq - 1)))
    assert heard is not None
    assert heard[0].payload == metadata

"""The first start on a restored database: it is told apart, and becomes true in one transaction."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from kandev.core.errors import KandevError
from kandev.core.records import SessionRecord
from kandev.core.restoring import WHY
from kandev.core.views import needs_actor, wire_state
from kandev.execution.clock import SystemClock, TimeIds
from kandev.execution.seen import has_journals, read_seen
from kandev.ports.store import Store, Tx
from kandev.runtime.booking import Stamp
from kandev.runtime.restored import NOTE, Seen, settle, went_back
from kandev.storage.opening import open_store
from kandev.storage.schema import HEAD
from tests.storage.rows import Listener
from tests.storage.schemas import lay
from tests.storage.schemas.reading import everything


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """What a killed backend left: agents at work, a queue, a question, a parked one."""
    store = await open_store(str(lay(HEAD, tmp_path / "kandev.db")), publisher=Listener(), commit_s=20)
    yield store
    await store.close()


def stamp() -> Stamp:
    return Stamp(SystemClock().now(), TimeIds(), 10)


def sessions(tx: Tx) -> list[SessionRecord]:
    return [s for w in tx.workspaces.list() for s in tx.sessions.of_workspace(w.id)]


async def _titled(store: Store, title: str) -> tuple[SessionRecord, str]:
    """The session of the task with this title, and the task's state."""

    def find(tx: Tx) -> tuple[SessionRecord, str]:
        (task,) = [t for t in tx.tasks.list() if t.title == title]
        return tx.sessions.of_task(task.id)[0], task.state

    return await store.read(find)


async def _lines(store: Store, session_id: str) -> list[str]:
    found = await store.read(lambda tx: tx.messages.page(session_id, limit=100))
    return [m.content for m in found if m.author_type == "system"]


@pytest.mark.proves("STORE-restored-start")
async def test_nothing_is_at_work_and_every_row_agrees(store: Store) -> None:
    before = await store.read(sessions)
    count = await store.write(lambda tx: settle(tx, Seen(), stamp()))
    after = await store.read(sessions)
    assert count == len([s for s in before if needs_actor(s.value)]) > 1
    assert [s.id for s in after if needs_actor(s.value)] == []
    assert await store.read(lambda tx: tx.sessions.alive()) == []
    assert [s.id for s in after if s.state != wire_state(s.value)] == []
    turns = await store.read(lambda tx: [t for s in sessions(tx) for t in tx.turns.of_session(s.id)])
    assert {turn.state for turn in turns} == {"ended"}
    executions = await store.read(
        lambda tx: [e for s in sessions(tx) for e in tx.executions.of_session(s.id)]
    )
    assert {execution.status for execution in executions} == {"gone"}


@pytest.mark.proves("STORE-restored-start")
async def test_what_was_at_work_is_told_in_the_chat_and_on_the_board(store: Store) -> None:
    await store.write(lambda tx: settle(tx, Seen(), stamp()))
    busy, task = await _titled(store, "Long running import")
    assert (busy.state, task, busy.value.parked) == ("WAITING_FOR_INPUT", "REVIEW", WHY)
    queued = await store.read(lambda tx: [e.content for e in tx.entries.queue(busy.id)])
    assert queued == ["say first in the queue", "say second in the queue"]
    assert any("restored from a copy" in line for line in await _lines(store, busy.id))
    asking, task = await _titled(store, "Migrate the orders table")
    assert (asking.waiting_for, task) == (None, "REVIEW")
    (question,) = [
        m
        for m in await store.read(lambda tx: tx.messages.page(asking.id, limit=100))
        if m.type == "permission_request"
    ]
    assert question.metadata["status"] == "cancelled"
    parked, _ = await _titled(store, "Tidy the logs")
    assert parked.value.parked == WHY
    stopped, _ = await _titled(store, "Spike: another cache")
    assert stopped.state == "CANCELLED"
    assert not any("restored" in line for line in await _lines(store, stopped.id))


async def test_done_again_it_changes_no_session(store: Store) -> None:
    def values(tx: Tx) -> list[object]:
        return [s.value for s in sessions(tx)]

    await store.write(lambda tx: settle(tx, Seen(), stamp()))
    once = await store.read(values)
    assert await store.write(lambda tx: settle(tx, Seen(), stamp())) == 0
    assert await store.read(values) == once


@pytest.mark.proves("STORE-restored-start")
async def test_names_of_executions_and_places_in_streams_are_new(store: Store) -> None:
    before = await store.read(everything)
    ids = [session["id"] for session in before["sessions"]]
    seen = Seen(executions=dict.fromkeys(ids, 7))
    await store.write(lambda tx: settle(tx, seen, stamp()))
    after = await store.read(sessions)
    assert {s.value.executions for s in after} == {8}
    assert {s.state for s in after} <= {"WAITING_FOR_INPUT", "CANCELLED", "FAILED"}, "none was never started"
    first = await store.read(everything)
    await store.write(lambda tx: settle(tx, seen, stamp()))
    second = await store.read(everything)
    for id in ids:
        old, new, newer = (told["by_session"][id]["last"] for told in (before, first, second))
        assert old < new < newer
        gap = await store.read(lambda tx, id=id, old=old: tx.notifications.since("session", id, old))  # type: ignore[misc]
        assert gap is None, "who followed it before the restore reloads"
    assert all(before["streams"][w] < first["streams"][w] < second["streams"][w] for w in before["streams"])


async def test_a_database_is_known_to_have_gone_back_by_its_note_and_by_what_agentctl_saw(
    store: Store,
) -> None:
    epoch = await store.read(lambda tx: tx.epoch())
    (one, *_) = await store.read(sessions)
    ordinary = Seen(epoch, {one.id: one.value.executions}, {one.id: one.value.executions, "session_gone": 9})
    number = one.value.executions + 1
    later = replace(ordinary, executions={one.id: number}, newest={one.id: number})

    async def back(seen: Seen) -> bool:
        return await store.read(lambda tx: went_back(tx, seen))

    assert [await back(seen) for seen in (Seen(), ordinary)] == [False, False]
    assert [await back(seen) for seen in (Seen(epoch + 1), later)] == [True, True]
    await store.write(lambda tx: tx.set_note(NOTE, "2026"))
    assert await back(ordinary)
    later = replace(later, epoch=epoch + 5)
    await store.write(lambda tx: settle(tx, later, stamp()))
    assert [await back(seen) for seen in (ordinary, later)] == [False, False]
    assert not await back(replace(ordinary, newest={one.id: one.value.executions}))


def test_agentctl_s_files_tell_what_it_has_seen(tmp_path: Path) -> None:
    assert read_seen(tmp_path) == Seen()
    assert not has_journals(tmp_path)
    folder = tmp_path / "agentctl"
    (folder / "journals" / "s2.4").mkdir(parents=True)
    (folder / "epoch").write_text("12\n")
    (folder / "tombstones").write_text("s1.2\ns1.10\nstrange\n" + "".join(f"s3.{n}\n" for n in range(1, 61)))
    seen = read_seen(tmp_path)
    assert (seen.epoch, seen.executions) == (12, {"s1": 10, "s2": 4, "s3": 60})
    assert seen.newest == {"s2": 4, "s3": 60}
    assert has_journals(tmp_path)


@pytest.mark.parametrize("name", ["epoch", "tombstones", "journals"])
def test_what_is_there_and_cannot_be_read_refuses_the_start(tmp_path: Path, name: str) -> None:
    path = tmp_path / "agentctl" / name
    path.parent.mkdir()
    path.symlink_to(path)  # cannot be read by root either
    with pytest.raises(KandevError) as refused:
        read_seen(tmp_path)
    assert str(path) in refused.value.message and "make it yours" in refused.value.message


@pytest.mark.parametrize(("name", "content"), [("epoch", b"twelve"), ("tombstones", b"\xff\xfe")])
def test_what_agentctl_wrote_and_is_damaged_refuses_the_start(
    tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / "agentctl" / name
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(KandevError, match=f"{path} is damaged"):
        read_seen(tmp_path)

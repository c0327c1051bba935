"""Rows come back as they were written, in the order that was promised, and go with what they belong to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kandev.core.board import Profile, Step, TaskRepository, Worktree
from kandev.core.errors import NotFound, StaleVersion
from kandev.core.records import ExecutionRecord, TurnRecord
from kandev.core.session import Entry, Launch, Outcome, Session, Turn, TurnRef
from kandev.ports.store import Store, Tx
from tests.storage.rows import (
    NOW,
    at,
    board,
    entry,
    message,
    repository,
    session,
    task,
    workflow,
    workspace,
)


async def test_every_kind_of_row_comes_back_as_it_was_written(store: Store) -> None:
    profile = Profile(
        "p1",
        "Mock",
        "acp",
        ("mock", "--fast"),
        NOW,
        NOW,
        env={"A": "1"},
        secret_env=("A",),
        auto_approve=True,
        mcp_servers=({"name": "x", "args": ["y"]},),
        cancel_acknowledge_s=0.5,
    )
    card = task(
        "t2", parent_id="t1", repositories=(TaskRepository("r1", "main"),), external_id="X-1", office=True
    )
    turn = TurnRecord("u1", "c1", "c1.1", 3, "ended", NOW, stop_reason="end_turn")
    run = ExecutionRecord("c1.1", "c1", 1, "gone", NOW, exit_code=-9, survivors=("12 sleep",))
    kept = session("c2", is_primary=False, meta={"usage": {"used": 1}}, waiting_for="permission")

    def write(tx: Tx) -> None:
        tx.repositories.insert(repository())
        tx.profiles.insert(profile)
        tx.tasks.insert(card)
        tx.tasks.set_worktree(Worktree("t2", "/old"))
        tx.tasks.set_worktree(Worktree("t2", "/w/t2", "kandev/t2", "abc", "r1"))
        tx.sessions.insert(kept)
        tx.turns.insert(turn)
        tx.entries.insert(entry(key="k", by="person"))
        tx.executions.insert(run)

    def read(tx: Tx) -> None:
        assert list(tx.executions.with_survivors()) == [run]
        assert tx.workspaces.list() == [workspace()]
        assert tx.repositories.list("w1") == [repository()] == [tx.repositories.get("r1")]
        assert tx.workflows.list("w1") == [workflow()] == [tx.workflows.get("f1")]
        assert tx.workflows.step("s2") == Step("s2", "f1", "S2", 1)
        assert tx.profiles.list() == [profile] == [tx.profiles.get("p1")]
        assert tx.tasks.get("t2") == card == tx.tasks.by_external_id("w1", "X-1")
        assert tx.tasks.children("t1") == [card]
        assert tx.tasks.worktree("t2") == Worktree("t2", "/w/t2", "kandev/t2", "abc", "r1")
        assert tx.sessions.get("c2") == kept
        assert tx.turns.of_session("c1") == [turn] == [tx.turns.get("u1")]
        assert tx.entries.get("e1") == entry(key="k", by="person")
        assert tx.executions.of_session("c1") == [run] == [tx.executions.get("c1.1")]

    await store.write(write)
    await store.read(read)


async def test_what_is_unknown_is_none_and_deleting_it_is_fine(store: Store) -> None:
    def look(tx: Tx) -> list[object]:
        tx.tasks.delete("nothing")
        return [
            tx.tasks.get("x"),
            tx.workflows.step("x"),
            tx.tasks.worktree("x"),
            tx.entries.by_key("t1", None, "x"),
        ]

    assert await store.write(look) == [None] * 4


async def test_updating_a_row_that_is_gone_is_a_stale_version(store: Store) -> None:
    with pytest.raises(StaleVersion, match="workspace 'w9'"):
        await store.write(lambda tx: tx.workspaces.update(workspace("w9")))


async def test_inserting_an_id_twice_is_a_stale_version(store: Store) -> None:
    with pytest.raises(StaleVersion, match=r"task 't1' is there already"):
        await store.write(lambda tx: tx.tasks.insert(task()))


async def test_a_row_for_something_that_is_gone_is_a_stale_version(store: Store) -> None:
    with pytest.raises(StaleVersion, match="gone"):
        await store.write(lambda tx: tx.messages.add(message(session_id="c9")))


@pytest.mark.field("D43")
async def test_a_versioned_row_is_compared_and_comes_out_one_higher(store: Store) -> None:
    await store.write(lambda tx: tx.tasks.update(task(title="first")))
    with pytest.raises(StaleVersion):
        await store.write(lambda tx: tx.tasks.update(task(title="second")))
    assert await store.read(lambda tx: tx.tasks.get("t1")) == task(title="first", version=1)


async def test_compare_and_set_on_two_rows_writes_both_or_none(store: Store) -> None:
    def both(tx: Tx) -> None:
        tx.tasks.update(task(state="IN_PROGRESS"))
        tx.sessions.update(session(state="RUNNING", version=5))

    with pytest.raises(StaleVersion):
        await store.write(both)
    assert await store.read(lambda tx: tx.tasks.get("t1")) == task()


async def test_a_task_has_one_primary_session_at_most(store: Store) -> None:
    await store.write(lambda tx: tx.sessions.insert(session("c2", is_primary=False)))
    with pytest.raises(StaleVersion):
        await store.write(lambda tx: tx.sessions.insert(session("c3")))

    def swap(tx: Tx) -> None:
        tx.sessions.update(session(is_primary=False))
        tx.sessions.update(session("c2"))

    await store.write(swap)


async def test_an_external_id_is_unique_within_its_workspace(store: Store) -> None:
    await store.write(lambda tx: tx.tasks.insert(task("t2", external_id="X")))
    with pytest.raises(StaleVersion):
        await store.write(lambda tx: tx.tasks.insert(task("t3", external_id="X")))


@pytest.mark.proves("HOLE-34")
@pytest.mark.parametrize("sender", [None, "t9"])
async def test_an_idempotency_key_is_unique_per_sender_and_task(store: Store, sender: str | None) -> None:
    first = entry(key="k", sender_task_id=sender)
    await store.write(lambda tx: tx.entries.insert(first))
    await store.write(lambda tx: tx.entries.insert(entry("e2", key="k", sender_task_id="other")))
    await store.write(lambda tx: tx.entries.insert(entry("e3", key=None, sender_task_id=sender)))
    await store.write(lambda tx: tx.entries.insert(entry("e4", key=None, sender_task_id=sender)))
    with pytest.raises(StaleVersion):
        await store.write(lambda tx: tx.entries.insert(entry("e5", key="k", sender_task_id=sender)))
    assert await store.read(lambda tx: tx.entries.by_key("t1", sender, "k")) == first


async def test_the_queue_is_what_waits_or_is_claimed_by_place(store: Store) -> None:
    def write(tx: Tx) -> None:
        tx.entries.insert(entry("e1", place=2))
        tx.entries.insert(entry("e2", place=0, state="delivered"))
        tx.entries.insert(entry("e3", place=1, state="claimed"))

    await store.write(write)
    assert [found.id for found in await store.read(lambda tx: tx.entries.queue("c1"))] == ["e3", "e1"]


async def test_tasks_are_listed_by_creation_page_by_page(store: Store) -> None:
    def write(tx: Tx) -> None:
        tx.tasks.delete("t1")
        for id, second in (("b", 2), ("a", 2), ("z", 1), ("c", 3)):
            tx.tasks.insert(task(id, created_at=at(second), archived_at=NOW if id == "c" else None))

    await store.write(write)

    def ids(tx: Tx, after: str | None) -> list[str]:
        return [found.id for found in tx.tasks.list(workspace_id="w1", limit=2, after=after)]

    assert await store.read(lambda tx: ids(tx, None)) == ["z", "a"]
    assert await store.read(lambda tx: ids(tx, "a")) == ["b"]
    assert len(await store.read(lambda tx: tx.tasks.list(workflow_id="f1", include_archived=True))) == 4
    assert await store.read(lambda tx: tx.tasks.list(parent_id="z")) == []
    with pytest.raises(NotFound, match="'gone'"):
        await store.read(lambda tx: ids(tx, "gone"))


async def test_a_new_card_goes_behind_the_last_one(store: Store) -> None:
    await store.write(lambda tx: tx.tasks.insert(task("t2", position=4)))
    assert await store.read(lambda tx: (tx.tasks.next_position("s1"), tx.tasks.next_position("s2"))) == (5, 0)


async def test_the_places_of_a_step_are_its_cards_in_order_without_archived_ones(store: Store) -> None:
    def insert(tx: Tx) -> None:
        tx.tasks.insert(task("t2", position=7))
        tx.tasks.insert(task("t3", position=3, archived_at=NOW))
        tx.tasks.insert(task("t4", position=3, created_at=at(2)))
        tx.tasks.insert(task("t5", position=3, created_at=at(1)))
        tx.tasks.insert(task("t6", position=1, workflow_step_id="s2"))

    await store.write(insert)
    assert await store.read(lambda tx: tx.tasks.places("s1")) == [("t1", 0), ("t5", 3), ("t4", 3), ("t2", 7)]
    assert await store.read(lambda tx: (tx.tasks.places("s2"), tx.tasks.places("s3"))) == ([("t6", 1)], [])


async def test_sessions_of_a_task_come_newest_first(store: Store) -> None:
    await store.write(lambda tx: tx.sessions.insert(session("c0", is_primary=False, created_at=at(59))))
    assert [found.id for found in await store.read(lambda tx: tx.sessions.of_task("t1"))] == ["c0", "c1"]
    for tasks, wanted in ((["t1", "nobody"], ["c0", "c1"]), ([], [])):
        assert [s.id for s in await store.read(lambda tx, of=tasks: tx.sessions.of_tasks(of))] == wanted  # type: ignore[misc]
    assert [found.id for found in await store.read(lambda tx: tx.sessions.of_workspace("w1"))] == ["c1", "c0"]


WAITING = (Entry("e1"),)


@pytest.mark.parametrize(
    ("value", "alive"),
    [
        (Session("c1"), False),
        (Session("c1", launch=Launch.LOST), True),
        (Session("c1", turn=Turn(TurnRef("c1.1", 1), ())), True),
        (Session("c1", retry=True), True),
        (Session("c1", resuming=True), True),
        (Session("c1", queue=WAITING), True),
        (Session("c1", queue=WAITING, outcome=Outcome.COMPLETED), True),
        (Session("c1", queue=WAITING, outcome=Outcome.FAILED), False),
        (Session("c1", queue=WAITING, parked="stopped"), False),
    ],
)
async def test_a_session_is_alive_when_something_is_under_way_or_owed(
    store: Store, value: Session, alive: bool
) -> None:
    await store.write(lambda tx: tx.sessions.update(session(value=value)))
    assert await store.read(lambda tx: tx.sessions.alive()) == (["c1"] if alive else [])


async def test_a_workflow_is_written_with_its_steps_and_positions_count_from_zero(store: Store) -> None:
    moved = workflow(steps=("s1", "new"))
    first, second = moved.steps
    changed = replace(moved, name="Board", steps=(replace(second, position=9, final=True), first))
    await store.write(lambda tx: tx.workflows.update(changed))
    found = await store.read(lambda tx: tx.workflows.get("f1"))
    assert found is not None
    assert found.name == "Board"
    assert [(step.id, step.position, step.final) for step in found.steps] == [
        ("new", 0, True),
        ("s1", 1, False),
    ]


async def test_a_step_that_holds_a_task_is_not_deleted(store: Store) -> None:
    with pytest.raises(StaleVersion, match="still needs it"):
        await store.write(lambda tx: tx.workflows.update(workflow(steps=("s2",))))
    assert await store.read(lambda tx: tx.workflows.get("f1")) == workflow()


def _everything(tx: Tx) -> None:
    board(tx)
    tx.tasks.insert(task("t2", parent_id="t1"))
    tx.tasks.set_worktree(Worktree("t1", "/w"))
    tx.turns.insert(TurnRecord("u1", "c1", "c1.1", 1, "active", NOW))
    tx.entries.insert(entry())
    tx.executions.insert(ExecutionRecord("c1.1", "c1", 1, "ready", NOW))
    tx.messages.add(message())
    tx.notifications.add("session", "c1", "session.message.added", {})
    tx.notifications.add("workspace", "w1", "task.created", {})


def _of_the_session(tx: Tx) -> list[object]:
    rows = [tx.sessions.get("c1"), tx.turns.get("u1"), tx.entries.get("e1"), tx.executions.get("c1.1")]
    return [*rows, tx.messages.get("m1"), tx.notifications.last("session", "c1") or None]


@pytest.mark.parametrize("of", ["sessions", "tasks", "workflows", "workspaces"])
async def test_what_belongs_to_a_deleted_thing_is_gone_with_it(empty: Store, of: str) -> None:
    ids = {"sessions": "c1", "tasks": "t1", "workflows": "f1", "workspaces": "w1"}
    await empty.write(_everything)
    await empty.write(lambda tx: getattr(tx, of).delete(ids[of]))
    assert await empty.read(_of_the_session) == [None] * 6
    kept = await empty.read(lambda tx: tx.notifications.last("workspace", "w1"))
    assert kept == (0 if of == "workspaces" else 1)
    worktree = await empty.read(lambda tx: tx.tasks.worktree("t1"))
    assert (worktree is not None) == (of == "sessions")


async def test_a_subtask_outlives_its_parent(empty: Store) -> None:
    await empty.write(_everything)
    await empty.write(lambda tx: tx.tasks.delete("t1"))
    assert await empty.read(lambda tx: tx.tasks.get("t2")) == task("t2")


async def test_the_epoch_grows_and_notes_are_kept(empty: Store) -> None:
    assert await empty.read(lambda tx: (tx.epoch(), tx.note("first_start"))) == (0, None)
    assert [await empty.write(lambda tx: tx.next_epoch()) for _ in range(3)] == [1, 2, 3]
    await empty.write(lambda tx: tx.set_note("first_start", "a"))
    await empty.write(lambda tx: tx.set_note("first_start", "b"))
    assert await empty.read(lambda tx: (tx.epoch(), tx.note("first_start"))) == (3, "b")


@pytest.mark.parametrize("taken", [0, 3])
async def test_an_epoch_is_above_what_others_have_seen(empty: Store, taken: int) -> None:
    for _ in range(taken):
        await empty.write(lambda tx: tx.next_epoch())
    assert await empty.write(lambda tx: tx.next_epoch(2)) == max(taken, 2) + 1
    assert await empty.write(lambda tx: tx.next_epoch(40)) == 41
    assert await empty.write(lambda tx: tx.next_epoch()) == 42

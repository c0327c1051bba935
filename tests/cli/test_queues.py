"""The queue: shown, added to, changed, put in order, let go."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.cli.conftest import SESSION, Kandev
from tests.cli.fake_backend import FakeBackend, Payload, Refusal


def ago() -> str:
    """Five minutes before now: not before this file was read, which may be minutes ago itself."""
    return (datetime.now(UTC) - timedelta(minutes=5, seconds=20)).isoformat().replace("+00:00", "Z")


IDS = ["entry_abcd", "entry_efgh", "entry_jkmn"]


def an_entry(place: int, **members: Any) -> Payload:
    return {
        "id": IDS[place],
        "position": place,
        "content": f"later {place}",
        "state": "queued",
        "queued_by": "user",
        "queued_at": ago(),
        **members,
    }


def a_queue(*entries: Payload, **members: Any) -> Payload:
    return {"entries": list(entries), "count": len(entries), "max": 10, "auto_run": True, **members}


@pytest.fixture
def waiting(backend: FakeBackend) -> FakeBackend:
    """Three messages wait; everything that changes them is accepted."""
    queue = a_queue(*map(an_entry, range(3)))
    done = {"success": True}
    backend.answers |= {
        "message.queue.get": queue,
        "message.queue.add": {"message_id": "m1", "entry_id": "e1", "status": "queued"},
        "message.queue.update": {**done, "entry_id": IDS[1]},
        "message.queue.remove": {**done, "entry_id": IDS[1]},
        "message.queue.clear": {**done, "removed": 3},
        "message.queue.reorder": queue,
        "message.queue.send_now": {**done, "entry_id": IDS[1], "status": "sent"},
        "message.queue.drain": queue,
        "message.queue.auto_run.set": lambda asked: {**queue, "auto_run": asked["auto_run"]},
    }
    return backend


def test_a_queue_is_a_table_of_who_said_what_how_long_ago(kandev: Kandev, backend: FakeBackend) -> None:
    agents = an_entry(1, queued_by="agent", sender_task_id="task_1234", content="x" * 500)
    automations = an_entry(2, queued_by="automation", coalescing_key="ci", content="two\nlines")
    backend.answers["message.queue.get"] = a_queue(an_entry(0), agents, automations)

    head, first, second, third = kandev("queue", "list", "aa11").out.splitlines()

    assert head.split() == ["#", "ENTRY", "FROM", "AGE", "MESSAGE"]
    assert first.split() == ["0", IDS[0], "user", "5", "min", "later", "0"]
    assert "agent, task task_1234" in second
    assert second.endswith(f"{'x' * 59}…")
    assert third.endswith("automation, ci         5 min  two lines")
    assert kandev("queue", "list", "aa11", "--json").json["entries"][1]["content"] == "x" * 500


def test_a_queue_that_a_person_switched_off_is_called_paused(kandev: Kandev, backend: FakeBackend) -> None:
    switched_off = {"auto_run": False, "parked_reason": "auto-run was switched off"}
    backend.answers["message.queue.get"] = a_queue(**switched_off)
    said = kandev("queue", "list", "aa11").out
    assert f"The queue is paused. `kandev queue resume {SESSION}` lets it run.\n" in said
    assert "parked" not in said


def test_a_parked_queue_says_why_and_what_lets_it_go(kandev: Kandev, backend: FakeBackend) -> None:
    parked = {"auto_run": False, "parked_reason": "cancelled by a person"}
    backend.answers["message.queue.get"] = a_queue(**parked)

    assert kandev("queue", "list", "aa11").out == (
        "Nothing waits.\n"
        f"The queue is parked: cancelled by a person. `kandev queue resume {SESSION}` lets it run.\n"
    )


@pytest.mark.parametrize(
    ("words", "action", "payload", "said"),
    [
        (("edit", "aa11", "efgh", "new"), "update", {"entry_id": IDS[1], "content": "new"}, "is changed"),
        (("remove", "aa11", "efgh"), "remove", {"entry_id": IDS[1]}, "is removed"),
        (("clear", "aa11", "--yes"), "clear", {}, "3 messages removed."),
        (("move", "aa11", "jkmn", "0"), "reorder", {"entry_ids": [IDS[2], *IDS[:2]]}, "is at place 0"),
        (("move", "aa11", "abcd", "9"), "reorder", {"entry_ids": [*IDS[1:], IDS[0]]}, "is at place 2"),
        (("send-now", "aa11", "efgh"), "send_now", {"entry_id": IDS[1]}, "is sent: the agent has it."),
        (("run", "aa11"), "drain", {}, "The queue runs; 3 messages left in it."),
        (("pause", "aa11"), "auto_run.set", {"auto_run": False}, "is paused; 3 messages in it."),
        (("resume", "aa11"), "auto_run.set", {"auto_run": True}, "runs by itself; 3 messages left in it."),
    ],
)
def test_a_queue_is_changed(
    kandev: Kandev,
    waiting: FakeBackend,
    words: tuple[str, ...],
    action: str,
    payload: Payload,
    said: str,
) -> None:
    ran = kandev("queue", *words)

    assert (ran.code, ran.err) == (0, "")
    assert said in ran.out
    assert waiting.payloads(f"message.queue.{action}") == [{"session_id": SESSION, **payload}]
    as_json = kandev("queue", *words, "--json").json
    answer = waiting.answers[f"message.queue.{action}"]
    assert as_json == (answer({"auto_run": payload.get("auto_run")}) if callable(answer) else answer)


def test_a_message_is_put_behind_all_that_waits(
    kandev: Kandev, waiting: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("from stdin\n"))

    ran = kandev("queue", "add", "aa11", "-", "--key", "k", "--replace", "ci")

    assert ran.out == "queued: It waits in the queue. Entry e1.\n"
    assert waiting.payloads("message.queue.add") == [
        {"session_id": SESSION, "content": "from stdin", "idempotency_key": "k", "coalescing_key": "ci"}
    ]
    kandev("queue", "add", "aa11", "plain")
    assert waiting.payloads("message.queue.add")[1] == {"session_id": SESSION, "content": "plain"}


def test_a_message_that_is_not_sent_yet_says_how_to_follow_it(kandev: Kandev, waiting: FakeBackend) -> None:
    waiting.answers["message.queue.send_now"] = {"success": True, "entry_id": IDS[0], "status": "queued"}

    assert f"`kandev message status {IDS[0]}`" in kandev("queue", "send-now", "aa11", "abcd").out


@pytest.mark.parametrize(
    "words", [("edit", "x", "text"), ("remove", "x"), ("move", "x", "0"), ("send-now", "x")]
)
def test_an_entry_that_does_not_wait_is_named_and_nothing_is_asked(
    kandev: Kandev, waiting: FakeBackend, words: tuple[str, ...]
) -> None:
    def unknown(_: Payload) -> Payload:
        raise Refusal("NOT_FOUND", "entry not found")

    waiting.answers["message.status"] = unknown
    ran = kandev("queue", words[0], "aa11", *words[1:])

    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"kandev: No entry 'x' waits; look with `kandev queue list {SESSION}`.\n"
    changes = {name for name, _ in waiting.asked if name.startswith("message.queue.")}
    assert changes == {"message.queue.get"}


@pytest.mark.parametrize("words", [("edit", "entry_gone", "text"), ("remove", "entry_gone")])
def test_the_fate_of_an_entry_that_waits_no_more_is_told(
    kandev: Kandev, waiting: FakeBackend, words: tuple[str, ...]
) -> None:
    waiting.answers["message.status"] = {"state": "removed", "by": "user", "at": "2026"}

    ran = kandev("queue", words[0], "aa11", *words[1:])

    fate = "It was taken out of the queue by user."
    where = f"The entry entry_gone does not wait in the queue of {SESSION}."
    assert (ran.code, ran.err) == (1, f"kandev: {where} {fate}\n")
    assert waiting.payloads("message.status") == [{"entry_id": "entry_gone"}]


def test_an_end_that_fits_two_entries_names_neither(kandev: Kandev, waiting: FakeBackend) -> None:
    assert "names 3 of the entries" in kandev("queue", "remove", "aa11", "entry_").err


def test_a_queue_is_not_emptied_unasked(
    kandev: Kandev, waiting: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    ran = kandev("queue", "clear", "aa11")

    assert (ran.code, "say --yes" in ran.err, waiting.asked) == (2, True, [])


def test_a_queue_that_may_not_run_says_so_in_the_backends_words(kandev: Kandev, waiting: FakeBackend) -> None:
    def refuse(_: Payload) -> Payload:
        raise Refusal("CONFLICT", "The queue is parked: cancelled by a person.")

    waiting.answers["message.queue.drain"] = refuse
    ran = kandev("queue", "run", "aa11")

    assert (ran.code, ran.err) == (1, "kandev: The queue is parked: cancelled by a person.\n")


def test_a_queue_that_is_still_held_after_a_resume_says_why(kandev: Kandev, waiting: FakeBackend) -> None:
    held = a_queue(auto_run=False, parked_reason="the old process is not proven gone")
    waiting.answers["message.queue.auto_run.set"] = held

    assert "parked: the old process is not proven gone" in kandev("queue", "resume", "aa11").out

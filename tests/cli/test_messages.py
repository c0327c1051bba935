"""Messages: sent, listed, and taken out of the queue."""

from __future__ import annotations

import io
import sys

import pytest

from tests.cli.conftest import SESSION, TASK, Kandev
from tests.cli.fake_backend import FakeBackend
from tests.cli.transcripts import a_message, paged


def test_a_message_is_sent_and_its_fate_can_be_asked(
    kandev: Kandev, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.answers |= {
        "message.add": {"message_id": "m1", "entry_id": "e1", "status": "queued"},
        "message.status": {"state": "delivered", "at": "2026"},
    }
    monkeypatch.setattr(sys, "stdin", io.StringIO("from\nstdin\n"))

    assert (
        kandev("message", "send", "aa11", "-", "--key", "k").out
        == "queued: It waits in the queue. Entry e1.\n"
    )
    assert "delivered" in kandev("message", "status", "e1").out
    assert backend.payloads("message.add") == [
        {"task_id": TASK, "session_id": SESSION, "content": "from\nstdin", "idempotency_key": "k"}
    ]


def test_messages_are_listed_whole_across_pages(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["message.list"] = paged([a_message(n) for n in range(1200)])

    assert len(kandev("message", "list", "aa11", "--json").json["messages"]) == 1200
    assert "text 1199" in kandev("message", "list", "aa11").out


def test_a_page_that_is_short_because_its_messages_are_long_is_not_taken_for_the_end(
    kandev: Kandev, backend: FakeBackend
) -> None:
    whole = paged([a_message(n) for n in range(12)])
    backend.answers["message.list"] = lambda asked: whole({**asked, "limit": 5})

    assert len(kandev("message", "list", "aa11", "--json").json["messages"]) == 12


def test_the_queue_is_shown_and_an_entry_taken_out(kandev: Kandev, backend: FakeBackend) -> None:
    entry = {"id": "entry_abcd", "position": 0, "content": "later", "state": "queued", "queued_by": "person"}
    backend.answers |= {
        "message.queue.get": {"entries": [entry], "count": 1, "max": 10, "auto_run": False},
        "message.queue.remove": {"success": True},
    }

    assert "later" in kandev("message", "queue", "aa11").out
    assert "parked" in kandev("message", "queue", "aa11").out
    assert kandev("message", "remove", "aa11", "abcd").code == 0
    assert backend.payloads("message.queue.remove") == [{"session_id": SESSION, "entry_id": "entry_abcd"}]
    assert "No entry 'x' waits" in kandev("message", "remove", "aa11", "x").err

    backend.answers["message.queue.get"] = {"entries": [entry, {**entry, "id": "entry_abcde"}]}
    assert "names 2 of the entries" in kandev("message", "remove", "aa11", "entry_abc").err


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        (("--limit", "2"), ["m1198", "m1199"]),
        (("--limit", "2", "--oldest"), ["m0", "m1"]),
        (("--limit", "2", "--after", "m5"), ["m6", "m7"]),
    ],
)
def test_a_limit_is_about_the_last_messages_unless_others_are_named(
    kandev: Kandev, backend: FakeBackend, words: tuple[str, ...], ids: list[str]
) -> None:
    backend.answers["message.list"] = paged([a_message(n) for n in range(1200)])

    few = kandev("message", "list", "aa11", *words, "--json").json["messages"]

    assert [message["id"] for message in few] == ids
    people = [line for line in kandev("message", "list", "aa11", *words).out.splitlines() if "text" in line]
    assert people == [f"text {id[1:]}" for id in ids]


@pytest.mark.parametrize("words", [("--oldest",), ("--oldest", "--limit", "2", "--after", "m1")])
def test_the_oldest_ones_need_a_limit_and_no_other_place(kandev: Kandev, words: tuple[str, ...]) -> None:
    ran = kandev("message", "list", "aa11", *words)

    assert (ran.code, "--oldest goes with --limit" in ran.err) == (2, True)

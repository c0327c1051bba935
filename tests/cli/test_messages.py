"""Messages: sent, listed, and what became of them."""

from __future__ import annotations

import io
import sys

import pytest

from tests.cli.conftest import SESSION, TASK, Kandev, a_session, a_task
from tests.cli.fake_backend import FakeBackend, Payload, Refusal
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


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"state": "queued"}, "It waits in the queue."),
        ({"state": "claimed"}, "It is on its way to the agent."),
        ({"state": "removed", "by": "user"}, "It was taken out of the queue by user."),
        ({"state": "replaced", "by": "e2"}, "A later message of the same automation took its place: e2."),
        ({"state": "unknown"}, "Nobody can tell whether the agent got it"),
    ],
)
def test_every_fate_of_a_message_is_a_sentence(
    kandev: Kandev, backend: FakeBackend, answer: Payload, sentence: str
) -> None:
    backend.answers["message.status"] = {**answer, "at": "2026"}

    assert kandev("message", "status", "e1").out.startswith(sentence)
    assert kandev("message", "status", "e1", "--json").json == {**answer, "at": "2026"}


def test_the_fate_of_a_waiting_message_can_be_asked_by_an_end_of_its_id(
    kandev: Kandev, backend: FakeBackend
) -> None:
    def status(payload: Payload) -> Payload:
        if payload["entry_id"] != "entry_abcd":
            raise Refusal("NOT_FOUND", "entry not found")
        return {"state": "queued", "at": "2026"}

    full = a_session(queue={"count": 1, "max": 10, "auto_run": True})
    backend.answers |= {
        "message.status": status,
        "task.list": {"tasks": [a_task()]},
        "task.session.list": {"sessions": [full]},
        "message.queue.get": {"entries": [{"id": "entry_abcd"}]},
    }

    assert "It waits" in kandev("message", "status", "abcd").out
    unknown = kandev("message", "status", "wxyz")
    assert (unknown.code, "No entry 'wxyz' is known" in unknown.err) == (1, True)
    assert "for its whole id" in unknown.err


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


def test_a_list_shows_what_a_question_is_about_and_how_it_ended(kandev: Kandev, backend: FakeBackend) -> None:
    about = {"title": "Storage", "context": "It is kept."}
    settled = {"status": "answered", "by": "user", "answer": "SQLite"}
    kind = {"type": "clarification_request", "content": "Which one?"}
    asked = [a_message(1, **kind, metadata=about), a_message(2, **kind, metadata=about | settled)]
    backend.answers["message.list"] = paged(asked)

    shown = [line.strip() for line in kandev("message", "list", "aa11").out.splitlines()]

    lines = ["Which one?", "Storage", "It is kept."]
    assert shown[1:4] == lines
    assert shown[5:] == [*lines, "answered by user: SQLite"]


@pytest.mark.parametrize(
    ("metadata", "who"),
    [
        ({"queued_by": "user"}, "user"),
        ({"queued_by": "answer"}, "user"),
        ({"queued_by": "agent", "sender_task_id": "task_7"}, "the agent of task_7"),
        (
            {"queued_by": "agent", "sender_task_id": "task_7", "sender_title": "Fix\n\x1b[2Jit"},
            "the agent of Fix [2Jit (task_7)",
        ),
        ({"queued_by": "workflow"}, "workflow"),
        ({"queued_by": "automation"}, "automation"),
    ],
)
def test_a_message_names_who_sent_it(
    kandev: Kandev, backend: FakeBackend, metadata: dict[str, str], who: str
) -> None:
    backend.answers["message.list"] = paged([a_message(1, author_type="user", metadata=metadata)])
    assert kandev("message", "list", "aa11").out.startswith(f"{who}  ")

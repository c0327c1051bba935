"""Sessions, messages, permissions, and the three verbs that end things."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.conftest import OLD_SESSION, SESSION, TASK, Kandev, a_session
from tests.cli.fake_backend import FakeBackend, Payload, Refusal


@pytest.mark.proves("CANCEL-layer-cli")
@pytest.mark.parametrize("named", [SESSION, "cc33", TASK, "aa11"])
def test_a_turn_is_cancelled_by_naming_its_session_or_task(
    kandev: Kandev, backend: FakeBackend, named: str
) -> None:
    backend.answers["agent.cancel"] = {"success": True, "session_id": SESSION}

    ran = kandev("cancel", named)

    assert (ran.code, ran.err) == (0, "")
    assert backend.payloads("agent.cancel") == [{"task_id": TASK, "session_id": SESSION}]


@pytest.mark.proves("CANCEL-layer-cli")
def test_a_cancel_that_did_not_work_is_exit_code_1_and_says_why(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["agent.cancel"] = {"success": False, "session_id": SESSION, "error": "agent not running"}

    people, programs = kandev("cancel", SESSION), kandev("cancel", SESSION, "--json")
    called = kandev("call", "agent.cancel", "{}")

    assert (people.code, people.err) == (1, "kandev: agent not running\n")
    assert (programs.code, programs.json["success"]) == (1, False)
    assert called.code == 0  # for `call` it is a response like any other


def test_an_unknown_name_is_exit_code_1(kandev: Kandev, backend: FakeBackend) -> None:
    ran = kandev("cancel", "nobody")

    assert (ran.code, ran.err) == (
        1,
        "kandev: No session is named 'nobody'; look with `kandev session list`.\n",
    )


def test_a_stop_that_left_a_session_running_is_exit_code_1_and_names_it(
    kandev: Kandev, backend: FakeBackend
) -> None:
    failures = {SESSION: "The database is busy."}
    backend.answers["orchestrator.stop"] = {"success": True, "stopped": [], "details": {"failures": failures}}
    stopped = kandev("stop", "aa11")
    assert stopped.code == 1
    assert f"{SESSION}: The database is busy." in stopped.err


def test_stop_ends_a_task_or_one_session(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers |= {"orchestrator.stop": {"success": True}, "session.stop": {"success": True}}

    assert kandev("stop", "aa11", "--reason", "enough", "--force").code == 0
    assert kandev("stop", "--session", "cc33").code == 0
    assert kandev("session", "stop", SESSION, "--force").code == 0
    assert kandev("stop", "aa11", "--session", SESSION).code == 2

    assert backend.payloads("orchestrator.stop") == [{"task_id": TASK, "reason": "enough", "force": True}]
    assert backend.payloads("session.stop") == [
        {"session_id": SESSION},
        {"session_id": SESSION, "force": True},
    ]


def test_a_task_stands_for_its_open_session_even_if_another_is_primary(
    kandev: Kandev, backend: FakeBackend
) -> None:
    old = a_session(OLD_SESSION, state="COMPLETED", is_primary=True)
    backend.answers["task.session.list"] = {"sessions": [a_session(is_primary=False), old]}

    assert kandev("session", "show", TASK, "--json").json["id"] == SESSION


def test_a_task_without_a_session_says_how_to_start_one(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["task.session.list"] = {"sessions": []}

    ran = kandev("cancel", TASK)

    assert ran.code == 1
    assert f"start one with `kandev session launch {TASK}`" in ran.err


@pytest.mark.proves("CLI-commands")
def test_sessions_are_listed_shown_explained_and_resumed(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers |= {
        "session.explain": {"sentence": "The agent is working.", "phase": "running"},
        "session.recover": {"success": True, "state": "STARTING", "queued": 0},
    }

    assert SESSION in kandev("session", "list", "aa11").out
    assert len(kandev("session", "list", "--json").json["sessions"]) == 2
    assert "RUNNING" in kandev("session", "show", "cc33").out
    assert kandev("session", "explain", "aa11").out.splitlines()[0] == "The agent is working."
    assert "is STARTING" in kandev("session", "recover", "dd44").out
    assert backend.payloads("session.recover") == [{"session_id": OLD_SESSION}]


def test_a_session_is_launched_with_what_was_asked_for(kandev: Kandev, backend: FakeBackend) -> None:
    answer = {
        "success": True,
        "task_id": TASK,
        "session_id": SESSION,
        "state": "STARTING",
        "worktree_path": "/w",
    }
    backend.answers["session.launch"] = answer

    people = kandev("session", "launch", "aa11", "--prompt", "hello", "--agent", "Mock")
    kandev("session", "launch", "aa11", "--intent", "resume", "--session", "dd44")

    assert f"kandev tail {SESSION}" in people.out
    assert "/w" in people.out
    assert backend.payloads("session.launch") == [
        {"task_id": TASK, "prompt": "hello", "agent_profile_id": "p1"},
        {"task_id": TASK, "intent": "resume", "session_id": OLD_SESSION},
    ]


def test_changes_and_diffs_are_shown(kandev: Kandev, backend: FakeBackend) -> None:
    renamed = {"path": "b", "old_path": "a", "status": "renamed", "additions": 1, "deletions": 2}
    backend.answers |= {
        "session.changes": {"files": [renamed]},
        "session.diff": {"diff": "-a\n+b\x1b[0m\n"},
    }

    assert kandev("session", "changes", "aa11").out.splitlines()[1].split() == [
        "renamed",
        "+1",
        "-2",
        "a",
        "→",
        "b",
    ]
    assert kandev("session", "diff", "aa11", "b").out == "-a\n+b[0m\n"
    assert kandev("session", "diff", "aa11", "--json").json == {"diff": "-a\n+b\x1b[0m\n"}
    assert backend.payloads("session.diff")[0] == {"session_id": SESSION, "path": "b"}


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


def a_message(number: int, **members: Any) -> Payload:
    """A line of a transcript."""
    return {
        "id": f"m{number}",
        "author_type": "agent",
        "type": "message",
        "content": f"text {number}",
        **members,
    }


def paged(messages: list[Payload]) -> Callable[[Payload], Payload]:
    """`message.list` over these."""

    def page(payload: Payload) -> Payload:
        ids = [message["id"] for message in messages]
        begin = ids.index(payload["after"]) + 1 if "after" in payload else 0
        return {"messages": messages[begin : begin + payload.get("limit", 100)]}

    return page


def test_messages_are_listed_whole_across_pages(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["message.list"] = paged([a_message(n) for n in range(1200)])

    assert len(kandev("message", "list", "aa11", "--json").json["messages"]) == 1200
    few = kandev("message", "list", "aa11", "--limit", "2", "--after", "m5", "--json").json["messages"]
    assert [message["id"] for message in few] == ["m6", "m7"]
    assert "text 1199" in kandev("message", "list", "aa11").out


def test_the_queue_is_shown_and_an_entry_taken_out(kandev: Kandev, backend: FakeBackend) -> None:
    entry = {"id": "entry_abc", "position": 0, "content": "later", "state": "queued", "queued_by": "person"}
    backend.answers |= {
        "message.queue.get": {"entries": [entry], "count": 1, "max": 10, "auto_run": False},
        "message.queue.remove": {"success": True},
    }

    assert "later" in kandev("message", "queue", "aa11").out
    assert "parked" in kandev("message", "queue", "aa11").out
    assert kandev("message", "remove", "aa11", "abc").code == 0
    assert backend.payloads("message.queue.remove") == [{"session_id": SESSION, "entry_id": "entry_abc"}]
    assert "No entry 'x' waits" in kandev("message", "remove", "aa11", "x").err


def a_request(number: int, request: str, status: str = "pending") -> Payload:
    """A permission request in a transcript."""
    options = [
        {"option_id": "always", "kind": "allow_always", "name": "Always"},
        {"option_id": "once", "kind": "allow_once", "name": "Once"},
        {"option_id": "no", "kind": "reject_once", "name": "No"},
    ]
    metadata = {"request_id": request, "options": options, "status": status}
    return a_message(number, type="permission_request", content="Run it?", metadata=metadata)


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("--allow",), {"option_id": "once"}),
        (("--option", "always"), {"option_id": "always"}),
        (("--reject",), {"rejected": True}),
        (("r2", "--cancel"), {"cancelled": True}),
        (("r2", "--allow"), {"option_id": "once"}),
    ],
)
def test_an_open_permission_is_answered(
    kandev: Kandev, backend: FakeBackend, words: tuple[str, ...], answer: Payload
) -> None:
    requests = [a_request(1, "r1", "selected"), a_message(2), a_request(3, "r2")]
    backend.answers |= {"message.list": paged(requests), "permission.respond": {"success": True}}

    ran = kandev("permission", "answer", "aa11", *words)

    assert (ran.code, ran.err) == (0, "")
    assert backend.payloads("permission.respond") == [{"session_id": SESSION, "request_id": "r2", **answer}]


def test_several_or_no_open_permissions_have_to_be_named(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["message.list"] = paged([a_request(1, "r1"), a_request(2, "r2")])

    assert kandev("permission", "list", "aa11").out.splitlines()[1].split()[0] == "r1"
    assert (
        "2 requests wait for an answer (r1, r2); name one."
        in kandev("permission", "answer", "aa11", "--allow").err
    )
    assert kandev("permission", "answer", "aa11").code == 2

    backend.answers["message.list"] = paged([])
    assert kandev("permission", "list", "aa11").out == "Nothing waits for an answer.\n"
    assert (
        "No request waits for an answer; `kandev permission list` shows those that do."
        in kandev("permission", "answer", "aa11", "--reject").err
    )


def test_an_answer_that_came_too_late_is_told_in_the_backends_words(
    kandev: Kandev, backend: FakeBackend
) -> None:
    def late(_: Payload) -> Payload:
        raise Refusal("NOT_FOUND", "There is no open request r9.")

    backend.answers["permission.respond"] = late
    ran = kandev("permission", "answer", SESSION, "r9", "--reject")

    assert (ran.code, ran.err) == (1, "kandev: There is no open request r9.\n")

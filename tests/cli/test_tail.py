"""`kandev tail` shows a session as it happens, each piece once, to its end."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.cli.conftest import SESSION, Kandev, a_session
from tests.cli.fake_backend import FakeBackend, Payload, Play, running

Frame = tuple[str, Payload]


def message(id: str, content: str, type: str = "message", author: str = "agent", **metadata: Any) -> Payload:
    """A line of the transcript."""
    return {"id": id, "author_type": author, "type": type, "content": content, "metadata": metadata}


def frames(*told: Frame, first: int = 11) -> list[Frame]:
    """Notifications with their sequence numbers."""
    return [
        (action, {"session_id": SESSION, "seq": first + i, **what}) for i, (action, what) in enumerate(told)
    ]


def added(content: Payload) -> Frame:
    """A new message."""
    return "session.message.added", {"message": content}


def grown(id: str, offset: int, text: str) -> Frame:
    """More text of a message."""
    return "session.message.updated", {"message_id": id, "offset": offset, "append": text}


def became(state: str, old: str = "RUNNING") -> Frame:
    """The session's state changed."""
    return "session.state_changed", {"old_state": old, "new_state": state}


def snapshot(*messages: Payload, state: str = "RUNNING", seq: int = 10, **session: Any) -> Payload:
    """The answer to a subscription."""
    return {"session": a_session(state=state, **session), "messages": list(messages), "seq": seq}


@pytest.mark.proves("CLI-tail", "CANCEL-flow-5-client-sees")
def test_a_session_is_followed_live_to_its_end(kandev: Kandev, backend: FakeBackend) -> None:
    told = frames(
        added(message("m2", "Hel")),
        grown("m2", 3, "lo, wor"),
        grown("m2", 10, "ld"),
        added(message("m3", "hmm", "thought")),
        added(message("m4", "Run tests", "tool_call", status="pending")),
        ("session.message.updated", {"message": message("m4", "Run tests", "tool_call", status="completed")}),
        ("session.cancellation_changed", {"cancellation_pending": True}),
        ("session.turn.completed", {"stop_reason": "cancelled", "cause": "user"}),
        added(message("m5", "The turn was cancelled by a person.", "status", "system")),
        became("CANCELLED"),
    )
    backend.plays = [Play(snapshot(message("m1", "Do it", author="user")), told)]

    ran = kandev("tail", "aa11")

    assert ran.code == 0
    assert ran.out.splitlines() == [
        "you: Do it",
        "— RUNNING",
        "agent: Hello, world",
        "thinking: hmm",
        "tool: Run tests [pending]",
        "tool: Run tests [completed]",
        "· cancelling…",
        "— turn ended: cancelled (user)",
        "· The turn was cancelled by a person.",
        "— RUNNING → CANCELLED",
    ]
    assert backend.subscribed == [{"session_id": SESSION}]


@pytest.mark.proves("CLI-tail")
@pytest.mark.parametrize("word", ["--until-idle", "--once"])
def test_it_can_end_when_the_session_waits_for_input(kandev: Kandev, backend: FakeBackend, word: str) -> None:
    told = frames(added(message("m1", "done")), became("WAITING_FOR_INPUT"))
    backend.plays = [Play(snapshot(), told), Play(snapshot(state="WAITING_FOR_INPUT"))]

    assert kandev("tail", SESSION, word).out.splitlines()[1] == "agent: done"
    assert kandev("tail", SESSION, word).out == "— WAITING_FOR_INPUT\n"


def test_it_takes_a_queue_that_waits_behind_a_question_for_idle(kandev: Kandev, backend: FakeBackend) -> None:
    waiting = a_session(
        state="WAITING_FOR_INPUT", waiting_for="question", queue={"count": 1, "auto_run": True}
    )
    told = frames(("session.updated", {"session": waiting}))
    backend.plays = [Play(snapshot(), told)]

    assert kandev("tail", SESSION, "--until-idle").out.splitlines()[-1] == "— RUNNING → WAITING_FOR_INPUT"


def test_it_does_not_take_a_queue_that_runs_on_for_idle(kandev: Kandev, backend: FakeBackend) -> None:
    told = frames(
        ("message.queue.status_changed", {"count": 1, "auto_run": True}),
        became("WAITING_FOR_INPUT"),
        became("RUNNING", "WAITING_FOR_INPUT"),
        ("message.queue.status_changed", {"count": 0, "auto_run": True}),
        added(message("m1", "second")),
        ("message.queue.status_changed", {"count": 1, "auto_run": False, "parked_reason": "cancelled"}),
        became("WAITING_FOR_INPUT"),
    )
    backend.plays = [Play(snapshot(), told)]

    lines = kandev("tail", SESSION, "--until-idle").out.splitlines()

    assert "agent: second" in lines
    assert "· 1 waiting in the queue, parked: cancelled" in lines


@pytest.mark.proves("CLI-tail")
def test_a_permission_is_shown_with_how_to_answer_it(kandev: Kandev, backend: FakeBackend) -> None:
    options = [{"option_id": "once", "name": "Allow once"}]
    asked = message(
        "m1", "Delete all?", "permission_request", request_id="r1", options=options, status="pending"
    )
    settled = {**asked, "metadata": {**asked["metadata"], "status": "selected", "option_id": "once"}}
    told = frames(
        added(asked), ("session.message.updated", {"message": settled}), became("WAITING_FOR_INPUT")
    )
    backend.plays = [Play(snapshot(), told)]

    lines = kandev("tail", SESSION, "--once").out.splitlines()

    assert lines[1:5] == [
        "permission: Delete all?",
        "    once  Allow once",
        f"    Answer: kandev permission answer {SESSION} r1 --option OPTION  (or --allow, --reject)",
        "permission: Delete all?: selected (once)",
    ]


def test_a_question_is_shown_with_how_to_answer_it(kandev: Kandev, backend: FakeBackend) -> None:
    asked = message(
        "m1",
        "Which one?",
        "clarification_request",
        options=[{"label": "SQLite"}],
        title="Storage",
        context="It is kept\nfor years.",
    )
    answered = {"status": "answered", "by": "user", "answer": "SQLite"}
    settled = {**asked, "metadata": {**asked["metadata"], **answered}}
    told = frames(
        added(asked), ("session.message.updated", {"message": settled}), became("WAITING_FOR_INPUT")
    )
    backend.plays = [Play(snapshot(), told)]

    assert kandev("tail", SESSION, "--once").out.splitlines()[1:8] == [
        "question: Which one?",
        "    Storage",
        "    It is kept",
        "    for years.",
        "    1  SQLite",
        f"    Answer: kandev answer {SESSION} TEXT  (or --option NUMBER, or --reject)",
        "question: Which one?: answered by user: SQLite",
    ]


def test_a_question_without_options_does_not_offer_any(kandev: Kandev, backend: FakeBackend) -> None:
    asked = message("m1", "Which one?", "clarification_request")
    backend.plays = [Play(snapshot(), frames(added(asked), became("WAITING_FOR_INPUT")))]

    assert (
        f"    Answer: kandev answer {SESSION} TEXT  (or --reject)\n" in kandev("tail", SESSION, "--once").out
    )


@pytest.mark.parametrize("status", ["selected", "rejected"])
def test_a_permission_that_was_rejected_reads_so(kandev: Kandev, backend: FakeBackend, status: str) -> None:
    options = [{"option_id": "no", "name": "No", "kind": "reject_once"}]
    settled = message(
        "m1", "Delete all?", "permission_request", options=options, status=status, option_id="no"
    )
    backend.plays = [Play(snapshot(settled, state="COMPLETED"))]

    assert kandev("tail", SESSION).out.splitlines()[0] == "permission: Delete all?: rejected"


@pytest.mark.proves("CLI-tail")
def test_it_goes_on_where_it_was_after_the_backend_restarted_elsewhere(
    kandev: Kandev, backend: FakeBackend
) -> None:
    with running(FakeBackend(token="another")) as restarted:
        before = frames(added(message("m1", "one ")))
        # The replay begins with what was seen already, and must not show it twice.
        after = [*before, *frames(grown("m1", 4, "two"), became("COMPLETED"), first=12)]
        move = Play(snapshot(), before, drop=True, before_drop=lambda: restarted.note(kandev.home))
        backend.plays = [move]
        restarted.plays = [Play({"seq": 13, "reload": False}, after)]

        ran = kandev("tail", SESSION)

    assert ran.out.splitlines() == ["— RUNNING", "agent: one ", "agent: two", "— RUNNING → COMPLETED"]
    assert "the connection is lost" in ran.err
    assert "connected again" in ran.err
    assert restarted.subscribed == [{"session_id": SESSION, "since_seq": 11}]


def test_a_gap_that_is_no_longer_kept_is_filled_from_the_snapshot(
    kandev: Kandev, backend: FakeBackend
) -> None:
    known, missed = message("m1", "one two"), message("m2", "three")
    reload = {**snapshot(known, missed, seq=40), "reload": True}
    backend.plays = [
        Play(snapshot(), frames(added(message("m1", "one"))), drop=True),
        Play(reload, frames(became("COMPLETED"), first=41)),
    ]

    out = kandev("tail", SESSION).out.splitlines()

    assert out == ["— RUNNING", "agent: one", "agent:  two", "agent: three", "— RUNNING → COMPLETED"]


def test_a_backend_that_does_not_come_back_is_said(kandev: Kandev, backend: FakeBackend) -> None:
    away = kandev.home / "backend.json"
    backend.plays = [Play(snapshot(), drop=True, before_drop=away.unlink)]

    ran = kandev("tail", SESSION, "--reconnect", "0.2")

    assert ran.code == 1
    assert "The backend did not come back within 0.2 s." in ran.err


def test_only_the_last_earlier_messages_are_shown(kandev: Kandev, backend: FakeBackend) -> None:
    messages = [message(f"m{n}", f"text {n}") for n in range(50)]
    backend.plays = [Play(snapshot(*messages, state="COMPLETED")) for _ in range(2)]

    assert kandev("tail", SESSION, "-n", "2").out.splitlines()[:2] == ["agent: text 48", "agent: text 49"]
    assert kandev("tail", SESSION, "-n", "0").out == "— COMPLETED\n"


def test_a_failed_session_is_exit_code_1(kandev: Kandev, backend: FakeBackend) -> None:
    error = ("session.agentctl_error", {"error": "There is no command frobnicate."})
    backend.plays = [Play(snapshot(state="STARTING"), frames(error, became("FAILED", "STARTING")))]

    ran = kandev("tail", SESSION)

    assert (ran.code, ran.out.splitlines()[1]) == (1, "error: There is no command frobnicate.")


def test_programs_get_every_event_as_a_line_of_json(kandev: Kandev, backend: FakeBackend) -> None:
    backend.plays = [Play(snapshot(), frames(added(message("m1", "hi\x1b")), became("COMPLETED")))]

    events = [json.loads(line) for line in kandev("tail", SESSION, "--json").out.splitlines()]

    assert [event["action"] for event in events] == [
        "snapshot",
        "session.message.added",
        "session.state_changed",
    ]
    assert events[1]["payload"]["message"]["content"] == "hi\x1b"


def test_what_an_agent_says_does_not_move_the_cursor(kandev: Kandev, backend: FakeBackend) -> None:
    backend.plays = [Play(snapshot(message("m1", "a\x1b[2Jb\rc\x9b0m"), state="COMPLETED"))]

    assert kandev("tail", SESSION).out.splitlines()[:2] == ["agent: a[2Jb", "c0m"]


def test_a_session_that_goes_away_while_it_is_followed_ends_it(kandev: Kandev, backend: FakeBackend) -> None:
    backend.plays = [
        Play(snapshot(), frames(("session.deleted", {}))),
        Play({"code": "NOT_FOUND", "message": "There is no session."}),
    ]

    assert "the session was deleted" in kandev("tail", SESSION).out
    gone = kandev("tail", SESSION)
    assert (gone.code, gone.err) == (1, "kandev: There is no session.\n")


def test_a_wrong_token_is_said_at_once(
    kandev: Kandev, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KANDEV_TOKEN", "wrong")

    ran = kandev("tail", SESSION)

    assert (ran.code, ran.err) == (1, "kandev: Show the access token.\n")


@pytest.mark.proves("CLI-tail", "BAD-no-traceback")
def test_ctrl_c_leaves_cleanly(kandev: Kandev, backend: FakeBackend) -> None:
    backend.plays = [Play(snapshot(message("m1", "working")))]

    with kandev.start("tail", SESSION, PYTHONUNBUFFERED="1") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "agent: working\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)

    assert (process.returncode, err) == (130, "")

"""The three verbs that end things, and what they say came of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import SESSION, TASK, Kandev, a_session
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


def cancelling(backend: FakeBackend, before: Payload, after: Payload) -> None:
    """A cancel that succeeds, and the session before and after it."""
    seen = iter([before, after])
    backend.answers |= {
        "session.get": lambda _: next(seen),
        "agent.cancel": {"success": True, "session_id": SESSION},
    }


def a_parked(count: int, state: str, **members: Any) -> Payload:
    """A session behind a cancel that left messages waiting."""
    queue = {"count": count, "max": 10, "auto_run": False}
    return a_session(state=state, queue=queue, parked_reason="cancelled by a person", **members)


RESUME = f"`kandev queue resume {SESSION}`"
TOO = f"and so does {RESUME}"
RELEASE = "parked; the next `kandev message send` releases"


@pytest.mark.proves("CANCEL-layer-cli")
@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            a_session(state="WAITING_FOR_INPUT"),
            a_session(state="WAITING_FOR_INPUT"),
            "No turn was running; nothing was cancelled.",
        ),
        (
            a_parked(2, "WAITING_FOR_INPUT", cancellation_revision=2),
            a_parked(2, "WAITING_FOR_INPUT", cancellation_revision=2),
            "No turn was running; nothing was cancelled.",
        ),
        (
            a_session(cancellation_revision=0),
            a_session(state="WAITING_FOR_INPUT", cancellation_revision=2),
            "Turn cancelled; the session takes a new prompt.",
        ),
        (
            a_session(cancellation_revision=0),
            a_parked(2, "WAITING_FOR_INPUT", cancellation_revision=2),
            f"Turn cancelled; the session takes a new prompt. 2 messages wait {RELEASE} them, {TOO}.",
        ),
        (
            a_session(queue={"count": 1, "auto_run": False}, parked_reason="auto-run was switched off"),
            a_parked(1, "WAITING_FOR_INPUT", cancellation_revision=2),
            f"Turn cancelled; the session takes a new prompt. 1 message waits parked; {RESUME} releases it.",
        ),
        (
            a_session(cancellation_revision=0),
            a_session(state="RUNNING", cancellation_revision=2),
            "Turn cancelled; the session is at work on what came next.",
        ),
        (
            a_session(cancellation_revision=0),
            a_session(state="CANCELLED", cancellation_revision=2),
            "Turn cancelled; the session is CANCELLED.",
        ),
        (
            a_session(state="STARTING"),
            a_parked(1, "STARTING"),
            f"Cancelled before it began: the agent still starts. 1 message waits {RELEASE} it, {TOO}.",
        ),
        (
            a_session(state="STARTING"),
            a_session(state="STARTING"),
            "No turn was running; nothing was cancelled.",
        ),
    ],
)
def test_a_cancel_says_what_came_of_it(
    kandev: Kandev, backend: FakeBackend, before: Payload, after: Payload, sentence: str
) -> None:
    cancelling(backend, before, after)

    ran = kandev("cancel", SESSION)

    assert (ran.code, ran.out, ran.err) == (0, f"{sentence}\n", "")


def test_a_cancel_for_programs_is_the_answer_and_nothing_else(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["agent.cancel"] = {"success": True, "session_id": SESSION}

    assert kandev("cancel", SESSION, "--json").json == {"success": True, "session_id": SESSION}


def test_a_cancel_that_is_still_under_way_says_what_happens_next(
    kandev: Kandev, backend: FakeBackend
) -> None:
    error = "cancel timed out, still under way"
    backend.answers["agent.cancel"] = {"success": False, "session_id": SESSION, "error": error}

    people, programs = kandev("cancel", SESSION), kandev("cancel", SESSION, "--json")

    assert (people.code, people.out) == (1, "")
    assert f"{error}. A process that does not obey is ended and replaced;" in people.err
    assert f"`kandev session explain {SESSION}`" in people.err
    assert (programs.code, programs.json["error"]) == (1, error)


@pytest.mark.parametrize("words", [("stop", TASK), ("stop", "--session", SESSION), ("session", "stop", TASK)])
def test_a_stop_of_what_does_not_run_says_so(
    kandev: Kandev, backend: FakeBackend, words: tuple[str, ...]
) -> None:
    def nothing(_: Payload) -> Payload:
        raise Refusal("NOT_FOUND", "execution not found")

    over = a_session(state="CANCELLED")
    backend.answers |= {
        "orchestrator.stop": nothing,
        "session.stop": nothing,
        "task.session.list": {"sessions": [over]},
        "session.get": lambda p: over if p["session_id"] == SESSION else nothing(p),
    }
    people, programs = kandev(*words), kandev(*words, "--json")
    over["execution"] = {"id": "x", "status": "ending"}
    ending = kandev(*words)

    assert (people.code, people.err) == (1, "kandev: Nothing of it runs: there is nothing to stop.\n")
    assert (ending.code, f"not gone yet; see `kandev session explain {SESSION}`" in ending.err) == (1, True)
    assert programs.code == 1
    assert json.loads(programs.err) == {"code": "NOT_FOUND", "message": "execution not found"}

"""Permission requests: listed and answered."""

from __future__ import annotations

import pytest

from tests.cli.conftest import OLD_SESSION, SESSION, TASK, Kandev, a_session
from tests.cli.fake_backend import FakeBackend, Payload, Refusal
from tests.cli.transcripts import a_message, a_request, paged


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
    assert kandev("permission", "list", "aa11").out == "No request for permission waits.\n"
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


@pytest.mark.parametrize(
    "words", [("--allow", "--reject"), ("--reject", "--cancel"), ("--option", "once", "--allow"), ()]
)
def test_one_answer_is_given_and_not_several(
    kandev: Kandev, backend: FakeBackend, words: tuple[str, ...]
) -> None:
    ran = kandev("permission", "answer", "aa11", *words)

    assert (ran.code, backend.asked) == (2, [])
    assert "Give one of --option, --allow, --reject and --cancel." in ran.err


def test_a_task_stands_for_the_session_that_asks(kandev: Kandev, backend: FakeBackend) -> None:
    asking = a_session(OLD_SESSION, is_primary=False, waiting_for="permission")
    backend.answers |= {
        "task.session.list": {"sessions": [a_session(), asking]},
        "message.list": paged([a_request(1, "r1")]),
        "permission.respond": {"success": True},
    }

    assert kandev("permission", "answer", TASK, "--reject").code == 0
    assert backend.payloads("permission.respond")[0]["session_id"] == OLD_SESSION


def test_a_list_without_requests_tells_of_an_open_question(kandev: Kandev, backend: FakeBackend) -> None:
    asking = a_session(questions=[{"pending_id": "p1", "prompt": "Which one?"}])
    backend.answers |= {"message.list": paged([]), "session.get": asking}

    said = kandev("permission", "list", SESSION).out.splitlines()

    assert said == [
        "No request for permission waits.",
        f"A question is open; `kandev answer {SESSION}` shows it.",
    ]

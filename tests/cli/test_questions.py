"""Questions of agents: shown and answered."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.conftest import OLD_SESSION, SESSION, TASK, Kandev, a_session
from tests.cli.fake_backend import FakeBackend, Payload

OPTIONS = [{"label": "PostgreSQL", "description": "the large one"}, {"label": "SQLite"}]


def a_question(id: str = "pending_abcd", **members: Any) -> Payload:
    return {
        "pending_id": id,
        "prompt": "Which database?",
        "options": OPTIONS,
        "asked_at": "2026-01-31T09:15:00Z",
        **members,
    }


def asking(backend: FakeBackend, *questions: Payload) -> None:
    """One of the task's sessions, not the primary, has these questions."""
    asker = a_session(OLD_SESSION, is_primary=False, questions=list(questions))
    backend.answers["task.session.list"] = {"sessions": [a_session(), asker]}
    backend.answers["clarification.respond"] = {"success": True}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("use both",), {"custom_text": "use both"}),
        (("--option", "sqlite"), {"selected_options": ["SQLite"]}),
        (("--option", "1"), {"selected_options": ["PostgreSQL"]}),
        (
            ("--option", "1", "--option", "2", "both, then"),
            {"selected_options": ["PostgreSQL", "SQLite"], "custom_text": "both, then"},
        ),
        (("yes", "--question", "abcd"), {"custom_text": "yes"}),
    ],
)
def test_the_open_question_of_a_task_is_answered(
    kandev: Kandev, backend: FakeBackend, words: tuple[str, ...], told: Payload
) -> None:
    asking(backend, a_question())

    ran = kandev("answer", TASK, *words)

    assert (ran.code, ran.out, ran.err) == (0, "Question pending_abcd is answered.\n", "")
    assert backend.payloads("clarification.respond") == [
        {"pending_id": "pending_abcd", "answers": [{"question_id": "pending_abcd", **told}]}
    ]


def test_a_question_can_be_rejected(kandev: Kandev, backend: FakeBackend) -> None:
    asking(backend, a_question())

    assert kandev("answer", TASK, "--reject").out == "Question pending_abcd is rejected.\n"
    assert backend.payloads("clarification.respond") == [
        {"pending_id": "pending_abcd", "answers": [], "rejected": True}
    ]
    assert kandev("answer", TASK, "yes", "--reject").code == 2


def test_without_an_answer_the_question_is_shown_with_its_options(
    kandev: Kandev, backend: FakeBackend
) -> None:
    asking(backend, a_question())

    ran = kandev("answer", TASK)

    assert ran.code == 0
    assert ran.out.splitlines()[:3] == ["Which database?", "  1  PostgreSQL: the large one", "  2  SQLite"]
    assert f"`kandev answer {OLD_SESSION} TEXT`" in ran.out
    assert kandev("answer", TASK, "--json").json == {"questions": [a_question()]}
    assert backend.payloads("clarification.respond") == []


def test_what_cannot_be_meant_is_a_sentence_and_answers_nothing(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["clarification.respond"] = {"success": True}
    assert kandev("answer", SESSION).out == "No question is open.\n"
    assert "No question is open: there is nothing to answer." in kandev("answer", SESSION, "yes").err

    asking(backend, a_question(), a_question("pending_efgh", options=[]))
    several = kandev("answer", TASK, "yes")
    assert "2 questions are open (pending_abcd, pending_efgh); name one with --question." in several.err
    assert "No question 'wxyz' is open" in kandev("answer", TASK, "yes", "--question", "wxyz").err
    odd = kandev("answer", TASK, "--question", "abcd", "--option", "3")
    assert "offers no option '3': choose one of 1 (PostgreSQL), 2 (SQLite), or say it as TEXT." in odd.err
    free = kandev("answer", TASK, "--question", "efgh", "--option", "1")
    assert "offers no option '1': say it as TEXT." in free.err
    assert backend.payloads("clarification.respond") == []


def test_a_question_is_shown_with_its_title_and_context(kandev: Kandev, backend: FakeBackend) -> None:
    asking(backend, a_question(title="Storage", context="It is kept\nfor years.", options=[]))

    out = kandev("answer", TASK).out

    assert out.splitlines()[:4] == ["Storage", "Which database?", "It is kept", "for years."]
    assert "--option" not in out

"""Sessions: launched, shown, resumed, reviewed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import OLD_SESSION, SESSION, TASK, Kandev, a_session, a_task
from tests.cli.fake_backend import FakeBackend


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
    kandev("session", "launch", "aa11", "--intent", "resume", "--session", TASK)

    assert f"kandev tail {SESSION}" in people.out
    assert "/w" in people.out
    assert backend.payloads("session.launch") == [
        {"task_id": TASK, "prompt": "hello", "agent_profile_id": "p1"},
        {"task_id": TASK, "intent": "resume", "session_id": OLD_SESSION},
        {"task_id": TASK, "intent": "resume", "session_id": OLD_SESSION},
    ]


@pytest.mark.parametrize(
    ("description", "told", "said"),
    [
        ("Do it\nwell\n", "Do it\nwell", "Its first message is the task's description."),
        ("", "Fix the login", "Its first message is the task's title."),
    ],
)
def test_the_first_session_begins_with_what_the_task_says(
    kandev: Kandev, backend: FakeBackend, description: str, told: str, said: str
) -> None:
    backend.answers |= {
        "task.get": a_task(description=description),
        "task.session.list": {"sessions": [a_session(state="CREATED")]},
        "session.launch": {"success": True, "session_id": SESSION, "state": "STARTING"},
    }

    ran = kandev("session", "launch", TASK)
    silent = kandev("session", "launch", TASK, "--no-prompt")

    assert said in ran.out.splitlines()
    assert f"`kandev message send {SESSION} TEXT`" in silent.out
    assert backend.payloads("session.launch") == [{"task_id": TASK, "prompt": told}, {"task_id": TASK}]
    assert kandev("session", "launch", TASK, "--no-prompt", "--prompt", "x").code == 2


def test_a_further_session_is_told_nothing_by_itself(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["session.launch"] = {"success": True, "session_id": SESSION, "state": "STARTING"}

    ran = kandev("session", "launch", TASK)

    assert "It was told nothing" in ran.out
    assert backend.payloads("session.launch") == [{"task_id": TASK}]


def test_an_empty_diff_is_said_and_an_unknown_path_too(
    kandev: Kandev, backend: FakeBackend, tmp_path: Path
) -> None:
    (tmp_path / "same.txt").write_text("same")
    backend.answers |= {
        "session.diff": {"diff": ""},
        "session.get": a_session(worktree_path=str(tmp_path)),
    }

    whole, same = kandev("session", "diff", SESSION), kandev("session", "diff", SESSION, "same.txt")
    missing = kandev("session", "diff", SESSION, "nowhere.txt")

    assert (whole.code, whole.out, whole.err) == (0, "", "No changes against the base.\n")
    assert (same.code, same.err) == (0, "No changes against the base in same.txt.\n")
    assert (missing.code, "There is no 'nowhere.txt'" in missing.err) == (1, True)
    assert kandev("session", "diff", SESSION, "nowhere.txt", "--json").json == {"diff": ""}


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

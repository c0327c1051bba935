"""Tasks, repositories, workspaces, profiles and agents, for people and for programs."""

from __future__ import annotations

import io
import json
import os
import pty
import sys
from pathlib import Path
from typing import Any

import pytest

from kandev.cli import naming
from kandev.cli.failures import Failed
from tests.cli.conftest import OTHER_TASK, SESSION, TASK, Kandev, a_task
from tests.cli.fake_backend import FakeBackend, Payload, Refusal
from tests.docs.generated import command_paths


@pytest.mark.proves("CLI-commands")
def test_tasks_are_listed_as_a_table_and_as_json(kandev: Kandev, backend: FakeBackend) -> None:
    people, programs = kandev("task", "list"), kandev("task", "list", "--json")

    lines = people.out.splitlines()
    assert lines[0].split() == ["ID", "STATE", "STEP", "TITLE"]
    assert lines[1].split() == [TASK, "IN_PROGRESS", "In", "Progress", "Fix", "the", "login"]
    assert [task["id"] for task in programs.json["tasks"]] == [TASK, OTHER_TASK]
    assert backend.payloads("task.list")[0] == {"include_archived": False, "limit": 1000}


def test_a_long_list_is_read_page_by_page(kandev: Kandev, backend: FakeBackend) -> None:
    def pages(payload: Payload) -> Payload:
        if "cursor" not in payload:
            return {"tasks": [a_task("task_1")], "next_cursor": "task_1"}
        assert payload["cursor"] == "task_1"
        return {"tasks": [a_task("task_2")]}

    backend.answers["task.list"] = pages

    assert [task["id"] for task in kandev("task", "list", "--json").json["tasks"]] == ["task_1", "task_2"]


def test_a_task_is_created_on_a_repository_and_started(
    kandev: Kandev, backend: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend.answers["repository.create"] = {"id": "r1"}
    backend.answers["task.create"] = {"task": a_task(), "session_id": SESSION}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("Do it\nwell\n"))

    words = (
        "--repo",
        "shop",
        "--base",
        "dev",
        "--agent",
        "mock",
        "--prompt",
        "-",
        "--start",
        "--parent",
        "bb22",
    )
    ran = kandev("task", "create", "Fix the login", *words)

    assert ran.code == 0
    assert f"kandev tail {SESSION}" in ran.out
    assert backend.payloads("repository.create") == [
        {"workspace_id": "w1", "local_path": str(tmp_path / "shop")}
    ]
    assert backend.payloads("task.create") == [
        {
            "workspace_id": "w1",
            "workflow_id": "f1",
            "title": "Fix the login",
            "description": "Do it\nwell",
            "agent_profile_id": "p1",
            "parent_id": OTHER_TASK,
            "start_agent": True,
            "repositories": [{"repository_id": "r1", "base_branch": "dev"}],
        }
    ]


def test_a_repository_that_is_there_already_is_used(kandev: Kandev, backend: FakeBackend) -> None:
    def known(_: Payload) -> Payload:
        raise Refusal("CONFLICT", "It is there already.", repository_id="r9")

    backend.answers["repository.create"] = known
    backend.answers["task.create"] = {"task": a_task()}

    assert kandev("task", "create", "x", "--repo", "/shop").code == 0
    assert backend.payloads("task.create")[0]["repositories"] == [{"repository_id": "r9"}]


def test_a_task_whose_agent_did_not_start_is_said_to_exist(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["task.create"] = {"task": a_task(), "start_error": "There is no command frobnicate."}

    ran = kandev("task", "create", "x", "--start")

    assert ran.code == 1
    assert f"Task {TASK} created." in ran.out
    assert "its agent was not started: There is no command frobnicate." in ran.err


@pytest.mark.parametrize(
    ("words", "action", "payload"),
    [
        (("move", "aa11", "done"), "task.move", {"id": TASK, "workflow_step_id": "s2"}),
        (
            ("move", TASK, "s2", "--position", "0"),
            "task.move",
            {"id": TASK, "workflow_step_id": "s2", "position": 0},
        ),
        (("archive", "aa11"), "task.archive", {"id": TASK}),
        (("archive", "aa11", "--undo"), "task.unarchive", {"id": TASK}),
        (("delete", "aa11", "--yes"), "task.delete", {"id": TASK}),
        (("state", "aa11", "review"), "task.state", {"id": TASK, "state": "REVIEW"}),
    ],
)
def test_a_task_is_changed(
    kandev: Kandev, backend: FakeBackend, words: tuple[str, ...], action: str, payload: Payload
) -> None:
    backend.answers[action] = {"success": True}

    ran = kandev("task", *words)

    assert (ran.code, backend.payloads(action)) == (0, [payload])
    assert TASK in ran.out
    assert kandev("task", *words, "--json").json["success"] is True


@pytest.mark.parametrize(
    ("pending", "step", "said"),
    [
        (None, "Done", "is in Done."),
        (None, "In Progress", "was in In Progress already."),
        (
            {"workflow_step_id": "s2"},
            "In Progress",
            "was in In Progress already; the move that waited for the end of the turn is withdrawn.",
        ),
    ],
)
def test_a_move_says_what_it_changed(
    kandev: Kandev, backend: FakeBackend, pending: Payload | None, step: str, said: str
) -> None:
    backend.answers |= {"task.move": {"success": True}, "task.get": a_task(pending_move=pending)}

    assert kandev("task", "move", TASK, step).out == f"Task {TASK} {said}\n"


def test_a_task_is_shown_with_its_sessions(kandev: Kandev, backend: FakeBackend) -> None:
    people, programs = kandev("task", "show", "aa11"), kandev("task", "show", "aa11", "--json")

    assert "Fix the login" in people.out
    assert SESSION in people.out
    assert [session["name"] for session in programs.json["sessions"]] == ["first", "old"]


@pytest.mark.parametrize(
    ("named", "code", "sentence"),
    [
        (TASK, 0, ""),
        ("aa11", 0, ""),
        ("06ekq3d4aaaaaaaaaaaaaaaa", 0, ""),
        ("06ekq", 1, "names 2 of the tasks"),
        ("task_", 1, "names 2 of the tasks"),
        ("nothing", 1, "No task is named 'nothing'; look with `kandev task list`."),
        ("a11", 1, "No task is named 'a11'; look with `kandev task list`."),
    ],
)
def test_an_id_is_named_by_any_unique_end(
    kandev: Kandev, backend: FakeBackend, named: str, code: int, sentence: str
) -> None:
    ran = kandev("task", "show", named)

    assert ran.code == code
    assert sentence in ran.err


@pytest.mark.parametrize("kind", ["task", "session", "workspace", "workflow", "step", "profile"])
def test_a_name_that_nothing_has_leads_to_a_list_that_exists(kind: str) -> None:
    with pytest.raises(Failed) as failed:
        naming.pick(kind, "nothing", [])

    words = failed.value.message.partition("`kandev ")[2].partition("`")[0].split()
    assert tuple(words) in set(command_paths())


def test_a_start_that_failed_is_seen_in_the_list_and_on_the_task(
    kandev: Kandev, backend: FakeBackend
) -> None:
    why = "The command frobnicate was not found. " + "x" * 200
    failed = a_task(error=why)
    backend.answers |= {"task.list": {"tasks": [failed, a_task(OTHER_TASK)]}, "task.get": failed}

    listed, shown = kandev("task", "list").out.splitlines(), kandev("task", "show", TASK).out
    seen = on_a_terminal(kandev, "task", "list", NO_COLOR="1").splitlines()

    assert listed[0].split() == ["ID", "STATE", "STEP", "TITLE", "NOTE"]
    assert listed[1].endswith(f"start failed: {why}")
    assert listed[2].endswith("Fix the login")
    assert f"start failed: {why}" in shown.splitlines()
    assert seen[1].rstrip().endswith("…") and "start failed: The command" in seen[1]
    assert len(seen) == 3


def test_a_task_is_not_deleted_when_nobody_can_be_asked(
    kandev: Kandev, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))

    ran = kandev("task", "delete", TASK)

    assert (ran.code, backend.payloads("task.delete")) == (2, [])
    assert "--yes" in ran.err


def test_a_task_that_was_only_created_says_how_to_start_it(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["task.create"] = {"task": a_task()}

    said = kandev("task", "create", "x").out.splitlines()

    assert said[1] == f"Start an agent on it with `kandev session launch {TASK}`."


def test_repositories_and_workspaces_are_added_and_listed(kandev: Kandev, backend: FakeBackend) -> None:
    shop = {"id": "r1", "name": "shop", "default_branch": "main", "local_path": "/shop"}
    backend.answers |= {
        "repository.create": shop,
        "repository.list": {"repositories": [shop]},
        "workspace.create": {"id": "w2", "name": "Two"},
    }

    assert "shop (r1) added" in kandev("repository", "add", "/shop").out
    assert kandev("repository", "list", "--workspace", "default").out.splitlines()[1].split()[-1] == "/shop"
    assert kandev("repository", "list", "--json").json == {"repositories": [shop]}
    assert "w2" in kandev("workspace", "create", "Two").out
    assert kandev("workspace", "list", "--json").json["workspaces"][0]["name"] == "Default"
    flow = kandev("workflow", "list").out.splitlines()[1].split(maxsplit=2)
    assert flow == ["f1", "Kanban", "In Progress → Done"]
    assert kandev("workflow", "list", "--json").json["workflows"][0]["steps"][1]["id"] == "s2"
    assert "No workspace is named 'x'" in kandev("workflow", "list", "--workspace", "x").err
    assert "No workspace is named 'x'" in kandev("repository", "list", "--workspace", "x").err


def test_a_profile_is_created_from_a_command_with_its_own_options(
    kandev: Kandev, backend: FakeBackend
) -> None:
    backend.answers["agent.profile.create"] = {"id": "p2"}

    ran = kandev("profile", "create", "Mine", "--env", "A=b=c", "--", "my-agent", "--acp", "-x")
    wrong = kandev("profile", "create", "Mine", "--env", "A", "--", "my-agent")

    assert ran.code == 0
    assert backend.payloads("agent.profile.create") == [
        {"name": "Mine", "command": ["my-agent", "--acp", "-x"], "protocol": "acp", "env": {"A": "b=c"}}
    ]
    assert (wrong.code, "NAME=VALUE" in wrong.err) == (2, True)
    assert kandev("profile", "list", "--json").json["profiles"][0]["name"] == "Mock"
    assert kandev("profile", "show", "mock").code == 0


@pytest.mark.proves("CLI-agents")
def test_agents_are_listed_with_what_is_here_and_how_to_get_the_others(
    kandev: Kandev, backend: FakeBackend
) -> None:
    found = {
        "name": "opencode",
        "found": True,
        "version": "1.2",
        "command": ["/bin/opencode", "acp"],
        "install": "x",
    }
    absent = {
        "name": "gemini",
        "found": False,
        "command": ["gemini"],
        "install": "npm install -g gem",
        "login": "Go.",
    }
    backend.answers["agent.list"] = {"agents": [found, absent]}

    people, programs = kandev("agents"), kandev("agents", "--json")

    here, others = people.out.split("\n\n")
    assert here.splitlines()[1].split() == ["opencode", "1.2", "/bin/opencode", "acp"]
    assert "npm install -g gem" in others
    assert programs.json["agents"] == [found, absent]


@pytest.mark.proves("CLI-agents")
def test_agents_are_looked_for_here_when_no_backend_runs(
    kandev: Kandev, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    agents: list[dict[str, Any]] = kandev("agents", "--json").json["agents"]

    assert [agent["name"] for agent in agents if agent["found"]] == ["mock"]
    assert all(agent["install"] for agent in agents)


def on_a_terminal(kandev: Kandev, *words: str, **environment: str) -> str:
    """What a command shows on a terminal."""
    ours, theirs = pty.openpty()
    try:
        seen = {"TERM": "xterm-256color", "COLUMNS": "120"} | environment
        process = kandev.start(*words, stdout=theirs, **seen)
        os.close(theirs)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 0, err
        shown = b""
        while True:
            try:
                piece = os.read(ours, 1 << 16)
            except OSError:
                return shown.decode()
            if not piece:
                return shown.decode()
            shown += piece
    finally:
        os.close(ours)


def test_a_terminal_gets_colours_and_short_ids_and_no_color_is_honoured(
    kandev: Kandev, backend: FakeBackend
) -> None:
    coloured = on_a_terminal(kandev, "task", "list")
    plain = on_a_terminal(kandev, "task", "list", NO_COLOR="1")

    assert "\x1b[" in coloured
    assert "\x1b[3" not in plain
    assert TASK not in plain
    assert TASK[-8:] in plain


def test_control_characters_of_others_reach_programs_only(kandev: Kandev, backend: FakeBackend) -> None:
    evil = "\x1b]0;owned\x07title\rover"
    backend.answers["task.list"] = {"tasks": [a_task(title=evil)]}

    assert "\x1b" not in kandev("task", "list").out
    assert json.loads(kandev("task", "list", "--json").out)["tasks"][0]["title"] == evil

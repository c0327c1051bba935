"""Which session is meant when a task is named."""

from __future__ import annotations

import pytest

from tests.cli.conftest import OLD_SESSION, SESSION, TASK, Kandev, a_session
from tests.cli.fake_backend import FakeBackend


def test_an_unknown_name_is_exit_code_1(kandev: Kandev, backend: FakeBackend) -> None:
    ran = kandev("cancel", "nobody")

    assert (ran.code, ran.err) == (
        1,
        "kandev: No session or task is named 'nobody'; "
        "look with `kandev task list` and `kandev session list`.\n",
    )


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


COMMANDS = [
    ("cancel", "agent.cancel"),
    ("session explain", "session.explain"),
    ("session stop", "session.stop"),
    ("message send {} hello", "message.add"),
    ("message list", "message.list"),
    ("queue list", "message.queue.get"),
    ("queue add {} later", "message.queue.add"),
    ("queue run", "message.queue.drain"),
    ("queue pause", "message.queue.auto_run.set"),
    ("stop --session", "session.stop"),
]


def words_of(command: str) -> list[str]:
    """The command's words, on the task."""
    return command.format(TASK).split() if "{}" in command else [*command.split(), TASK]


@pytest.fixture
def answering(backend: FakeBackend) -> FakeBackend:
    """Answers to all of these."""
    for _, action in COMMANDS:
        backend.answers[action] = {"success": True, "status": "sent", "messages": [], "entries": []}
    return backend


@pytest.mark.parametrize(("command", "action"), COMMANDS)
def test_a_task_stands_for_the_one_session_that_works(
    kandev: Kandev, answering: FakeBackend, command: str, action: str
) -> None:
    idle, working = a_session(state="WAITING_FOR_INPUT"), a_session(OLD_SESSION, is_primary=False)
    answering.answers["task.session.list"] = {"sessions": [idle, working]}

    assert kandev(*words_of(command)).code == 0
    assert answering.payloads(action)[0]["session_id"] == OLD_SESSION


@pytest.mark.parametrize("command", [*(command for command, _ in COMMANDS), "tail", "session show"])
def test_of_several_sessions_that_work_one_has_to_be_named(
    kandev: Kandev, answering: FakeBackend, command: str
) -> None:
    both = [a_session(), a_session(OLD_SESSION, is_primary=False, state="STARTING")]
    answering.answers["task.session.list"] = {"sessions": both}

    ran = kandev(*words_of(command))

    assert (ran.code, {action for action, _ in answering.asked} & {a for _, a in COMMANDS}) == (1, set())
    assert f"name one: {SESSION} (RUNNING), {OLD_SESSION} (STARTING)." in ran.err


def test_a_queue_is_looked_for_where_messages_wait(kandev: Kandev, answering: FakeBackend) -> None:
    full = a_session(OLD_SESSION, is_primary=False, state="WAITING_FOR_INPUT", queue={"count": 1})
    answering.answers["task.session.list"] = {"sessions": [a_session(), full]}

    assert kandev("queue", "list", TASK).code == 0
    assert answering.payloads("message.queue.get") == [{"session_id": OLD_SESSION}]


def test_a_queue_is_resumed_where_it_is_held(kandev: Kandev, answering: FakeBackend) -> None:
    full = a_session(queue={"count": 1, "auto_run": True})
    held = a_session(OLD_SESSION, is_primary=False, queue={"count": 0, "auto_run": False})
    answering.answers["task.session.list"] = {"sessions": [full, held]}

    assert kandev("queue", "resume", TASK).code == 0
    assert answering.payloads("message.queue.auto_run.set") == [{"session_id": OLD_SESSION, "auto_run": True}]


def test_a_stop_looks_for_the_session_that_has_an_agent(kandev: Kandev, answering: FakeBackend) -> None:
    idle = a_session(state="WAITING_FOR_INPUT")
    up = a_session(OLD_SESSION, is_primary=False, state="WAITING_FOR_INPUT", execution={"id": "x"})
    answering.answers["task.session.list"] = {"sessions": [idle, up]}

    assert kandev("session", "stop", TASK).code == 0
    assert answering.payloads("session.stop") == [{"session_id": OLD_SESSION}]


def test_a_resume_looks_for_a_session_that_is_not_at_work(kandev: Kandev, backend: FakeBackend) -> None:
    backend.answers["session.recover"] = {"success": True, "state": "STARTING"}

    assert kandev("session", "recover", TASK).code == 0
    assert backend.payloads("session.recover") == [{"session_id": OLD_SESSION}]


def test_the_worktree_is_the_same_whichever_session_works(kandev: Kandev, backend: FakeBackend) -> None:
    both = [a_session(), a_session(OLD_SESSION, is_primary=False)]
    backend.answers |= {"task.session.list": {"sessions": both}, "session.changes": {"files": []}}

    assert kandev("session", "changes", TASK).out == "Nothing has changed.\n"

"""A home, a fake backend that it knows, and a way to run commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kandev.__main__ import main
from tests.cli.fake_backend import FakeBackend, Payload, Refusal, running

SOURCES = Path(__file__).parents[2] / "src"
END_S = 30.0
TASK = "task_06ekq3d4aaaaaaaaaaaaaaaa11"
OTHER_TASK = "task_06ekq3d4aaaaaaaaaaaaaabb22"
SESSION = "session_06ekq3d5cccccccccccccc33"
OLD_SESSION = "session_06ekq3d5ccccccccccccdd44"


@dataclass(frozen=True)
class Ran:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its stdout as JSON."""
        return json.loads(self.out)


@dataclass
class Kandev:
    """Runs commands in a home."""

    home: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, *words: str) -> Ran:
        """Runs a command in this process."""
        self.capture.readouterr()
        code = main(list(words))
        said = self.capture.readouterr()
        return Ran(code, said.out, said.err)

    def start(self, *words: str, stdout: int = subprocess.PIPE, **environment: str) -> subprocess.Popen[str]:
        """Starts a command as a process of its own; the caller ends it."""
        ours = os.environ | {"KANDEV_HOME": str(self.home), "PYTHONPATH": str(SOURCES)} | environment
        return subprocess.Popen(
            [sys.executable, "-m", "kandev", *words],
            env=ours,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    def process(self, *words: str, **environment: str) -> Ran:
        """Runs a command as a process of its own, to its end."""
        with self.start(*words, stdout=subprocess.PIPE, **environment) as process:
            out, err = process.communicate(timeout=END_S)
            return Ran(process.returncode, out, err)


@pytest.fixture
def kandev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kandev:
    """Commands, in a home that is not there yet."""
    home = tmp_path / "home"
    monkeypatch.setenv("KANDEV_HOME", str(home))
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)  # put back afterwards
    return Kandev(home, capsys)


def a_task(id: str = TASK, **members: Any) -> Payload:
    """A task as the backend shows it."""
    return {
        "id": id,
        "workspace_id": "w1",
        "workflow_id": "f1",
        "workflow_step_id": "s1",
        "title": "Fix the login",
        "description": "",
        "state": "IN_PROGRESS",
        "repositories": [],
        **members,
    }


def a_session(id: str = SESSION, **members: Any) -> Payload:
    """A session as the backend shows it."""
    return {
        "id": id,
        "task_id": TASK,
        "name": "first",
        "state": "RUNNING",
        "since": "2026-01-31T09:15:00.123Z",
        "is_primary": True,
        "cancellation_pending": False,
        "queue": {"count": 0, "max": 10, "auto_run": True},
        **members,
    }


def _one_of(kind: str, member: str, things: list[Payload]) -> Any:
    def get(payload: Payload) -> Payload:
        for thing in things:
            if thing["id"] == payload[member]:
                return thing
        raise Refusal("NOT_FOUND", f"There is no {kind} {payload[member]}.")

    return get


@pytest.fixture
def backend(kandev: Kandev) -> Iterator[FakeBackend]:
    """A backend with two tasks, the first with two sessions, noted in the home."""
    tasks = [a_task(), a_task(OTHER_TASK, title="Another")]
    sessions = [a_session(), a_session(OLD_SESSION, name="old", is_primary=False, state="COMPLETED")]
    steps = [{"id": "s1", "name": "In Progress"}, {"id": "s2", "name": "Done"}]
    workflow = {"id": "f1", "name": "Kanban", "style": "kanban", "steps": steps}
    profile = {
        "id": "p1",
        "name": "Mock",
        "agent": "mock",
        "protocol": "acp",
        "command": ["kandev", "mock-agent"],
    }
    fake = FakeBackend(
        {
            "health.check": {"status": "ok", "version": "0.1.0"},
            "workspace.list": {"workspaces": [{"id": "w1", "name": "Default", "created_at": "2026"}]},
            "workflow.list": {"workflows": [workflow]},
            "workflow.get": workflow,
            "agent.profile.list": {"profiles": [profile]},
            "task.list": {"tasks": tasks},
            "task.get": _one_of("task", "id", tasks),
            "task.session.list": lambda p: {
                "sessions": [s for s in sessions if s["task_id"] == p["task_id"]]
            },
            "session.get": _one_of("session", "session_id", sessions),
        },
        token="secret-token",
    )
    with running(fake):
        fake.note(kandev.home)
        yield fake

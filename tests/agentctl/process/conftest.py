"""Real processes with short deadlines, each ended when its test is over."""

import ctypes
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from kandev.agentctl import child
from kandev.agentctl import process as process_module
from kandev.agentctl.process import AgentProcess, agent_environment, become_subreaper, spawn
from kandev.agentctl.settings import Settings

Spawn = Callable[..., Awaitable[AgentProcess]]


@pytest.fixture
def settings() -> Settings:
    """Short, but long enough for a loaded machine to start a shell."""
    return Settings(
        write_s=0.5, teardown_stdin_s=0.5, teardown_term_s=0.5, teardown_kill_s=5.0, stderr_tail_lines=5
    )


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An agent's environment with the marks of a home of its own."""
    return agent_environment(os.environ, {"KANDEV_HOME": str(tmp_path), "KANDEV_INCARNATION": "now"})


@pytest.fixture
async def start(settings: Settings, environment: dict[str, str], tmp_path: Path) -> AsyncIterator[Spawn]:
    """Starts a shell script as an agent; whatever is left of it is killed in the end."""
    started: list[AgentProcess] = []

    async def begin(script: str, execution_id: str = "execution-1", **changes: str) -> AgentProcess:
        env = {**environment, **changes}
        process = await spawn(execution_id, ["/bin/sh", "-c", script], str(tmp_path), env, settings)
        started.append(process)
        return process

    yield begin
    for process in started:
        assert await process.end(force=True) == []


@pytest.fixture
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without a writable cgroup v2."""
    monkeypatch.setattr(process_module, "own_group", lambda: None)


@pytest.fixture
def subreaper() -> Iterator[None]:
    """This process adopts orphans, as agentctl does, until the test is over."""
    become_subreaper()
    yield
    ctypes.CDLL(None).prctl(child.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    child._adopting.clear()

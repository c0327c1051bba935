"""Stages: an adapter, an agent played by the test, a recording sink."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from kandev.agentctl.settings import Settings
from tests.agentctl.adapter.peer import MakeStage, Stage, make_stage


@pytest.fixture
def settings() -> Settings:
    """Short, with a line bound that tests can reach."""
    return Settings(write_s=2.0, cancel_settle_s=0.02, teardown_term_s=1.0, line_max_bytes=100_000)


@pytest.fixture
def worktree(tmp_path: Path) -> Path:
    """The agent's working directory."""
    folder = tmp_path / "worktree"
    folder.mkdir()
    return folder


@pytest.fixture
async def stages(settings: Settings, worktree: Path) -> AsyncIterator[MakeStage]:
    """Makes stages; closes them."""
    made: list[Stage] = []

    def make(**options: Any) -> Stage:
        environment = {"PATH": os.environ["PATH"], "KANDEV_EXECUTION": "e1", "KANDEV_HOME": str(worktree)}
        made.append(make_stage(str(worktree), settings, environment=environment, **options))
        return made[-1]

    yield make
    for stage in made:
        await stage.close()


@pytest.fixture
async def stage(stages: MakeStage) -> Stage:
    """One whose conversation is open."""
    opened = stages()
    await opened.open()
    return opened

"""A real git repository, and worktrees under a home of the test's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kandev.core.board import Repository, Task, Worktree
from kandev.execution.worktrees import GitWorktrees

NOW = "2026-01-31T09:15:00.123Z"
SomebodysName = {
    f"GIT_{who}_{what}": "somebody" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(folder: Path | str, *words: str) -> str:
    """Runs git as a user would; fails the test when git fails."""
    done = subprocess.run(
        ["git", *words],
        cwd=folder,
        env=os.environ | SomebodysName,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()


def a_task(title: str = "Fix the login page", id: str = "task_06ekq3d4abcdefgh12345678") -> Task:
    """A task with nothing special about it."""
    return Task(id, "w1", "f1", "s1", title, "", "TODO", "medium", 0, NOW, NOW)


@dataclass
class Bench:
    """A repository with one commit on `main`, and the worktrees over it."""

    home: Path
    path: Path
    repository: Repository
    worktrees: GitWorktrees

    async def prepared(self, base_branch: str | None = None) -> Worktree:
        """The worktree of the ordinary task."""
        place = self.worktrees.place(a_task(), self.repository)
        return await self.worktrees.prepare(place, self.repository, base_branch)


def a_repository(path: Path, name: str = "shop") -> Repository:
    """The row of a repository at `path`."""
    return Repository("r1", "w1", name, str(path), "main", NOW, NOW)


@pytest.fixture
def new_repository(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a repository with one commit on `main`."""

    def make(name: str) -> Path:
        path = tmp_path / name
        path.mkdir()
        git(path, "init", "-q", "-b", "main")
        (path / "README").write_text("one\ntwo\nthree\n")
        (path / "logo.bin").write_bytes(bytes(range(256)))
        git(path, "add", "-A")
        git(path, "commit", "-q", "-m", "first")
        return path

    return make


@pytest.fixture
def bench(tmp_path: Path, new_repository: Callable[[str], Path]) -> Bench:
    """Everything that a test of worktrees needs."""
    home = tmp_path / "home"
    path = new_repository("shop")
    return Bench(home, path, a_repository(path), GitWorktrees(home, deadline=30.0))

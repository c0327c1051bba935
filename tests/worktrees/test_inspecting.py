"""What is said of a path that somebody names as a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from kandev.core.errors import Invalid
from kandev.execution.worktrees import GitWorktrees
from tests.worktrees.conftest import Bench, git


async def test_a_folder_inside_a_repository_finds_its_top_and_default_branch(bench: Bench) -> None:
    inner = bench.path / "deep" / "inside"
    inner.mkdir(parents=True)

    found = await bench.worktrees.inspect(str(inner))

    assert (found.path, found.default_branch) == (str(bench.path), "main")


@pytest.mark.proves("BAD-not-a-repository")
async def test_a_path_that_is_no_repository_is_refused_with_a_sentence_that_names_it(
    bench: Bench, tmp_path: Path
) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()

    with pytest.raises(Invalid, match=f"{plain} is not a git repository"):
        await bench.worktrees.inspect(str(plain))
    with pytest.raises(Invalid, match=r"There is no folder .*nowhere\."):
        await bench.worktrees.inspect(str(tmp_path / "nowhere"))
    with pytest.raises(Invalid, match="There is no folder"):
        await bench.worktrees.inspect(str(bench.path / "README"))
    with pytest.raises(Invalid, match="is not absolute"):
        await bench.worktrees.inspect("somewhere")
    with pytest.raises(Invalid, match=r"lies inside a repository's \.git folder"):
        await bench.worktrees.inspect(str(bench.path / ".git"))


async def test_a_bare_repository_needs_a_commit(bench: Bench, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "empty.git")
    git(tmp_path, "clone", "-q", "--bare", str(bench.path), "full.git")

    with pytest.raises(Invalid, match="bare repository without a commit"):
        await bench.worktrees.inspect(str(tmp_path / "empty.git"))
    full = await bench.worktrees.inspect(str(tmp_path / "full.git"))
    assert (full.path, full.default_branch) == (str(tmp_path / "full.git"), "main")


async def test_the_default_branch_is_the_remotes_then_a_usual_one_then_the_present_one(
    bench: Bench, tmp_path: Path
) -> None:
    git(bench.path, "checkout", "-q", "-b", "topic")
    assert (await bench.worktrees.inspect(str(bench.path))).default_branch == "main"

    git(bench.path, "branch", "-q", "-m", "main", "trunk")
    assert (await bench.worktrees.inspect(str(bench.path))).default_branch == "topic"

    git(tmp_path, "clone", "-q", str(bench.path), "clone")
    git(tmp_path / "clone", "checkout", "-q", "-b", "main")
    assert (await bench.worktrees.inspect(str(tmp_path / "clone"))).default_branch == "topic"


async def test_a_machine_without_git_is_told_to_install_it(bench: Bench, tmp_path: Path) -> None:
    without = GitWorktrees(bench.home, environment={"PATH": str(tmp_path)})

    with pytest.raises(Invalid, match="git was not found; install git"):
        await without.inspect(str(bench.path))

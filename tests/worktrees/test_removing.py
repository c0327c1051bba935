"""A worktree goes only when nothing in it would be lost; its branch always stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kandev.core.errors import Conflict, Invalid
from tests.worktrees.conftest import Bench, a_task, git


async def test_a_clean_worktree_goes_and_its_branch_stays(bench: Bench) -> None:
    made = await bench.prepared()
    git(made.path, "commit", "-q", "--allow-empty", "-m", "work")
    work = git(made.path, "rev-parse", "HEAD")

    await bench.worktrees.remove(made, bench.repository, force=False)

    assert not Path(made.path).parent.exists()
    assert git(bench.path, "rev-parse", str(made.branch)) == work
    assert await bench.worktrees.prepare(made, bench.repository, None) == made


@pytest.mark.field("E27", "E33")
@pytest.mark.parametrize("name", ["README", "untracked"])
async def test_uncommitted_work_is_refused_unless_forced(bench: Bench, name: str) -> None:
    made = await bench.prepared()
    (Path(made.path) / name).write_text("work\n")

    with pytest.raises(Conflict, match="holds 1 uncommitted change: commit what you need, or remove"):
        await bench.worktrees.remove(made, bench.repository, force=False)
    assert (Path(made.path) / name).read_text() == "work\n"

    await bench.worktrees.remove(made, bench.repository, force=True)
    assert not Path(made.path).exists()
    assert git(bench.path, "branch", "--list", str(made.branch)) != ""


@pytest.mark.field("E27")
async def test_commits_on_no_branch_are_refused_unless_forced(bench: Bench) -> None:
    made = await bench.prepared()
    git(made.path, "checkout", "-q", "--detach")
    git(made.path, "commit", "-q", "--allow-empty", "-m", "loose")

    with pytest.raises(Conflict, match="commits that are on no branch"):
        await bench.worktrees.remove(made, bench.repository, force=False)


async def test_removing_what_is_gone_is_fine(bench: Bench) -> None:
    made = await bench.prepared()
    Path(made.path).rename(bench.home / "away")

    await bench.worktrees.remove(made, bench.repository, force=False)
    await bench.worktrees.remove(made, bench.repository, force=False)

    assert len(git(bench.path, "worktree", "list").splitlines()) == 1


async def test_a_foreign_folder_is_never_removed(bench: Bench) -> None:
    place = bench.worktrees.place(a_task(), bench.repository)
    Path(place.path).mkdir(parents=True)
    (Path(place.path) / "mine").write_text("precious")

    with pytest.raises(Conflict, match="is no worktree of shop"):
        await bench.worktrees.remove(place, bench.repository, force=True)
    assert (Path(place.path) / "mine").exists()


async def test_a_plain_folder_with_files_goes_only_by_force(bench: Bench) -> None:
    made = await bench.worktrees.prepare(bench.worktrees.place(a_task(), None), None, None)
    (Path(made.path) / "file").write_text("x")

    with pytest.raises(Conflict, match="holds files"):
        await bench.worktrees.remove(made, None, force=False)
    await bench.worktrees.remove(made, None, force=True)
    assert not Path(made.path).parent.exists()

    with pytest.raises(Invalid, match="is not a task's folder"):
        await bench.worktrees.remove(replace(made, path=str(bench.path)), None, force=True)
    assert (bench.path / "README").exists()

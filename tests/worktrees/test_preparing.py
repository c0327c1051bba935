"""A task gets its own worktree and branch; what is found is kept, what is in the way is named."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kandev.core.errors import AgentFault, Conflict, Invalid
from kandev.execution.worktrees import GitWorktrees
from tests.worktrees.conftest import Bench, a_repository, a_task, git


@pytest.mark.proves("TREE-own")
async def test_a_task_with_a_repository_gets_its_own_worktree_and_branch_under_the_home(bench: Bench) -> None:
    made = await bench.prepared()

    assert Path(made.path) == bench.home / "tasks" / a_task().id / "shop"
    assert made.branch == "kandev/fix-the-login-page-12345678"
    assert made.base_commit == git(bench.path, "rev-parse", "main")
    assert git(made.path, "symbolic-ref", "--short", "HEAD") == made.branch
    assert (Path(made.path) / "README").read_text() == "one\ntwo\nthree\n"
    assert git(bench.path, "status", "--porcelain") == ""


@pytest.mark.proves("TREE-own")
async def test_placing_touches_nothing(bench: Bench) -> None:
    bench.worktrees.place(a_task(), bench.repository)

    assert not bench.home.exists()


@pytest.mark.proves("TREE-folder")
async def test_a_task_without_a_repository_gets_a_folder_of_its_own(bench: Bench) -> None:
    place = bench.worktrees.place(a_task(), None)
    made = await bench.worktrees.prepare(place, None, None)
    (Path(made.path) / "note").write_text("kept")

    again = await bench.worktrees.prepare(place, None, None)

    assert again == made == place
    assert Path(made.path) == bench.home / "tasks" / a_task().id / "work"
    assert (Path(made.path) / "note").read_text() == "kept"


async def test_a_file_in_the_way_of_a_folder_is_named(bench: Bench) -> None:
    place = bench.worktrees.place(a_task(), None)
    Path(place.path).parent.mkdir(parents=True)
    Path(place.path).write_text("mine")

    with pytest.raises(Conflict, match=re.escape(place.path)):
        await bench.worktrees.prepare(place, None, None)


@pytest.mark.field("E29")
async def test_preparing_again_finds_the_worktree_as_it_is(bench: Bench) -> None:
    made = await bench.prepared()
    tree = Path(made.path)
    (tree / "README").write_text("changed\n")
    (tree / "new").write_text("untracked\n")
    git(tree, "commit", "-q", "--allow-empty", "-m", "work")

    assert await bench.worktrees.prepare(made, bench.repository, None) == made
    forgotten = replace(made, base_commit=None)
    assert await bench.worktrees.prepare(forgotten, bench.repository, None) == made
    assert (tree / "README").read_text() == "changed\n"
    assert (tree / "new").read_text() == "untracked\n"


@pytest.mark.field("E29")
async def test_a_worktree_whose_folder_was_deleted_comes_back_with_its_commits(bench: Bench) -> None:
    made = await bench.prepared()
    git(made.path, "commit", "-q", "--allow-empty", "-m", "work")
    work = git(made.path, "rev-parse", "HEAD")
    Path(made.path).rename(bench.home / "moved-away")

    again = await bench.worktrees.prepare(made, bench.repository, None)

    assert again == made
    assert git(made.path, "rev-parse", "HEAD") == work


@pytest.mark.field("E29")
async def test_a_folder_with_content_in_the_way_is_refused_and_untouched(bench: Bench) -> None:
    place = bench.worktrees.place(a_task(), bench.repository)
    Path(place.path).mkdir(parents=True)
    (Path(place.path) / "mine").write_text("precious")

    with pytest.raises(Conflict, match="holds files and is no worktree"):
        await bench.worktrees.prepare(place, bench.repository, None)
    assert (Path(place.path) / "mine").read_text() == "precious"
    assert git(bench.path, "branch", "--list", "kandev/*") == ""


async def test_a_worktree_of_another_repository_in_the_way_is_refused(
    bench: Bench, new_repository: Callable[[str], Path]
) -> None:
    made = await bench.prepared()
    other = replace(a_repository(new_repository("other")), id="r2")

    with pytest.raises(Conflict, match="no worktree of this repository"):
        await bench.worktrees.prepare(made, other, None)


async def test_a_worktree_that_git_never_finished_making_is_finished(bench: Bench) -> None:
    made = await bench.prepared()
    tree = Path(made.path)
    admin = Path(git(tree, "rev-parse", "--absolute-git-dir"))
    # What a git that was killed in the middle of its first checkout leaves behind.
    (admin / "locked").write_text("initializing")
    (admin / "index").unlink()
    (admin / "index.lock").write_text("")
    (tree / "README").write_text("one\nt")
    (tree / "logo.bin").unlink()

    again = await bench.worktrees.prepare(replace(made, base_commit=None), bench.repository, None)

    assert again == made
    assert git(tree, "status", "--porcelain") == ""
    assert not (admin / "locked").exists()


async def test_a_worktree_that_was_only_noted_by_git_is_made(bench: Bench) -> None:
    made = await bench.prepared()
    admin = Path(git(made.path, "rev-parse", "--absolute-git-dir"))
    (admin / "locked").write_text("initializing")
    Path(made.path).rename(bench.home / "never-written")
    Path(made.path).mkdir()

    again = await bench.worktrees.prepare(made, bench.repository, None)

    assert again == made
    assert git(made.path, "status", "--porcelain") == ""


async def test_a_base_branch_may_be_local_or_of_the_remote(
    bench: Bench, new_repository: Callable[[str], Path]
) -> None:
    upstream = new_repository("upstream")
    git(upstream, "checkout", "-q", "-b", "feature")
    git(upstream, "commit", "-q", "--allow-empty", "-m", "theirs")
    git(bench.path, "remote", "add", "origin", str(upstream))
    git(bench.path, "fetch", "-q", "origin")

    made = await bench.prepared("feature")

    assert made.base_commit == git(upstream, "rev-parse", "feature")


@pytest.mark.field("D49")
async def test_an_unknown_base_branch_is_refused_with_the_known_ones(bench: Bench) -> None:
    with pytest.raises(Invalid, match=r"no branch 'nowhere'; it has: main\.$"):
        await bench.prepared("nowhere")
    with pytest.raises(Invalid, match="no branch '--force'"):
        await bench.prepared("--force")
    assert git(bench.path, "branch", "--list", "kandev/*") == ""


async def test_a_repository_without_a_commit_is_refused(bench: Bench, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "-q", "-b", "main")

    with pytest.raises(Invalid, match="has no commit yet; make a first commit in it"):
        await bench.worktrees.prepare(
            bench.worktrees.place(a_task(), a_repository(empty, "empty")), a_repository(empty, "empty"), None
        )


async def test_a_repository_that_is_gone_is_named(bench: Bench) -> None:
    bench.path.rename(bench.path.with_name("elsewhere"))

    with pytest.raises(Invalid, match="The repository shop is gone"):
        await bench.prepared()


async def test_tasks_of_one_repository_are_prepared_side_by_side(bench: Bench) -> None:
    places = [bench.worktrees.place(a_task(id=f"task_{n:08}"), bench.repository) for n in range(4)]
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(bench.worktrees.prepare(p, bench.repository, None)) for p in places]

    assert len({task.result().branch for task in made}) == 4
    assert len(git(bench.path, "worktree", "list").splitlines()) == 5


async def test_hooks_of_the_repository_do_not_run(bench: Bench) -> None:
    hook = bench.path / ".git" / "hooks" / "post-checkout"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {bench.path}/ran\n")
    hook.chmod(0o755)

    await bench.prepared()

    assert not (bench.path / "ran").exists()


async def test_a_git_that_hangs_is_ended_at_the_deadline_and_the_next_call_repairs(bench: Bench) -> None:
    filter_that_hangs = "sh -c 'sleep 600'"
    (bench.path / ".gitattributes").write_text("*.bin filter=slow\n")
    git(bench.path, "add", "-A")
    git(bench.path, "commit", "-q", "-m", "filter")
    git(bench.path, "config", "filter.slow.smudge", filter_that_hangs)
    hasty = GitWorktrees(bench.home, deadline=0.5)
    place = hasty.place(a_task(), bench.repository)

    with pytest.raises(AgentFault, match=r"git worktree in .* did not end within 0.5 s"):
        await hasty.prepare(place, bench.repository, None)

    git(bench.path, "config", "filter.slow.smudge", "cat")
    made = await bench.worktrees.prepare(place, bench.repository, None)
    assert git(made.path, "status", "--porcelain") == ""


async def test_a_preparation_that_is_cancelled_ends_its_git_and_frees_the_repository(bench: Bench) -> None:
    begun = bench.home.parent / "begun"
    (bench.path / ".gitattributes").write_text("*.bin filter=slow\n")
    git(bench.path, "add", "-A")
    git(bench.path, "commit", "-q", "-m", "filter")
    git(bench.path, "config", "filter.slow.smudge", f"sh -c 'touch {begun}; sleep 600'")
    task = asyncio.create_task(bench.prepared())
    async with asyncio.timeout(20):
        while not begun.exists():
            await asyncio.sleep(0.01)

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    git(bench.path, "config", "filter.slow.smudge", "cat")
    made = await bench.prepared()
    assert git(made.path, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Übergröße: naïve façade!", "ubergrosse-naive-facade"),
        ("../../etc/passwd", "etc-passwd"),
        ("日本語", "task"),
        ("x" * 200, "x" * 40),
        ("--force", "force"),
    ],
)
def test_any_title_gives_a_plain_branch_name(bench: Bench, title: str, slug: str) -> None:
    assert bench.worktrees.place(a_task(title), bench.repository).branch == f"kandev/{slug}-12345678"


@pytest.mark.parametrize("name", ["../..", "a/b", ".git", "", "..."])
def test_no_repository_name_leads_out_of_the_tasks_folder(bench: Bench, name: str) -> None:
    place = bench.worktrees.place(a_task(), replace(bench.repository, name=name))

    assert Path(place.path).parent == bench.home / "tasks" / a_task().id

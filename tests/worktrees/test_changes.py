"""Changes and diffs against the base: committed, uncommitted and untracked alike."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kandev.core.errors import AgentFault, Invalid, NotFound
from kandev.execution import changes
from kandev.ports.worktrees import Change
from tests.worktrees.conftest import Bench, a_task, git


@pytest.mark.proves("TREE-changes")
async def test_committed_uncommitted_and_untracked_work_is_listed_with_counts(bench: Bench) -> None:
    made = await bench.prepared()
    tree = Path(made.path)
    (tree / "committed").write_text("a\nb\n")
    git(tree, "add", "committed")
    git(tree, "commit", "-q", "-m", "work")
    (tree / "staged").write_text("s\n")
    git(tree, "add", "staged")
    (tree / "README").write_text("one\n2\nthree\nfour\n")
    (tree / "logo.bin").write_bytes(b"\0\1\2")
    (tree / "new").write_text("1\n2\n3")

    assert await bench.worktrees.changes(made) == (
        Change("README", "modified", 2, 1),
        Change("committed", "added", 2, 0),
        Change("logo.bin", "modified", 0, 0),
        Change("new", "untracked", 3, 0),
        Change("staged", "added", 1, 0),
    )
    assert git(tree, "status", "--porcelain").splitlines()[-1] == "?? new"


async def test_a_rename_and_a_deletion_are_told_apart(bench: Bench) -> None:
    made = await bench.prepared()
    git(made.path, "mv", "README", "LIESMICH")
    git(made.path, "rm", "-q", "logo.bin")

    assert await bench.worktrees.changes(made) == (
        Change("LIESMICH", "renamed", 0, 0, "README"),
        Change("logo.bin", "deleted", 0, 0),
    )


@pytest.mark.parametrize(
    "name", ['quo"te', "new\nline", "tab\there", "ünï – 日本", " space ", "-dash", ":colon"]
)
async def test_any_file_name_comes_through_in_lists_and_diffs(bench: Bench, name: str) -> None:
    made = await bench.prepared()
    (Path(made.path) / name).write_text("hello\n")
    (Path(made.path) / "other").write_text("other\n")

    listed = await bench.worktrees.changes(made)
    diff = await bench.worktrees.diff(made, name)

    assert Change(name, "untracked", 1, 0) in listed
    assert "+hello" in diff
    assert "+other" not in diff


async def test_ignored_files_and_inner_repositories_are_left_out(bench: Bench) -> None:
    made = await bench.prepared()
    tree = Path(made.path)
    (tree / ".gitignore").write_text("*.log\n")
    (tree / "big.log").write_text("x\n")
    (tree / "inner").mkdir()
    git(tree / "inner", "init", "-q")
    (tree / "inner" / "file").write_text("x\n")

    assert [change.path for change in await bench.worktrees.changes(made)] == [".gitignore"]


@pytest.mark.proves("TREE-changes")
async def test_a_diff_shows_untracked_files_too_and_one_path_alone(bench: Bench) -> None:
    made = await bench.prepared()
    tree = Path(made.path)
    (tree / "README").write_text("one\n2\nthree\n")
    (tree / "folder").mkdir()
    (tree / "folder" / "new").write_text("fresh\n")

    whole = await bench.worktrees.diff(made, None)
    alone = await bench.worktrees.diff(made, "folder/new")

    assert "-two" in whole and "+2" in whole and "+fresh" in whole
    assert "+fresh" in alone and "+2" not in alone
    assert await bench.worktrees.diff(made, "unchanged") == ""


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "a/../../b", "", ".git/config", "a\0b"])
async def test_a_path_that_leads_out_of_the_worktree_is_refused(bench: Bench, path: str) -> None:
    made = await bench.prepared()

    with pytest.raises(Invalid, match="is not inside the worktree"):
        await bench.worktrees.diff(made, path)


async def test_a_link_to_the_outside_shows_where_it_leads_and_not_what_is_there(bench: Bench) -> None:
    made = await bench.prepared()
    secret = bench.home / "secret"
    secret.write_text("top secret\n")
    (Path(made.path) / "link").symlink_to(secret)

    diff = await bench.worktrees.diff(made, "link")

    assert "top secret" not in diff
    assert str(secret) in diff


async def test_a_huge_diff_is_cut_and_says_so(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "DIFF_MAX", 1 << 20)
    made = await bench.prepared()
    (Path(made.path) / "huge").write_text("a line of the file\n" * 200_000)

    diff = await bench.worktrees.diff(made, None)

    assert len(diff) < (1 << 20) + 200
    assert diff.endswith("[The diff goes on: only its first 1 MiB are shown; ask for one path.]\n")


async def test_a_plain_folder_has_no_changes(bench: Bench) -> None:
    made = await bench.worktrees.prepare(bench.worktrees.place(a_task(), None), None, None)
    (Path(made.path) / "file").write_text("x")

    assert await bench.worktrees.changes(made) == ()
    assert await bench.worktrees.diff(made, None) == ""


async def test_what_is_gone_is_named(bench: Bench) -> None:
    made = await bench.prepared()

    with pytest.raises(AgentFault, match=r"is not in .* any more"):
        await bench.worktrees.changes(replace(made, base_commit="0" * 40))
    with pytest.raises(NotFound, match="was not prepared yet"):
        await bench.worktrees.changes(replace(made, base_commit=None))
    Path(made.path).rename(bench.home / "away")
    with pytest.raises(NotFound, match="does not exist"):
        await bench.worktrees.diff(made, None)


async def test_programs_that_the_repository_names_for_diffs_do_not_run(bench: Bench) -> None:
    made = await bench.prepared()
    git(bench.path, "config", "diff.external", f"touch {bench.path}/ran; true")
    (Path(made.path) / "README").write_text("other\n")

    assert "+other" in await bench.worktrees.diff(made, None)
    assert not (bench.path / "ran").exists()

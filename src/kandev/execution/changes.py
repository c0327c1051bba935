"""What changed in a worktree against a commit: committed, uncommitted and untracked, in one view.

Untracked files are shown through a copy of the index in which they stand as empty, so that git itself
counts, renames and prints them like all others; the worktree's own index is never touched.
Not here: making worktrees.
"""

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

from kandev.core.errors import AgentFault, Invalid, NotFound
from kandev.execution.git import Git
from kandev.ports.worktrees import Change

DIFF_MAX = 2 * 1024 * 1024
"""Bytes of a diff that is shown; the rest is named in its last line."""
STATUS = {"A": "added", "C": "added", "D": "deleted", "R": "renamed"}
TWO_PATHS = ("R", "C")
REPORT = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--find-renames")


async def changed(git: Git, cwd: str, base: str) -> tuple[Change, ...]:
    """Files that differ from `base`, by path. Raises NotFound (no worktree there), AgentFault."""
    async with _with_untracked(git, cwd) as (index, untracked):
        answer = await git.ask(cwd, "diff", "--raw", "--numstat", "-z", *REPORT, base, "--", index=index)
    found = parse(answer.out)
    marked = (
        replace(change, status="untracked")
        if change.status == "added" and change.path in untracked
        else change
        for change in found
    )
    return tuple(sorted(marked, key=lambda change: change.path))


async def difference(git: Git, cwd: str, base: str, path: str | None) -> str:
    """A unified diff against `base`. Raises Invalid (a path that leads out), NotFound, AgentFault."""
    chosen = () if path is None else (inside(path),)
    async with _with_untracked(git, cwd) as (index, _):
        answer = await git.run(cwd, "diff", *REPORT, base, "--", *chosen, limit=DIFF_MAX, index=index)
    if answer.code != 0:
        raise AgentFault(f"git diff failed in {cwd}: {answer.reason}.")
    if not answer.cut:
        return answer.out.decode("utf-8", "replace")
    whole = answer.out.rpartition(b"\n")[0].decode("utf-8", "replace")
    return f"{whole}\n[The diff goes on: only its first {DIFF_MAX >> 20} MiB are shown; ask for one path.]\n"


def inside(path: str) -> str:
    """The path as git takes it. Raises Invalid for one that is empty, absolute, or leads out."""
    pure = PurePosixPath(path)
    if not path or "\0" in path or pure.is_absolute() or ".." in pure.parts or pure.parts[:1] == (".git",):
        raise Invalid(
            f"The path {path!r} is not inside the worktree; name a file relative to its top folder."
        )
    return str(pure)


def parse(output: bytes) -> list[Change]:
    """The records of `git diff --raw --numstat -z`: names of any bytes; the counts of binary files are 0."""
    found: dict[str, Change] = {}
    fields = iter(output.split(b"\0"))
    for head in fields:
        if head.startswith(b":"):
            kind = head.rsplit(b" ", 1)[1][:1].decode()
            old = _name(fields) if kind in TWO_PATHS else None
            path = _name(fields)
            # An unmerged file comes twice, first as U: the second record says what it is.
            found[path] = Change(path, STATUS.get(kind, "modified"), 0, 0, old if kind == "R" else None)
        elif head:
            additions, deletions, name = head.split(b"\t", 2)
            if not name:
                next(fields)
            path = _text(name) if name else _name(fields)
            if path in found:
                more, less = _count(additions), _count(deletions)
                found[path] = replace(found[path], additions=more, deletions=less)
    return list(found.values())


def _name(fields: Iterator[bytes]) -> str:
    return _text(next(fields, b""))


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")


def _count(text: bytes) -> int:
    return 0 if text == b"-" else int(text)


@asynccontextmanager
async def _with_untracked(git: Git, cwd: str) -> AsyncIterator[tuple[str, frozenset[str]]]:
    """A copy of the index that knows the untracked files too, and their names."""
    if not Path(cwd).is_dir():
        raise NotFound(f"The worktree {cwd} does not exist.")
    where = await git.run(cwd, "rev-parse", "--git-path", "index")
    if where.code != 0:
        raise AgentFault(f"{cwd} is no longer a git worktree: {where.reason}.")
    listed = await git.ask(cwd, "ls-files", "--others", "--exclude-standard", "-z")
    # A repository inside the worktree is listed with a slash: its files are its own.
    names = [name for name in listed.out.split(b"\0") if name and not name.endswith(b"/")]
    with tempfile.TemporaryDirectory(prefix="kandev-index-") as folder:
        index = str(Path(folder) / "index")
        own = Path(cwd) / where.text
        if own.exists():
            shutil.copyfile(own, index)
        if names:
            empty = (await git.ask(cwd, "hash-object", "-t", "blob", "--stdin")).text
            entries = b"".join(b"100644 %s\t%s\0" % (empty.encode(), name) for name in names)
            await git.ask(cwd, "update-index", "-z", "--index-info", feed=entries, index=index)
        yield index, frozenset(_text(name) for name in names)

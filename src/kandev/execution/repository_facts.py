"""What git says of a repository: its top, its branches, its commits, the worktrees it knows. Changes nothing.

Not here: worktrees of tasks (`worktrees`).
"""

from pathlib import Path

from kandev.core.board import Repository
from kandev.core.errors import Invalid
from kandev.execution.git import Git
from kandev.ports.worktrees import FoundRepository

USUAL_BRANCHES = ("main", "master")
NAMED_BRANCHES = 5
"""So many branches are named to somebody who asked for one that is not there."""


async def inspect(git: Git, path: str) -> FoundRepository:
    """See `ports.worktrees.Worktrees.inspect`."""
    folder = Path(path).expanduser()
    if not folder.is_absolute():
        raise Invalid(f"The path {path!r} is not absolute; give the repository's whole path.")
    try:
        there = folder.is_dir()
    except OSError as error:  # a name too long, a folder on the way that may not be entered
        raise Invalid(f"{path[:200]} cannot be looked at: {error.strerror}.") from None
    if not there:
        raise Invalid(f"There is no folder {path}.")
    found = await git.run(folder, "rev-parse", "--is-bare-repository", "--absolute-git-dir")
    if found.code != 0:
        why = "" if "not a git repository" in found.err else f" git says: {found.reason}."
        raise Invalid(f"{path} is not a git repository; name one, or run `git init` there first.{why}")
    bare, git_folder = found.text.split("\n", 1)
    if bare == "true":
        if await commit(git, git_folder, "HEAD") is None:
            raise Invalid(f"{path} is a bare repository without a commit; push a first commit to it.")
        return FoundRepository(git_folder, await default_branch(git, git_folder))
    top = await git.run(folder, "rev-parse", "--show-toplevel")
    if top.code != 0:
        raise Invalid(f"{path} lies inside a repository's .git folder; name the folder above it.")
    return FoundRepository(top.text, await default_branch(git, top.text))


async def start(git: Git, repository: Repository, base_branch: str | None) -> str:
    """The commit that a new branch begins at. Raises Invalid."""
    wanted = base_branch or repository.default_branch
    where = repository.local_path
    for place in ("refs/heads/", "refs/remotes/", "refs/remotes/origin/", "refs/tags/"):
        if found := await commit(git, where, place + wanted):
            return found
    known = await git.ask(
        where, "for-each-ref", "--format=%(refname:short)", f"--count={NAMED_BRANCHES}", "refs/heads"
    )
    if not known.out and await commit(git, where, "HEAD") is None:
        raise Invalid(f"The repository {repository.name} has no commit yet; make a first commit in it.")
    names = ", ".join(known.text.split("\n"))
    raise Invalid(f"The repository {repository.name} has no branch {wanted!r}; it has: {names}.")


async def commit(git: Git, where: str, name: str) -> str | None:
    """The commit of this name; None when there is none."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    found = await git.run(where, *words)
    return found.text if found.code == 0 else None


async def fork(git: Git, where: str, begin: str, head: str) -> str:
    """Where the branch left its base; the base itself when they share nothing."""
    found = await git.run(where, "merge-base", begin, head)
    return found.text if found.code == 0 and found.text else begin


async def default_branch(git: Git, where: str) -> str:
    """The remote's, else the usual names, else where HEAD stands."""
    remote = await git.run(where, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    if remote.code == 0:
        return remote.text.removeprefix("origin/")
    for name in USUAL_BRANCHES:
        if await commit(git, where, f"refs/heads/{name}"):
            return name
    head = await git.run(where, "symbolic-ref", "--quiet", "--short", "HEAD")
    if head.code == 0:
        return head.text
    any_branch = await git.ask(where, "for-each-ref", "--format=%(refname:short)", "--count=1", "refs/heads")
    return any_branch.text or USUAL_BRANCHES[0]


async def registered(git: Git, where: str, path: str) -> str | None:
    """None: git knows no worktree there; else why it is locked, or an empty text."""
    listed = await git.ask(where, "worktree", "list", "--porcelain")
    wanted = Path(path).resolve()
    for record in listed.out.decode("utf-8", "surrogateescape").split("\n\n"):
        lines = record.split("\n")
        if Path(lines[0].removeprefix("worktree ")).resolve() == wanted:
            locks = [line for line in lines if line.split(" ")[0] == "locked"]
            return locks[0].removeprefix("locked").strip() if locks else ""
    return None

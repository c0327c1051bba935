"""Git worktrees and plain folders for tasks, under the home: `tasks/<task id>/<repository name>`.

A user's files are never reset, cleaned or overwritten: what is found stays as it is, what is in the way is
named. Not here: calling git (`git`), looking at repositories (`repository_facts`) and at changes (`changes`).
"""

import asyncio
import re
import shutil
import unicodedata
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

from kandev.core.board import Repository, Task, Worktree
from kandev.core.errors import AgentFault, Conflict, Invalid, NotFound
from kandev.execution import repository_facts as facts
from kandev.execution.changes import changed, difference
from kandev.execution.git import Git
from kandev.ports.worktrees import Change, FoundRepository

SLUG_MAX = 40
LITTLE_MIB = 1024
"""With less free space a worktree that cannot be made is told together with it."""
SHORT_ID = 8
"""Letters of a task's id that a branch carries: the last ones, which are random."""


class GitWorktrees:
    """Implements `ports.worktrees.Worktrees`. `deadline`, in seconds, bounds each call of git."""

    def __init__(
        self, home: Path, *, environment: Mapping[str, str] | None = None, deadline: float = 60.0
    ) -> None:
        self._tasks = home / "tasks"
        self._git = Git(environment, deadline)
        self._deadline = deadline
        # One change at a time in a repository: git's own locks make the second one fail instead of wait.
        self._locks: dict[str, asyncio.Lock] = {}

    async def inspect(self, path: str) -> FoundRepository:
        """See the port."""
        return await facts.inspect(self._git, path)

    def place(self, task: Task, repository: Repository | None) -> Worktree:
        """See the port."""
        home = self._tasks / _safe(task.id)
        if repository is None:
            return Worktree(task.id, str(home / "work"))
        short = _safe(task.id)[-SHORT_ID:]
        branch = f"kandev/{_slug(task.title)}-{short}"
        return Worktree(task.id, str(home / _safe(repository.name)), branch, None, repository.id)

    async def prepare(
        self, worktree: Worktree, repository: Repository | None, base_branch: str | None
    ) -> Worktree:
        """See the port. A folder in the way that holds something else raises Conflict."""
        if repository is None:
            return _plain_folder(worktree)
        async with self._turn(repository):
            await self._still_there(repository)
            if await self._is_worktree(worktree.path, repository):
                return await self._finished(worktree, repository, base_branch)
            return await self._add(worktree, repository, base_branch)

    async def changes(self, worktree: Worktree) -> tuple[Change, ...]:
        """See the port."""
        if worktree.repository_id is None:
            _there(worktree)
            return ()
        return await changed(self._git, worktree.path, await self._base(worktree))

    async def diff(self, worktree: Worktree, path: str | None) -> str:
        """See the port."""
        if worktree.repository_id is None:
            _there(worktree)
            return ""
        return await difference(self._git, worktree.path, await self._base(worktree), path)

    async def remove(self, worktree: Worktree, repository: Repository | None, *, force: bool) -> None:
        """See the port. Ignored files go with the worktree."""
        if repository is None:
            await self._remove_folder(worktree, force=force)
            return
        async with self._turn(repository):
            path = Path(worktree.path)
            if path.is_dir() and any(path.iterdir()):
                if not await self._is_worktree(worktree.path, repository):
                    raise Conflict(
                        f"{path} is no worktree of {repository.name}; look at it and remove it by hand."
                    )
                if not force:
                    await self._refuse_unsaved(worktree)
            elif path.is_dir():
                path.rmdir()
            if await facts.registered(self._git, repository.local_path, worktree.path) is not None:
                words = ("--force",) if force else ()
                await self._git.ask(repository.local_path, "worktree", "remove", *words, worktree.path)
        _drop_empty(path.parent)

    async def _refuse_unsaved(self, worktree: Worktree) -> None:
        """Raises Conflict when the worktree holds what no branch keeps."""
        words = ("status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
        listed = (await self._git.ask(worktree.path, *words)).out
        if count := listed.count(b"\0"):
            raise Conflict(
                f"{worktree.path} holds {count} uncommitted change{'s' if count > 1 else ''}: "
                "commit what you need, or remove the worktree by force."
            )
        if (await self._git.run(worktree.path, "symbolic-ref", "--quiet", "HEAD")).code != 0:
            kept = await self._git.ask(
                worktree.path, "for-each-ref", "--contains", "HEAD", "--count=1", "refs/heads"
            )
            if not kept.out:
                raise Conflict(
                    f"{worktree.path} has commits that are on no branch; "
                    "give them a branch, or remove the worktree by force."
                )

    @asynccontextmanager
    async def _turn(self, repository: Repository) -> AsyncIterator[None]:
        lock = self._locks.setdefault(str(Path(repository.local_path).resolve()), asyncio.Lock())
        try:
            async with asyncio.timeout(2 * self._deadline):
                await lock.acquire()
        except TimeoutError:
            raise AgentFault(
                f"Another change of the worktrees of {repository.name} takes too long; try again later."
            ) from None
        try:
            yield
        finally:
            lock.release()

    async def _still_there(self, repository: Repository) -> None:
        if not Path(repository.local_path).is_dir():
            raise Invalid(
                f"The repository {repository.name} is gone: there is no folder {repository.local_path}."
            )
        found = await self._git.run(repository.local_path, "rev-parse", "--git-dir")
        if found.code != 0:
            raise Invalid(f"{repository.local_path} is no longer a git repository: {found.reason}.")

    async def _is_worktree(self, path: str, repository: Repository) -> bool:
        """Whether `path` is the top of a worktree of this repository, whole or half-made."""
        if not (Path(path) / ".git").is_file():
            return False
        words = ("rev-parse", "--show-toplevel", "--git-common-dir")
        here = await self._git.run(path, *words)
        if here.code != 0:
            return False
        top, common = here.text.rsplit("\n", 1)
        there = await self._git.ask(repository.local_path, "rev-parse", "--git-common-dir")
        same = (Path(path) / common).resolve() == (Path(repository.local_path) / there.text).resolve()
        return same and Path(top).resolve() == Path(path).resolve()

    async def _finished(
        self, worktree: Worktree, repository: Repository, base_branch: str | None
    ) -> Worktree:
        """The worktree as it is; one that git never finished making is finished first."""
        state = await facts.registered(self._git, repository.local_path, worktree.path)
        if state == "initializing":
            # git holds this lock until the first checkout is complete, so nobody has worked here yet.
            admin = Path(worktree.path) / (await self._git.ask(worktree.path, "rev-parse", "--git-dir")).text
            (admin / "index.lock").unlink(missing_ok=True)
            await self._git.ask(worktree.path, "reset", "--hard", "--quiet")
            await self._git.ask(repository.local_path, "worktree", "unlock", worktree.path)
        head = await self._git.run(worktree.path, "symbolic-ref", "--quiet", "--short", "HEAD")
        branch = head.text if head.code == 0 else worktree.branch
        base = worktree.base_commit
        if base is None:
            start = await facts.start(self._git, repository, base_branch)
            base = await facts.fork(self._git, worktree.path, start, "HEAD")
        return replace(worktree, branch=branch, base_commit=base)

    async def _add(self, worktree: Worktree, repository: Repository, base_branch: str | None) -> Worktree:
        path, branch = Path(worktree.path), worktree.branch
        if branch is None:
            raise Invalid(f"The worktree {path} has no branch.")
        _refuse_in_the_way(path)
        start = await facts.start(self._git, repository, base_branch)
        state = await facts.registered(self._git, repository.local_path, worktree.path)
        if path.is_dir():
            path.rmdir()
        if state is not None:
            # Known to git, but gone from the disk: only git's note of it is taken away, the branch stays.
            if state == "initializing":
                await self._git.ask(repository.local_path, "worktree", "unlock", worktree.path)
            await self._git.ask(repository.local_path, "worktree", "remove", worktree.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        known = await facts.commit(self._git, repository.local_path, f"refs/heads/{branch}")
        words = (worktree.path, branch) if known else ("--no-track", "-b", branch, worktree.path, start)
        try:
            await self._git.ask(repository.local_path, "worktree", "add", "--quiet", *words)
        except AgentFault as fault:
            raise _with_room(fault, path.parent) from None
        base = worktree.base_commit or await facts.fork(
            self._git, repository.local_path, start, known or start
        )
        return replace(worktree, base_commit=base)

    async def _base(self, worktree: Worktree) -> str:
        if worktree.base_commit is None:
            raise NotFound(f"The worktree {worktree.path} was not prepared yet.")
        _there(worktree)
        if await facts.commit(self._git, worktree.path, worktree.base_commit) is None:
            raise AgentFault(f"The base commit {worktree.base_commit} is not in {worktree.path} any more.")
        return worktree.base_commit

    async def _remove_folder(self, worktree: Worktree, *, force: bool) -> None:
        path = Path(worktree.path)
        if not path.is_relative_to(self._tasks) or path == self._tasks:
            raise Invalid(f"{path} is not a task's folder under {self._tasks}; it stays.")
        if path.is_dir():
            if not force and any(path.iterdir()):
                raise Conflict(f"{path} holds files; take what you need, and remove the folder by force.")
            await asyncio.to_thread(shutil.rmtree, path)
        _drop_empty(path.parent)


def _plain_folder(worktree: Worktree) -> Worktree:
    try:
        Path(worktree.path).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise Conflict(f"A file is in the way of the folder {worktree.path}; move it away.") from None
    except OSError as error:
        raise AgentFault(f"The folder {worktree.path} cannot be made: {error.strerror}.") from None
    return worktree


def _there(worktree: Worktree) -> None:
    if not Path(worktree.path).is_dir():
        raise NotFound(f"The worktree {worktree.path} does not exist.")


def _refuse_in_the_way(path: Path) -> None:
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise Conflict(f"A file is in the way of the worktree {path}; move it away.")
    if path.is_dir() and any(path.iterdir()):
        raise Conflict(f"{path} holds files and is no worktree of this repository; move it away.")


def _with_room(fault: AgentFault, folder: Path) -> AgentFault:
    """git says that it cannot write, and not why."""
    free = shutil.disk_usage(folder).free >> 20
    if free >= LITTLE_MIB:
        return fault
    return AgentFault(f"{fault.message} The disk of {folder} has {free} MiB left: make room, then resume.")


def _drop_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _safe(name: str) -> str:
    """A name as one part of a path or a branch."""
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")
    return re.sub(r"\.{2,}", ".", kept)[:100] or "work"


def _slug(title: str) -> str:
    plain = unicodedata.normalize("NFKD", title.casefold()).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain)[:SLUG_MAX].strip("-") or "task"

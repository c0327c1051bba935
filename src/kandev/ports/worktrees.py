"""Where a task's agents work on disk: git worktrees and plain folders under the home."""

from dataclasses import dataclass
from typing import Protocol

from kandev.core.board import Repository, Task, Worktree


@dataclass(frozen=True)
class Change:
    """A file that differs from the base. `status`: added, modified, deleted, renamed, untracked."""

    path: str
    status: str
    additions: int
    deletions: int
    old_path: str | None = None


@dataclass(frozen=True)
class FoundRepository:
    """What git says of a path: the repository's top folder (absolute) and its default branch."""

    path: str
    default_branch: str


class Worktrees(Protocol):
    """Implementations bound every call of git with a deadline of their own."""

    async def inspect(self, path: str) -> FoundRepository:
        """Raises Invalid with a sentence: no such folder, not a git repository, bare without a commit, git
        missing."""

    def place(self, task: Task, repository: Repository | None) -> Worktree:
        """Where the task's worktree is or will be; touches nothing."""

    async def prepare(
        self, worktree: Worktree, repository: Repository | None, base_branch: str | None
    ) -> Worktree:
        """Make it exist, or find it as it is (never reset, never forced); `base_commit` is filled in.
        Raises Invalid (unknown base branch, no commit yet), AgentFault (git failed: its sentence)."""

    async def changes(self, worktree: Worktree) -> tuple[Change, ...]:
        """Against the base commit, untracked files included. A plain folder has none. Raises NotFound,
        AgentFault."""

    async def diff(self, worktree: Worktree, path: str | None) -> str:
        """Unified, against the base commit, untracked files included. `path` is relative and stays inside."""

    async def remove(self, worktree: Worktree, repository: Repository | None, *, force: bool) -> None:
        """Take the worktree away; the branch stays. Refuses (Conflict) when work in it is not committed,
        unless `force`."""

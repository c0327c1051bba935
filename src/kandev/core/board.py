"""The things on a board as rows: workspaces, repositories, workflows, tasks, profiles, worktrees.

Not here: what may happen to a task (`task`), and sessions (`session`). All times are RFC 3339 UTC.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

WorkflowStyle = Literal["kanban", "office"]


@dataclass(frozen=True)
class Workspace:
    """Groups repositories, workflows and tasks."""

    id: str
    name: str
    created_at: str
    updated_at: str


@dataclass(frozen=True)
class Repository:
    """A git repository on this machine. `local_path` is absolute."""

    id: str
    workspace_id: str
    name: str
    local_path: str
    default_branch: str
    created_at: str
    updated_at: str


@dataclass(frozen=True)
class Step:
    """A column. `events` holds the actions by event name, as the workflow wrote them; `final` ends a task."""

    id: str
    workflow_id: str
    name: str
    position: int
    events: dict[str, Any] = field(default_factory=dict)
    final: bool = False


@dataclass(frozen=True)
class Workflow:
    """A board: its steps are in order of position."""

    id: str
    workspace_id: str
    name: str
    style: WorkflowStyle
    steps: tuple[Step, ...]
    created_at: str
    updated_at: str


@dataclass(frozen=True)
class TaskRepository:
    """Which repository a task works on, and from which branch (None: the default branch)."""

    repository_id: str
    base_branch: str | None = None


@dataclass(frozen=True)
class PendingMove:
    """A move that waits for the end of a turn. `by`: who asked for it. Without `position` it is last in the
    step."""

    step_id: str
    by: str
    position: int | None = None


@dataclass(frozen=True)
class OwedEnter:
    """What entering a step still owes: the step's `prompt` to the task's agent, and (`completes`) the end of
    its sessions. `entered` is the task's of that entering, so that nothing is done twice or too late."""

    entered: int
    step_id: str
    prompt: str | None = None
    completes: bool = False
    parks: str | None = None
    """Why the messages that wait in the task's sessions do not run by themselves any more."""


@dataclass(frozen=True)
class Task:
    """A card. `version` is for compare-and-set; `state_before` is where a failed launch returns to."""

    id: str
    workspace_id: str
    workflow_id: str
    workflow_step_id: str
    title: str
    description: str
    state: str
    priority: str
    position: int
    created_at: str
    updated_at: str
    parent_id: str | None = None
    agent_profile_id: str | None = None
    repositories: tuple[TaskRepository, ...] = ()
    external_id: str | None = None
    archived_at: str | None = None
    state_before: str | None = None
    error: str | None = None
    office: bool = False
    version: int = 0
    entered: int = 0
    """Grows with every entering of a step, and is never repeated: a turn that began in another entering does
    not move the card."""
    automatic: int = 0
    """Prompts that the workflow sent since somebody said something."""
    pending_move: PendingMove | None = None
    owed_enter: OwedEnter | None = None

    @property
    def works_on(self) -> TaskRepository | None:
        """Its repository; None: a folder of its own."""
        return self.repositories[0] if self.repositories else None


@dataclass(frozen=True)
class Profile:
    """How to start one agent. `secret_env` names the members of `env` that are never read back."""

    id: str
    name: str
    protocol: Literal["acp", "codex"]
    command: tuple[str, ...]
    created_at: str
    updated_at: str
    env: dict[str, str] = field(default_factory=dict)
    secret_env: tuple[str, ...] = ()
    model: str | None = None
    mode: str | None = None
    auto_approve: bool = False
    mcp_servers: tuple[dict[str, Any], ...] = ()
    auth_method: str | None = None
    withhold: tuple[str, ...] = ()
    """Client capabilities that the agent is not offered (`fs`, `terminal`): some agents work better with the
    disk and their own shell."""
    cancel_acknowledge_s: float | None = None
    agent: str | None = None
    """The known agent that a first start found it as (`mock`, `opencode`, …)."""


@dataclass(frozen=True)
class Worktree:
    """Where a task's agents work: a git worktree with a branch of its own, or a plain folder."""

    task_id: str
    path: str
    branch: str | None = None
    base_commit: str | None = None
    repository_id: str | None = None

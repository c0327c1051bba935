"""Payloads of the board's requests: workspaces, repositories, workflows, profiles, tasks.

An optional member may be left out or null; where null means something else than "unchanged", its type is
`Unset`. Not here: payloads about sessions and messages (`gateway_sessions`), and what the answers look like
(`core.payloads`).
"""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Id = Annotated[str, Meta(min_length=1, max_length=200)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Title = Annotated[str, Meta(min_length=1, max_length=500)]
Word = Annotated[str, Meta(min_length=1, max_length=64)]
Text = Annotated[str, Meta(max_length=1 << 20)]
Path = Annotated[str, Meta(min_length=1, max_length=4096)]
Place = Annotated[int, Meta(ge=0, le=1_000_000)]
Limit = Annotated[int, Meta(ge=1, le=1000)]
Seconds = Annotated[float, Meta(gt=0, le=3600)]


class Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every payload shares: an unknown member is an error that names it."""


class Empty(Request, frozen=True, kw_only=True):
    """Nothing is asked for beyond the action."""


class ById(Request, frozen=True, kw_only=True):
    """Names one thing."""

    id: Id


class OfWorkspace(Request, frozen=True, kw_only=True):
    """Names a workspace whose things are asked for."""

    workspace_id: Id


class WorkspaceCreate(Request, frozen=True, kw_only=True):
    """A new workspace."""

    name: Name


class WorkspaceUpdate(Request, frozen=True, kw_only=True):
    """Another name for a workspace."""

    id: Id
    name: Name


class RepositoryCreate(Request, frozen=True, kw_only=True):
    """`local_path` is absolute, on the backend's machine."""

    workspace_id: Id
    local_path: Path
    name: Name | None = None
    default_branch: Name | None = None


class RepositoryUpdate(Request, frozen=True, kw_only=True):
    """What is left out stays."""

    id: Id
    name: Name | None = None
    default_branch: Name | None = None


class NewStep(Request, frozen=True, kw_only=True):
    """A column, as a workflow is created or imported with it."""

    name: Name
    events: dict[str, Any] = {}
    final: bool = False


Style = Literal["kanban", "office"]
Steps = Annotated[list[NewStep], Meta(min_length=1, max_length=100)]


class WorkflowCreate(Request, frozen=True, kw_only=True):
    """Without `steps` it gets those of the Kanban workflow."""

    workspace_id: Id
    name: Name
    style: Style = "kanban"
    steps: Steps | None = None


class WorkflowUpdate(Request, frozen=True, kw_only=True):
    """What is left out stays."""

    id: Id
    name: Name | None = None
    style: Style | None = None


class StepCreate(Request, frozen=True, kw_only=True):
    """`position` from 0; without it the step comes last."""

    workflow_id: Id
    name: Name
    position: Place | None = None
    events: dict[str, Any] = {}
    final: bool = False


class StepUpdate(Request, frozen=True, kw_only=True):
    """What is left out stays; `events` replaces all of them."""

    id: Id
    name: Name | None = None
    events: dict[str, Any] | None = None
    final: bool | None = None


class StepReorder(Request, frozen=True, kw_only=True):
    """`step_ids`: every step of the workflow, in the new order."""

    workflow_id: Id
    step_ids: list[Id]


class WorkflowDocument(Request, frozen=True, kw_only=True):
    """A workflow without ids, as `workflow.export` answers it."""

    version: Literal[1]
    name: Name
    style: Style = "kanban"
    steps: Steps


class WorkflowImport(Request, frozen=True, kw_only=True):
    """A workflow from its document."""

    workspace_id: Id
    workflow: WorkflowDocument


class AgentList(Request, frozen=True, kw_only=True):
    """`versions` asks the found agents for theirs, which takes a moment."""

    versions: bool = True


Protocol = Literal["acp", "codex"]
Capability = Literal["fs", "terminal"]
Words = list[Annotated[str, Meta(max_length=32_768)]]


class ProfileCreate(Request, frozen=True, kw_only=True):
    """`secret_env` names members of `env` that are secret besides those whose names say so."""

    name: Name
    command: Words
    protocol: Protocol = "acp"
    env: dict[str, str] = {}
    secret_env: list[str] = []
    model: str | None = None
    mode: str | None = None
    auto_approve: bool = False
    mcp_servers: list[dict[str, Any]] = []
    auth_method: str | None = None
    withhold: list[Capability] = []
    cancel_acknowledge_s: Seconds | None = None


class ProfileUpdate(Request, frozen=True, kw_only=True):
    """What is left out stays; `***` as the value of a secret keeps it; null takes an optional member away."""

    id: Id
    name: Name | UnsetType = UNSET
    command: Words | UnsetType = UNSET
    protocol: Protocol | UnsetType = UNSET
    env: dict[str, str] | UnsetType = UNSET
    secret_env: list[str] | UnsetType = UNSET
    model: str | UnsetType | None = UNSET
    mode: str | UnsetType | None = UNSET
    auto_approve: bool | UnsetType = UNSET
    mcp_servers: list[dict[str, Any]] | UnsetType = UNSET
    auth_method: str | UnsetType | None = UNSET
    withhold: list[Capability] | UnsetType = UNSET
    cancel_acknowledge_s: Seconds | UnsetType | None = UNSET


class RepositoryChoice(Request, frozen=True, kw_only=True):
    """The repository that a task works on; without `base_branch` from its default branch."""

    repository_id: Id
    base_branch: Name | None = None


class TaskCreate(Request, frozen=True, kw_only=True):
    """Without `workflow_step_id` the task begins in the first step."""

    workspace_id: Id
    workflow_id: Id
    title: Title
    workflow_step_id: Id | None = None
    description: Text | None = None
    parent_id: Id | None = None
    priority: Word | None = None
    repositories: list[RepositoryChoice] | None = None
    agent_profile_id: Id | None = None
    start_agent: bool = False
    external_id: Name | None = None


class TaskList(Request, frozen=True, kw_only=True):
    """`cursor` is `next_cursor` of the page before."""

    workspace_id: Id | None = None
    workflow_id: Id | None = None
    parent_id: Id | None = None
    include_archived: bool = False
    limit: Limit | None = None
    cursor: Id | None = None


class TaskUpdate(Request, frozen=True, kw_only=True):
    """What is left out stays; null takes parent or profile away."""

    id: Id
    title: Title | UnsetType = UNSET
    description: Text | UnsetType = UNSET
    priority: Word | UnsetType = UNSET
    parent_id: Id | UnsetType | None = UNSET
    agent_profile_id: Id | UnsetType | None = UNSET


class TaskMove(Request, frozen=True, kw_only=True):
    """`position` in the step, from 0; without it the task comes last."""

    id: Id
    workflow_step_id: Id
    position: Place | None = None


class TaskState(Request, frozen=True, kw_only=True):
    """A state's word, set by a person or a program."""

    id: Id
    state: Word


class WorkspaceSnapshot(Request, frozen=True, kw_only=True):
    """`cursor` is `next_cursor` of the snapshot or page before."""

    workspace_id: Id
    cursor: Id | None = None


class WorkspaceSubscribe(Request, frozen=True, kw_only=True):
    """`since_seq`: the last sequence number seen; what came after it is replayed instead of a snapshot."""

    workspace_id: Id
    since_seq: Annotated[int, Meta(ge=0, le=(1 << 63) - 1)] | None = None

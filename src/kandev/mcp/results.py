"""What each tool answers, as structured content. Bounded: long texts are cut, long lists come in pages.

Not here: what the tools take (`arguments`).
"""

from typing import Literal

from msgspec import Struct

Status = Literal["queued", "sent", "started"]


class Result(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What all have in common: a member that is not known is left out."""


class Delivered(Result, frozen=True, kw_only=True):
    """`message_task_kandev`. `sent`: the agent has it; `queued`: it waits for the end of a turn; `started`:
    the session was started with it."""

    task_id: str
    session_id: str
    status: Status


class CreatedTask(Result, frozen=True, kw_only=True):
    """`create_task_kandev`. `start_error`: the task is there, and no agent could be started."""

    task_id: str
    state: str
    session_id: str | None = None
    start_error: str | None = None


class Spawned(Result, frozen=True, kw_only=True):
    """`spawn_session_kandev`."""

    task_id: str
    session_id: str
    state: str


class Session(Result, frozen=True, kw_only=True):
    """A session of a task."""

    session_id: str
    name: str
    state: str
    is_primary: bool
    agent_profile_id: str
    queued: int
    since: str
    waiting_for: str | None = None
    parked_reason: str | None = None
    error: str | None = None


class Task(Result, frozen=True, kw_only=True):
    """A task. `description` is cut at a few hundred characters."""

    task_id: str
    title: str
    state: str
    workflow_id: str
    workflow_step_id: str
    step: str
    priority: str
    description: str | None = None
    parent_id: str | None = None
    external_id: str | None = None
    archived_at: str | None = None
    error: str | None = None
    updated_at: str
    sessions: list[Session] | None = None


class Tasks(Result, frozen=True, kw_only=True):
    """`list_tasks_kandev`."""

    tasks: list[Task]
    next_cursor: str | None = None


class Related(Result, frozen=True, kw_only=True):
    """`list_related_tasks_kandev`. `more`: there are more of these; list_tasks_kandev has them all."""

    task: Task
    parent: Task | None = None
    children: list[Task]
    siblings: list[Task]
    more: list[Literal["children", "siblings"]] | None = None


class Sessions(Result, frozen=True, kw_only=True):
    """`list_task_sessions_kandev`: newest first."""

    task_id: str
    sessions: list[Session]
    more: bool = False


class Message(Result, frozen=True, kw_only=True):
    """A line of a conversation. `cut`: so many characters are left out at its end."""

    message_id: str
    author: Literal["user", "agent", "system"]
    type: str
    content: str
    created_at: str
    sender_task_id: str | None = None
    cut: int = 0


class Conversation(Result, frozen=True, kw_only=True):
    """`get_task_conversation_kandev`: oldest first. `next_before` is given when there is more before."""

    task_id: str
    session_id: str
    state: str
    messages: list[Message]
    next_before: str | None = None


class UpdatedTask(Result, frozen=True, kw_only=True):
    """`update_task_kandev`."""

    task_id: str
    title: str
    state: str
    priority: str


class Moved(Result, frozen=True, kw_only=True):
    """`move_task_kandev`. `pending`: the task's turn runs; it moves when that ends."""

    task_id: str
    workflow_step_id: str
    state: str
    pending: bool = False


class Workspace(Result, frozen=True, kw_only=True):
    """A workspace."""

    workspace_id: str
    name: str


class Workspaces(Result, frozen=True, kw_only=True):
    """`list_workspaces_kandev`: your own."""

    workspaces: list[Workspace]


class Workflow(Result, frozen=True, kw_only=True):
    """A workflow."""

    workflow_id: str
    name: str
    style: str


class Workflows(Result, frozen=True, kw_only=True):
    """`list_workflows_kandev`."""

    workflows: list[Workflow]


class Step(Result, frozen=True, kw_only=True):
    """A column. `final`: a task that enters it is completed."""

    workflow_step_id: str
    name: str
    position: int
    final: bool


class Steps(Result, frozen=True, kw_only=True):
    """`list_workflow_steps_kandev`: in order."""

    workflow_id: str
    steps: list[Step]


class Agent(Result, frozen=True, kw_only=True):
    """An agent profile."""

    agent_profile_id: str
    name: str
    agent: str | None = None
    model: str | None = None
    mode: str | None = None


class Agents(Result, frozen=True, kw_only=True):
    """`list_agents_kandev`."""

    agents: list[Agent]


class Answer(Result, frozen=True, kw_only=True):
    """To one question."""

    question_id: str
    answer: str


class AnsweredQuestion(Result, frozen=True, kw_only=True):
    """`ask_user_question_kandev`."""

    status: Literal["answered", "declined", "cancelled", "expired"]
    answers: list[Answer]

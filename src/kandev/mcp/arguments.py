"""What each tool takes. Closed: an unknown, missing or mistyped argument is an error that names it.

No tool takes an argument that says who calls. An optional argument may be left out or null. Not here: what
the tools answer (`results`).
"""

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from kandev.wire.gateway_board import Id, Name, Word

CHARACTERS: int = 1 << 20
OWN = "self"
"""In place of a task's id: the caller's own task."""

Task = Annotated[
    str, Meta(min_length=1, max_length=200, description="Id of a task; `self` is your own task.")
]
Title = Annotated[str, Meta(min_length=1, max_length=500, description="What is to be done, in one line.")]
Prompt = Annotated[str, Meta(min_length=1, max_length=CHARACTERS)]
Mode = Annotated[
    str,
    Meta(
        max_length=64,
        description="`queued` (the default): delivered when the target's current turn ends. `interrupt`: "
        "cancels the current turn of a busy direct child of your task and delivers at once.",
        extra_json_schema={"enum": ["queued", "interrupt"], "default": "queued"},
    ),
]
Key = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=200,
        description="A name of your choice for this message: sent again with the same key and text, it is "
        "still one message, and the call tells what became of it.",
    ),
]
Cursor = Annotated[str, Meta(min_length=1, max_length=200, description="`next_cursor` of the page before.")]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What all have in common."""


class Nothing(Arguments, frozen=True, kw_only=True):
    """A tool without arguments."""


class MessageTask(Arguments, frozen=True, kw_only=True):
    """`message_task_kandev`."""

    task_id: Annotated[str, Meta(min_length=1, max_length=200, description="Id of the task to message.")]
    prompt: Annotated[Prompt, Meta(description="The message for the task's agent.")]
    session_id: (
        Annotated[Id, Meta(description="One session of the task. Left out: its primary one.")] | None
    ) = None
    delivery_mode: Mode | None = None
    idempotency_key: Key | None = None


class MessageFromTask(MessageTask, frozen=True, kw_only=True):
    """The payload of `mcp.message_task`: the tool's arguments, and who sends, from the connection."""

    sender_task_id: Id
    sender_session_id: Id | None = None


class CreateTask(Arguments, frozen=True, kw_only=True):
    """`create_task_kandev`."""

    title: Title
    prompt: (
        Annotated[
            Prompt,
            Meta(description="What the task's agent is told first. Left out: the title."),
        ]
        | None
    ) = None
    parent_id: (
        Annotated[
            Id,
            Meta(
                description="`self` makes it a direct child of your task: then you may interrupt its agent. "
                "Left out: it has no parent."
            ),
        ]
        | None
    ) = None
    workflow_id: Annotated[Id, Meta(description="Left out: your task's workflow.")] | None = None
    workflow_step_id: Annotated[Id, Meta(description="Left out: the workflow's first step.")] | None = None
    agent_profile_id: Annotated[Id, Meta(description="Which agent works on it. Left out: yours.")] | None = (
        None
    )
    start_agent: Annotated[bool, Meta(description="Whether an agent begins at once.")] = True
    repository_id: Annotated[Id, Meta(description="Left out: your task's repository.")] | None = None
    base_branch: Annotated[Name, Meta(description="The branch that its worktree starts from.")] | None = None
    external_id: Annotated[Name, Meta(description="Its name elsewhere; unique in the workspace.")] | None = (
        None
    )
    blocked_by: (
        Annotated[list[Id], Meta(max_length=100, description="Not supported: leave it out.")] | None
    ) = None


class SpawnSession(Arguments, frozen=True, kw_only=True):
    """`spawn_session_kandev`."""

    task_id: Annotated[
        str,
        Meta(min_length=1, max_length=200, description="`self`, or the id of a direct child of your task."),
    ]
    prompt: Annotated[Prompt, Meta(description="What the new agent is told first.")] | None = None
    agent_profile_id: (
        Annotated[Id, Meta(description="Which agent. Left out: the task's own, else yours.")] | None
    ) = None


class UpdateTask(Arguments, frozen=True, kw_only=True):
    """`update_task_kandev`."""

    task_id: Task
    title: Title | None = None
    description: Annotated[str, Meta(max_length=CHARACTERS, description="What the task is about.")] | None = (
        None
    )
    priority: Annotated[Word, Meta(description="low, medium, high, or a word of your own.")] | None = None
    state: (
        Annotated[
            Word,
            Meta(
                description="The card's state, e.g. BLOCKED or REVIEW. COMPLETED ends the task's sessions: "
                "only for a direct child of your task."
            ),
        ]
        | None
    ) = None


class MoveTask(Arguments, frozen=True, kw_only=True):
    """`move_task_kandev`."""

    task_id: Task
    workflow_step_id: Annotated[Id, Meta(description="Where to, as list_workflow_steps_kandev says.")]
    position: (
        Annotated[int, Meta(ge=0, le=1_000_000, description="Place in the step, from 0. Left out: last.")]
        | None
    ) = None


class ListTasks(Arguments, frozen=True, kw_only=True):
    """`list_tasks_kandev`."""

    workflow_id: Annotated[Id, Meta(description="Only tasks of this workflow.")] | None = None
    parent_id: (
        Annotated[Id, Meta(description="Only direct children of this task; `self` is your own.")] | None
    ) = None
    include_archived: bool = False
    limit: Annotated[int, Meta(ge=1, le=100)] = 50
    cursor: Cursor | None = None


class OfTask(Arguments, frozen=True, kw_only=True):
    """A tool that asks about one task."""

    task_id: Task = OWN


class Conversation(Arguments, frozen=True, kw_only=True):
    """`get_task_conversation_kandev`."""

    task_id: Task
    session_id: (
        Annotated[Id, Meta(description="Left out: the session that a message to the task would reach.")]
        | None
    ) = None
    limit: Annotated[int, Meta(ge=1, le=100, description="How many messages at most.")] = 20
    before: Annotated[Id, Meta(description="`next_before` of the page before: older messages.")] | None = None


class ListSteps(Arguments, frozen=True, kw_only=True):
    """`list_workflow_steps_kandev`."""

    workflow_id: Annotated[Id, Meta(description="Left out: your task's workflow.")] | None = None


class Option(Arguments, frozen=True, kw_only=True):
    """One answer that is offered."""

    label: Annotated[str, Meta(min_length=1, max_length=200, description="The answer, in a few words.")]
    description: Annotated[str, Meta(max_length=2000, description="What it means.")] | None = None


class UserQuestion(Arguments, frozen=True, kw_only=True):
    """One question."""

    prompt: Annotated[str, Meta(min_length=1, max_length=20_000, description="What you want to know.")]
    id: Annotated[str, Meta(min_length=1, max_length=200, description="A name of your choice.")] | None = None
    title: Annotated[str, Meta(max_length=200, description="What it is about, in a few words.")] | None = None
    options: Annotated[
        list[Option], Meta(max_length=20, description="Answers to choose from; a person may say another.")
    ] = msgspec.field(default_factory=list)


class AskUserQuestion(Arguments, frozen=True, kw_only=True):
    """`ask_user_question_kandev`."""

    questions: Annotated[
        list[UserQuestion], Meta(min_length=1, max_length=10, description="One question for now.")
    ]
    context: (
        Annotated[str, Meta(max_length=20_000, description="What one needs to know to answer.")] | None
    ) = None

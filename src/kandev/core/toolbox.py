"""Which of Kandev's tools an agent has, by the mode of its session.

The one list: the context block (`context_block`), the MCP server and the documentation are made from it. Not
here: what the tools take and do.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, get_args

from kandev.core.board import Task

Mode = Literal["task", "config", "office", "external"]
"""`task`: an agent on a task of a kanban workflow; `office`: one of an office workflow; `config`: one that
sets Kandev up; `external`: a client of the backend's own address."""

MODES: Final[tuple[Mode, ...]] = get_args(Mode)
MESSAGE: Final = "message_task_kandev"
STOP: Final = "stop_task_kandev"
SPAWN: Final = "spawn_session_kandev"
ASK: Final = "ask_user_question_kandev"

NAMES: Final[Mapping[Mode, tuple[str, ...]]] = MappingProxyType(
    {
        "task": (
            MESSAGE,
            "create_task_kandev",
            SPAWN,
            "list_related_tasks_kandev",
            "list_tasks_kandev",
            "list_task_sessions_kandev",
            "get_task_conversation_kandev",
            "update_task_kandev",
            "move_task_kandev",
            "list_workspaces_kandev",
            "list_workflows_kandev",
            "list_workflow_steps_kandev",
            "list_agents_kandev",
            ASK,
        ),
        "config": (),
        "office": ("list_related_tasks_kandev", ASK),
        "external": (),
    }
)


def mode_of(task: Task) -> Mode:
    """The mode of the sessions of a task."""
    return "office" if task.office else "task"

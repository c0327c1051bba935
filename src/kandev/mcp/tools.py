"""The tools that agents see: what they are called, say, take and answer.

Which mode has which stands in `core.toolbox`, so that the context block names the same. Not here: what they
do (`actions`), and how a call travels (`server`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

import msgspec

from kandev.core.context_block import choice
from kandev.core.toolbox import ASK, MESSAGE, MODES, NAMES, SPAWN, Mode
from kandev.mcp import arguments, results
from kandev.mcp.caller import Caller
from kandev.mcp.schemas import schema
from kandev.wire.gateway import read_payload


@dataclass(frozen=True)
class Tool:
    """One tool. `read_only`: changes nothing. `destructive`: may undo or end what others do. `idempotent`:
    the same call once more changes nothing further."""

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = False
    names_sender: bool = False
    """Its action is told who sends; the connection says who that is."""

    @property
    def action(self) -> str:
        """The action of the backend that it asks for."""
        return f"mcp.{self.name.removesuffix('_kandev')}"

    @property
    def modes(self) -> frozenset[Mode]:
        """The modes whose agents have it."""
        return frozenset(mode for mode in MODES if self.name in NAMES[mode])

    @property
    def input_schema(self) -> dict[str, Any]:
        """JSON schema of the arguments."""
        return schema(self.arguments)

    @property
    def output(self) -> dict[str, Any]:
        """JSON schema of the structured content."""
        return schema(self.answer)

    def payload(self, given: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
        """The action's payload for these arguments. Raises BadPayload, which names the argument."""
        read_payload(dict(given), self.arguments)
        if not self.names_sender:
            return dict(given)
        return {**given, "sender_task_id": caller.task_id, "sender_session_id": caller.session_id}


def _looks(
    name: str,
    title: str,
    description: str,
    takes: type[msgspec.Struct],
    answer: type[msgspec.Struct],
) -> Tool:
    return Tool(name, title, description, takes, answer, read_only=True, idempotent=True)


_ALL: Final = (
    Tool(
        MESSAGE,
        "Message a task's agent",
        "\n".join(
            [
                *choice(NAMES["task"]),
                "Sends a message to the agent of another task of your workspace. The agent is told that "
                "your task sent it, and how to reply. delivery_mode only matters while the target is "
                "busy; without it the message is queued. `interrupt` by any other task than the direct "
                "parent is refused, and nothing is sent. The answer's status says what happened: `sent`, "
                "the agent has it; `queued`, it waits for the end of a turn and is delivered then, so do "
                "not send it again; `started`, the session was started with it.",
            ]
        ),
        arguments.MessageTask,
        results.Delivered,
        destructive=True,
        names_sender=True,
    ),
    Tool(
        "create_task_kandev",
        "Create a task",
        "Creates a task, and starts an agent on it unless start_agent is false. With parent_id `self` it "
        "becomes a direct child of your task. Whatever is left out is as in your own task.",
        arguments.CreateTask,
        results.CreatedTask,
    ),
    Tool(
        SPAWN,
        "Start a new session",
        "Starts a new session, a fresh conversation with an agent of its own, on your own task or on a "
        "direct child of it: for example when the sessions of a child have failed or were cancelled and "
        "take no message.",
        arguments.SpawnSession,
        results.Spawned,
    ),
    _looks(
        "list_related_tasks_kandev",
        "List related tasks",
        "Parent, children and siblings of a task (your own, if you name none), each with its state and "
        "sessions.",
        arguments.OfTask,
        results.Related,
    ),
    _looks(
        "list_tasks_kandev",
        "List tasks",
        "The tasks of your workspace by creation, page by page; of one workflow or one parent if you "
        "name it.",
        arguments.ListTasks,
        results.Tasks,
    ),
    _looks(
        "list_task_sessions_kandev",
        "List a task's sessions",
        "The sessions of a task, newest first, with their states.",
        arguments.OfTask,
        results.Sessions,
    ),
    _looks(
        "get_task_conversation_kandev",
        "Read a task's conversation",
        "The latest messages of a task's session, oldest first, and the earlier ones page by page. Long "
        "messages are cut.",
        arguments.Conversation,
        results.Conversation,
    ),
    Tool(
        "update_task_kandev",
        "Change a task",
        "Changes title, description, priority or state of a task; what is left out stays. COMPLETED ends "
        "the task's sessions, so only its direct parent may set it.",
        arguments.UpdateTask,
        results.UpdatedTask,
        destructive=True,
        idempotent=True,
    ),
    Tool(
        "move_task_kandev",
        "Move a task",
        "Moves a task to a step of a workflow of your workspace: at once, or, while a turn of the task runs, "
        "at the end of that turn (`pending`; a later move takes the place of one that waits). A step that is "
        "final completes the task and ends its sessions, so only the task itself and its direct parent may "
        "move it there.",
        arguments.MoveTask,
        results.Moved,
        destructive=True,
        idempotent=True,
    ),
    _looks(
        "list_workspaces_kandev",
        "List workspaces",
        "The workspace that you work in.",
        arguments.Nothing,
        results.Workspaces,
    ),
    _looks(
        "list_workflows_kandev",
        "List workflows",
        "The workflows of your workspace.",
        arguments.Nothing,
        results.Workflows,
    ),
    _looks(
        "list_workflow_steps_kandev",
        "List a workflow's steps",
        "The steps of a workflow (your task's, if you name none), in order.",
        arguments.ListSteps,
        results.Steps,
    ),
    _looks(
        "list_agents_kandev",
        "List agents",
        "The agent profiles that a task can be worked on with.",
        arguments.Nothing,
        results.Agents,
    ),
    Tool(
        ASK,
        "Ask a person",
        "Asks the person who watches your task, and waits for the answer: minutes or hours may pass. One "
        "question, with options to choose from if you can name them. The status says how it ended: "
        "`answered`; `declined`, nobody will answer; `cancelled`, your turn is being ended; `expired`. If "
        "your client gives the call up, end your turn: the answer then comes as your next message.",
        arguments.AskUserQuestion,
        results.AnsweredQuestion,
    ),
)

TOOLS: Final[Mapping[str, Tool]] = MappingProxyType({tool.name: tool for tool in _ALL})


def tools_of(mode: Mode) -> tuple[Tool, ...]:
    """What an agent of this mode has, in the order of the context block."""
    return tuple(TOOLS[name] for name in NAMES[mode])

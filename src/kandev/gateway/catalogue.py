"""Every action that a public door knows.

Actions that begin with `mcp.` are not in it: no public door may reach them, whatever else is wrong with a
request.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from kandev.gateway import actions_board, actions_queue, actions_sessions, actions_tasks
from kandev.gateway.action import Action
from kandev.wire import gateway_board, gateway_sessions

MCP: Final = "mcp."
STREAM_RESULT: Final = (
    "a snapshot and seq; with since_seq only seq (what was missed follows), or reload and a snapshot"
)

STREAMS: Final = (
    Action(
        "session.subscribe",
        gateway_sessions.SessionSubscribe,
        "Follow a session: {session, messages, permissions, queue}, then its notifications.",
        STREAM_RESULT,
        mutates=False,
        stream=True,
    ),
    Action(
        "session.unsubscribe",
        gateway_sessions.OfSession,
        "Follow it no longer.",
        "{success}",
        mutates=False,
        stream=True,
    ),
    Action(
        "workspace.subscribe",
        gateway_board.WorkspaceSubscribe,
        "Follow a workspace: {workspace, workflows, tasks, sessions}, then its notifications.",
        STREAM_RESULT,
        mutates=False,
        stream=True,
    ),
    Action(
        "workspace.unsubscribe",
        gateway_board.OfWorkspace,
        "Follow it no longer.",
        "{success}",
        mutates=False,
        stream=True,
    ),
)


def _collect() -> Mapping[str, Action]:
    modules = (actions_board, actions_tasks, actions_sessions, actions_queue)
    found = {action.name: action for module in modules for action in module.chapter.actions}
    return MappingProxyType(found | {action.name: action for action in STREAMS})


ACTIONS: Final = _collect()

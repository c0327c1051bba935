"""What clients see of each thing: the JSON object of the contract's catalogue, as plain dictionaries.

Used for answers and notifications alike, so that both always agree. Not here: the shapes that come in
(`wire.gateway`).
"""

from collections.abc import Mapping
from typing import Any, Final

from kandev.core.board import Profile, Repository, Step, Task, Workflow, Workspace, Worktree
from kandev.core.records import EntryRecord, SessionRecord, TurnRecord
from kandev.core.session import Session
from kandev.core.transcript import Message
from kandev.core.views import execution_status, held, wire_state

HIDDEN = "***"


def _known(**members: Any) -> dict[str, Any]:
    """Without the members that are None: optional on the wire."""
    return {name: value for name, value in members.items() if value is not None}


def workspace(row: Workspace) -> dict[str, Any]:
    """`workspace.*`."""
    return {"id": row.id, "name": row.name, "created_at": row.created_at, "updated_at": row.updated_at}


def repository(row: Repository) -> dict[str, Any]:
    """`repository.*`."""
    return {
        "id": row.id,
        "workspace_id": row.workspace_id,
        "name": row.name,
        "local_path": row.local_path,
        "default_branch": row.default_branch,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def step(row: Step) -> dict[str, Any]:
    """A column of a workflow."""
    return {
        "id": row.id,
        "workflow_id": row.workflow_id,
        "name": row.name,
        "position": row.position,
        "events": row.events,
        "final": row.final,
    }


def workflow(row: Workflow) -> dict[str, Any]:
    """`workflow.*`, steps in order."""
    return {
        "id": row.id,
        "workspace_id": row.workspace_id,
        "name": row.name,
        "style": row.style,
        "steps": [step(s) for s in row.steps],
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def profile(row: Profile) -> dict[str, Any]:
    """`agent.profile.*`: values of secret environment are written, never read back."""
    return {
        **_known(model=row.model, mode=row.mode, auth_method=row.auth_method, agent=row.agent),
        **_known(cancel_acknowledge_s=row.cancel_acknowledge_s),
        "id": row.id,
        "name": row.name,
        "protocol": row.protocol,
        "command": list(row.command),
        "env": {k: HIDDEN if k in row.secret_env else v for k, v in row.env.items()},
        "secret_env": list(row.secret_env),
        "auto_approve": row.auto_approve,
        "withhold": list(row.withhold),
        "mcp_servers": [_without_secrets(s) for s in row.mcp_servers],
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _without_secrets(server: Mapping[str, Any]) -> dict[str, Any]:
    """Header and environment values of an MCP server are secrets."""
    hidden = dict(server)
    for member in ("headers", "env"):
        values = hidden.get(member)
        if isinstance(values, Mapping):
            hidden[member] = dict.fromkeys(values, HIDDEN)
        elif isinstance(values, list):
            hidden[member] = [{**v, "value": HIDDEN} if isinstance(v, Mapping) else v for v in values]
    return hidden


def task(row: Task) -> dict[str, Any]:
    """`task.*`."""
    return {
        **_known(parent_id=row.parent_id, agent_profile_id=row.agent_profile_id, external_id=row.external_id),
        **_known(archived_at=row.archived_at, error=row.error, pending_move=_pending(row)),
        "id": row.id,
        "workspace_id": row.workspace_id,
        "workflow_id": row.workflow_id,
        "workflow_step_id": row.workflow_step_id,
        "title": row.title,
        "description": row.description,
        "state": row.state,
        "priority": row.priority,
        "position": row.position,
        "repositories": [
            _known(repository_id=r.repository_id, base_branch=r.base_branch) for r in row.repositories
        ],
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _pending(row: Task) -> dict[str, Any] | None:
    """A move that waits for the end of a turn."""
    move = row.pending_move
    if move is None:
        return None
    return {**_known(position=move.position), "workflow_step_id": move.step_id, "by": move.by}


def session(
    row: SessionRecord, *, queue_max: int, turn: TurnRecord | None = None, worktree: Worktree | None = None
) -> dict[str, Any]:
    """`session.*`. `turn` is the active one, `worktree` the task's."""
    value = row.value
    status = execution_status(value)
    execution = {"id": value.execution, "status": status} if status else None
    active = turn_payload(turn) if turn is not None and value.turn is not None else None
    return {
        **_known(waiting_for=row.waiting_for, execution=execution, active_turn=active),
        **_known(parked_reason=held(value), error=row.error, agent=row.agent),
        **_known(
            worktree_path=worktree.path if worktree else None, branch=worktree.branch if worktree else None
        ),
        "id": row.id,
        "task_id": row.task_id,
        "name": row.name,
        "agent_profile_id": row.agent_profile_id,
        "is_primary": row.is_primary,
        "state": wire_state(value),
        "since": row.since,
        "cancellation_pending": value.cancelling,
        "cancellation_revision": value.cancellations,
        "queue": queue(value, queue_max),
        "meta": row.meta,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def queue(value: Session, queue_max: int) -> dict[str, Any]:
    """How many messages wait, how many may, and whether they run by themselves."""
    return {"count": len(value.queue), "max": queue_max, "auto_run": held(value) is None}


def turn_payload(row: TurnRecord) -> dict[str, Any]:
    """A turn."""
    return {
        **_known(own_turn_id=row.own_turn_id, ended_at=row.ended_at, stop_reason=row.stop_reason),
        **_known(cause=row.cause, error=row.error),
        "id": row.id,
        "execution_id": row.execution_id,
        "prompt_generation": row.prompt_generation,
        "started_at": row.started_at,
    }


def message(row: Message) -> dict[str, Any]:
    """`message.list` and `session.message.*`."""
    return {
        "id": row.id,
        "session_id": row.session_id,
        "turn_id": row.turn_id,
        "author_type": row.author_type,
        "type": row.type,
        "content": row.content,
        "metadata": row.metadata,
        "seq": row.seq,
        "created_at": row.created_at,
    }


QUESTION: Final = ("pending_id", "question_id", "prompt", "options", "title", "context")


def question(row: Message) -> dict[str, Any]:
    """An open question of an agent."""
    shown: dict[str, Any] = {name: row.metadata[name] for name in QUESTION if name in row.metadata}
    return {**shown, "asked_at": row.created_at}


def entry(row: EntryRecord, position: int, coalescing_key: str | None = None) -> dict[str, Any]:
    """`message.queue.get`; `position` from 0."""
    return {
        **_known(
            sender_task_id=row.sender_task_id,
            sender_session_id=row.sender_session_id,
            coalescing_key=coalescing_key,
        ),
        "id": row.id,
        "position": position,
        "content": row.content,
        "queued_by": row.queued_by,
        "state": row.state,
        "queued_at": row.queued_at,
    }


def fate(row: EntryRecord) -> dict[str, Any]:
    """`message.status`."""
    return {**_known(turn_id=row.turn_id, by=row.by), "state": row.state, "at": row.at}

"""Subscribing: the snapshot of a session or workspace, or what was missed since a sequence number.

Snapshot and sequence number come from one read. Not here: who is told what afterwards (`hub`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kandev.core import payloads
from kandev.core.errors import Invalid
from kandev.core.records import Notification, SessionRecord
from kandev.gateway.fitting import LATEST_BYTES, board, fitting
from kandev.gateway.hub import Client, Hub, Subscription
from kandev.gateway.outbox import Stream
from kandev.ports.store import Tx
from kandev.runtime.pictures import picture
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.queue_entries import queue_payload
from kandev.wire.gateway import read_payload
from kandev.wire.gateway_board import OfWorkspace, WorkspaceSubscribe
from kandev.wire.gateway_sessions import OfSession, SessionSubscribe

SHOWN_MESSAGES: Final = 100

Snapshot = Callable[[Tx], dict[str, Any]]


@dataclass(frozen=True)
class Read:
    """What one read of the store found."""

    payload: dict[str, Any]
    since: int
    missed: Sequence[Notification] = ()


@dataclass(frozen=True)
class Opened:
    """The answer, and the subscription to start in the same step as the answer is queued."""

    payload: dict[str, Any]
    start: Callable[[], None]


class Streams:
    """The four actions that belong to a connection."""

    def __init__(self, ctx: Context, hub: Hub) -> None:
        self._ctx, self._hub = ctx, hub

    async def ask(self, client: Client, action: str, payload: dict[str, Any]) -> Opened:
        """Raises BadPayload, NotFound."""
        match action:
            case "session.subscribe":
                session = read_payload(payload, SessionSubscribe)
                stream: Stream = ("session", session.session_id)
                return await self._open(client, stream, session.since_seq, self._session(session.session_id))
            case "workspace.subscribe":
                workspace = read_payload(payload, WorkspaceSubscribe)
                stream = ("workspace", workspace.workspace_id)
                snapshot = self._workspace(workspace.workspace_id)
                return await self._open(client, stream, workspace.since_seq, snapshot)
            case "session.unsubscribe":
                return self._leave(client, ("session", read_payload(payload, OfSession).session_id))
            case "workspace.unsubscribe":
                return self._leave(client, ("workspace", read_payload(payload, OfWorkspace).workspace_id))
        raise Invalid(f"{action} is no subscription.")

    async def _open(
        self, client: Client, stream: Stream, since_seq: int | None, snapshot: Snapshot
    ) -> Opened:
        subscription = self._hub.follow(client, stream)
        try:
            found = await self._ctx.store.read(lambda tx: _read(tx, stream, since_seq, snapshot))
        except BaseException:
            self._hub.unfollow(client, stream, subscription)
            raise
        return Opened(found.payload, self._starter(client, subscription, found))

    def _starter(self, client: Client, subscription: Subscription, found: Read) -> Callable[[], None]:
        return lambda: self._hub.start(client, subscription, found.since, found.missed)

    def _leave(self, client: Client, stream: Stream) -> Opened:
        self._hub.unfollow(client, stream)
        return Opened({"success": True}, lambda: None)

    def _session(self, session_id: str) -> Snapshot:
        def look(tx: Tx) -> dict[str, Any]:
            record = finding.session(tx, session_id)
            return {
                "session_id": session_id,
                "session": picture(tx, record, self._ctx.deadlines.queue_max),
                "messages": _latest(tx, session_id),
                "permissions": open_permissions(tx, record),
                "queue": queue_payload(tx, record, self._ctx.deadlines.queue_max),
            }

        return look

    def _workspace(self, workspace_id: str) -> Snapshot:
        def look(tx: Tx) -> dict[str, Any]:
            return {
                **board(tx, workspace_id, self._ctx.deadlines.queue_max),
                "workspace": payloads.workspace(finding.workspace(tx, workspace_id)),
                "workflows": [payloads.workflow(row) for row in tx.workflows.list(workspace_id)],
            }

        return look


def _read(tx: Tx, stream: Stream, since_seq: int | None, snapshot: Snapshot) -> Read:
    kind, id = stream
    last = tx.notifications.last(kind, id)
    if since_seq is None:
        return Read({**snapshot(tx), "seq": last}, last)
    finding.session(tx, id) if kind == "session" else finding.workspace(tx, id)
    missed = tx.notifications.since(kind, id, since_seq)
    if missed is None:
        return Read({**snapshot(tx), "seq": last, "reload": True}, last)
    return Read({f"{kind}_id": id, "seq": last, "reload": False}, since_seq, missed)


def _latest(tx: Tx, session_id: str) -> list[dict[str, Any]]:
    """The newest messages, oldest first."""
    rows = tx.messages.latest(session_id, SHOWN_MESSAGES)
    return fitting((payloads.message(row) for row in reversed(rows)), LATEST_BYTES)[::-1]


def open_permissions(tx: Tx, record: SessionRecord) -> list[dict[str, Any]]:
    """The requests that wait for a decision: `{request_id, title, options, message_id}`."""
    waiting = [p.request for p in record.value.permissions if p.answer is None]
    found = [tx.messages.find(record.id, "permission_request", request) for request in waiting]
    return [
        {
            "request_id": message.metadata.get("request_id"),
            "title": message.content,
            "options": message.metadata.get("options", []),
            "message_id": message.id,
        }
        for message in found
        if message is not None
    ]

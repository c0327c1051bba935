"""Sessions as rows: list, read, rename, make primary.

Not here: anything that changes what a session does (`launch_session`, `cancel_turn`, `stop_session`, …).
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from kandev.core.records import SessionRecord
from kandev.ports.store import Tx
from kandev.runtime.pictures import announce_session, picture
from kandev.usecases import finding
from kandev.usecases.context import Context
from kandev.usecases.workspaces import said


async def list_sessions(ctx: Context, *, task_id: str) -> list[dict[str, Any]]:
    """Payloads, newest first. Raises NotFound."""

    def look(tx: Tx) -> list[dict[str, Any]]:
        rows = tx.sessions.of_task(finding.task(tx, task_id).id)
        return [picture(tx, row, ctx.deadlines.queue_max) for row in rows]

    return await ctx.store.read(look)


async def get_session(ctx: Context, *, session_id: str) -> dict[str, Any]:
    """The payload. Raises NotFound."""

    def look(tx: Tx) -> dict[str, Any]:
        return picture(tx, finding.session(tx, session_id), ctx.deadlines.queue_max)

    return await ctx.store.read(look)


async def rename_session(ctx: Context, *, session_id: str, name: str) -> dict[str, Any]:
    """The payload. Raises NotFound, Invalid for a blank name."""
    wanted = said(name, "name")

    def change(tx: Tx) -> dict[str, Any]:
        return _write(ctx, tx, finding.session(tx, session_id), lambda row: replace(row, name=wanted))

    return await ctx.store.write(change)


async def set_primary_session(ctx: Context, *, session_id: str) -> dict[str, Any]:
    """The task's other sessions are not primary any more. The payload. Raises NotFound."""

    def change(tx: Tx) -> dict[str, Any]:
        chosen = finding.session(tx, session_id)
        for other in tx.sessions.of_task(chosen.task_id):
            if other.is_primary and other.id != session_id:
                _write(ctx, tx, other, lambda row: replace(row, is_primary=False))
        return _write(ctx, tx, chosen, lambda row: replace(row, is_primary=True))

    return await ctx.store.write(change)


def _write(
    ctx: Context, tx: Tx, before: SessionRecord, change: Callable[[SessionRecord], SessionRecord]
) -> dict[str, Any]:
    after = change(before)
    if after != before:
        tx.sessions.update(replace(after, updated_at=ctx.clock.now()))
        after = finding.session(tx, before.id)
        announce_session(tx, after, ctx.deadlines.queue_max, "session.updated")
    return picture(tx, after, ctx.deadlines.queue_max)

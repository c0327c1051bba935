"""End one session: CANCELLED is committed and answered first, the process is torn down behind it."""

from kandev.core.errors import NotFound
from kandev.core.inputs import Stop
from kandev.core.session import Outcome
from kandev.usecases import finding
from kandev.usecases.context import Context

DEFAULT_REASON = "stopped via API"


async def stop_session(
    ctx: Context, *, session_id: str, reason: str | None = None, force: bool = False
) -> None:
    """Raises NotFound: "session not found", or "execution not found" when nothing lives."""
    await ctx.store.read(lambda tx: finding.session(tx, session_id))
    if not await stop_one(ctx, session_id, reason or DEFAULT_REASON, force=force):
        raise NotFound("execution not found")


async def stop_one(
    ctx: Context, session_id: str, reason: str, *, force: bool, finally_as: Outcome | None = None
) -> bool:
    """True: accepted. False: nothing lived, nothing changed. `finally_as`: its task is over, so an idle
    session ends too, with this outcome."""
    outcome = finally_as or Outcome.CANCELLED
    reply = await ctx.sessions.ask(
        session_id, lambda ask: Stop(ask, outcome, reason, force=force, idle_too=finally_as is not None)
    )
    return reply.status == "stopped"

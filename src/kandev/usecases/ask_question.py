"""An agent asks a person, by a tool call that waits for the answer.

The call that comes again after a crash of ours finds its question. A call that is given up leaves it open: a
late answer is the session's next prompt. Not here: answering (`answer_question`), the rules
(`core.questions`).
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kandev.core.errors import Conflict
from kandev.core.inputs import AskPerson, QuestionLeft
from kandev.core.transcript import Message
from kandev.ports.store import Tx
from kandev.runtime.desk import Outcome, Place
from kandev.runtime.prompting import ANSWER
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.context import Context

PROGRESS_S: Final = 5.0
"""How often a call that waits tells its agent so: clients give up calls that say nothing."""
SETTLED: Final[Mapping[str, Outcome]] = {
    "answered": "answered",
    "declined": "declined",
    "cancelled": "cancelled",
    "expired": "expired",
}


@dataclass(frozen=True)
class Asking:
    """The open call: who may give it up, and whether the answer arrives. `told` says that it still waits."""

    left: asyncio.Event = field(default_factory=asyncio.Event)
    served: "asyncio.Future[bool] | None" = None
    told: Callable[[], Awaitable[None]] | None = None


def pending_id(session_id: str, name: str) -> str:
    """The name of a question, which says whose it is."""
    return f"{session_id}:{name}"


def session_of(pending: str) -> str:
    """The session that a question belongs to, by its name."""
    return pending.rpartition(":")[0]


def answer_entry(pending: str) -> str:
    """The id of the entry that answers a question: there is one at most."""
    return f"{ANSWER}{pending}"


async def ask_question(
    ctx: Context, session_id: str, name: str, payload: Mapping[str, Any], call: Asking
) -> tuple[Outcome, str]:
    """How it ended, and the answer. Raises Conflict without a turn in which it could be asked, and when the
    call was given up."""
    pending = pending_id(session_id, name)
    known = await ctx.store.read(lambda tx: _known(tx, session_id, pending))
    if known is not None and (settled := SETTLED.get(str(known.metadata.get("status")))) not in (
        None,
        "answered",
    ):
        return settled, ""
    with ctx.sessions.desk.place(pending) as place:
        if known is None or known.metadata.get("status") == "pending":
            refuse(await ctx.sessions.ask(session_id, lambda a: AskPerson(a, pending, dict(payload))))
        try:
            return await _answered(place, call)
        finally:
            if not place.outcome.done() and call.left.is_set():
                await ctx.sessions.tell(session_id, QuestionLeft(pending))


def _known(tx: Tx, session_id: str, pending: str) -> Message | None:
    finding.session(tx, session_id)
    return tx.messages.find(session_id, "clarification_request", pending)


async def _answered(place: Place, call: Asking) -> tuple[Outcome, str]:
    left = asyncio.ensure_future(call.left.wait())
    try:
        while not place.outcome.done() and not left.done():
            waited: set[asyncio.Future[Any]] = {place.outcome, left}
            await asyncio.wait(waited, timeout=PROGRESS_S, return_when=asyncio.FIRST_COMPLETED)
            if not place.outcome.done() and not left.done() and call.told is not None:
                await call.told()
    finally:
        left.cancel()
    if not place.outcome.done():
        raise Conflict("The call was given up; a late answer is the next message.")
    place.arrives(call.served)
    return place.outcome.result()

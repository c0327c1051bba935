"""An agent asks a person, by a tool call that waits for the answer.

The call that comes again after a crash of ours finds its question. A call that is given up leaves it open: a
late answer is the session's next prompt. Not here: answering (`answer_question`), the rules
(`core.questions`).
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kandev.core.errors import Conflict
from kandev.core.inputs import AskPerson, QuestionLeft
from kandev.core.transcript import Message
from kandev.ports.store import Tx
from kandev.runtime.awake import Within
from kandev.runtime.desk import Outcome, Place
from kandev.runtime.prompting import ANSWER
from kandev.usecases import finding
from kandev.usecases.answers import refuse
from kandev.usecases.context import Context

PROGRESS_S: Final = 5.0
"""How often a call that waits tells its agent so: clients give up calls that say nothing."""
TOO_LATE: Final = (
    "The question was answered, but not to this call: the answer is a message, or was given before."
)
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
    # At the desk before anybody looks: an answer that is on its way then finds the call.
    with ctx.sessions.desk.place(pending) as place:
        known, in_hand = await ctx.store.read(lambda tx: _known(tx, session_id, pending))
        status = str(known.metadata.get("status")) if known else "pending"
        settled = SETTLED.get(status)
        if settled is not None and settled != "answered":
            return settled, ""
        if settled is not None:
            return await _once_more(ctx, place, call, in_hand=in_hand)
        refuse(await ctx.sessions.ask(session_id, lambda a: AskPerson(a, pending, dict(payload))))
        try:
            return await _answered(place, call)
        finally:
            if not place.outcome.done() and call.left.is_set():
                await ctx.sessions.tell(session_id, QuestionLeft(pending))


async def _once_more(ctx: Context, place: Place, call: Asking, *, in_hand: bool) -> tuple[Outcome, str]:
    """A call that comes again to a question that was answered meanwhile. The answer is handed to it soon, or
    went another way and never will be."""
    if in_hand or place.outcome.done():
        with contextlib.suppress(TimeoutError):
            async with Within(ctx.deadlines.agentctl_call_s):
                return await _answered(place, call)
    raise Conflict(TOO_LATE)


def _known(tx: Tx, session_id: str, pending: str) -> tuple[Message | None, bool]:
    """The question as it was asked, and whether an answer to it is on its way to its call."""
    value = finding.session(tx, session_id).value
    in_hand = any(q.id == pending and q.answer is not None for q in value.questions)
    return tx.messages.find(session_id, "clarification_request", pending), in_hand


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

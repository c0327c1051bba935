"""Open permission requests of one instance, and who answers them.

A request of a turn that is being cancelled or has ended is answered here, never by a person: an agent
that waits for an answer hears neither a cancel nor anything else. Not here: which turn a request belongs
to (`turns`).
"""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Literal

from kandev.agentctl.adapters.base import Adapter, PermissionAsk, WriteFailed
from kandev.agentctl.attribution import Identity
from kandev.agentctl.record import Record
from kandev.agentctl.refusals import Refused, Unsettled, invalid
from kandev.agentctl.tasks import Few, Tasks
from kandev.wire import agentctl as wire

By = Literal["client", "auto_approve", "cancel", "end"]
ALLOWING = ("allow_once", "allow_always")
REJECTING = ("reject_once", "reject_always")
"""Kinds that an automatic approval and a plain rejection take, the narrower one first."""
MOST_OPEN = 256
"""Requests that wait for a decision. What an agent asks beyond is answered as cancelled: people decide one by
one, and each of them stands in the session's value."""
ANSWERED_KEPT = 1024
"""Requests of which is known that they were answered; an older one is unknown."""
IN_PASSING = 64
"""Answers that an agent has not taken yet; then what it says next waits."""


@dataclass(frozen=True)
class Open:
    """A request that nobody has answered."""

    ask: PermissionAsk
    identity: Identity


class Permissions:
    """`adapter` gives the adapter that takes the answers."""

    def __init__(
        self, record: Record, tasks: Tasks, adapter: Callable[[], Adapter], *, auto_approve: bool
    ) -> None:
        self._record = record
        self._tasks = tasks
        self._adapter = adapter
        self._auto_approve = auto_approve
        self._open: dict[str, Open] = {}
        self._answered: dict[str, None] = {}
        self._passing = Few(tasks, IN_PASSING)
        self._too_many = False

    def ids(self) -> list[str]:
        return list(self._open)

    def any_of(self, identity: Identity) -> bool:
        return any(entry.identity == identity for entry in self._open.values())

    async def ask(self, ask: PermissionAsk, identity: Identity, refused_by: Callable[[], By | None]) -> None:
        """Journal the request and leave it open, unless `refused_by` names who answers it at once with
        "cancelled". Waits for the agent only when that takes none of many answers: the caller reads its
        pipe."""
        if len(self._open) >= MOST_OPEN:
            await self._beyond(ask, identity)
            return
        self._too_many = False
        await self._record.write(
            wire.PermissionRequest,
            identity,
            request_id=ask.request_id,
            title=ask.title,
            options=[{"option_id": o.option_id, "kind": o.kind, "name": o.name} for o in ask.options],
            tool_call_id=ask.tool_call_id,
            kind=ask.kind,
            raw_input=ask.raw_input,
        )
        self._open[ask.request_id] = Open(replace(ask, raw_input=None), identity)
        if (by := refused_by()) is not None:
            self._close(ask.request_id, outcome="cancelled", by=by)
            await self._tell_beside(self._tell(ask.request_id, cancelled=True))
        elif self._auto_approve and (option := _preferred(ask, ALLOWING)) is not None:
            self._close(ask.request_id, outcome="selected", by="auto_approve", option_id=option)
            await self._tell_beside(self._tell(ask.request_id, option_id=option))

    async def _beyond(self, ask: PermissionAsk, identity: Identity) -> None:
        """Nobody is asked, and the agent hears so at once. Said once, until one of the others is settled."""
        if not self._too_many:
            self._too_many = True
            text = f"The agent has {MOST_OPEN} permission requests open: what it asks beyond is cancelled."
            await self._record.write(wire.Notice, identity, text=text)
        await self._tell_beside(self._tell(ask.request_id, cancelled=True))

    async def _tell_beside(self, telling: Coroutine[Any, Any, None]) -> None:
        await self._passing.start(telling, "answer a permission")

    async def cancel_all(self, identity: Identity, by: By) -> None:
        """Answer those of one turn as cancelled and wait until the agent was told."""
        for request_id in [key for key, entry in self._open.items() if entry.identity == identity]:
            if request_id in self._open:  # the turn may end while the agent is told of another one
                self._close(request_id, outcome="cancelled", by=by)
                await self._tell(request_id, cancelled=True)

    def end_all(self, identity: Identity | None = None) -> None:
        """The turn (None: the process) is over: close its requests in the journal, tell the agent in
        passing."""
        for request_id in [key for key, entry in self._open.items() if identity in (None, entry.identity)]:
            if identity is None:
                self._close(request_id, outcome="cancelled", by="end")
            else:
                self._in_passing(request_id, "end")

    async def answer(self, request_id: str, answer: wire.AnswerPermission) -> None:
        """Raises Refused: 404 unknown, 409 answered already, 422 not an answer to it."""
        if request_id in self._answered:
            raise Refused(
                409, "already_answered", f"The permission request {request_id!r} has been answered already."
            )
        if (entry := self._open.get(request_id)) is None:
            raise Refused(404, "unknown_request", f"There is no permission request {request_id!r}.")
        if sum((answer.option_id is not None, answer.cancelled, answer.rejected)) != 1:
            raise invalid("An answer names one option_id, or says cancelled, or says rejected.")
        option_id = _preferred(entry.ask, REJECTING) if answer.rejected else answer.option_id
        if option_id is not None and option_id not in {option.option_id for option in entry.ask.options}:
            raise invalid(f"The permission request {request_id!r} has no option {option_id!r}.")
        del self._open[request_id]
        self._note_answered(request_id)
        try:
            outcome = await self._adapter().answer_permission(
                request_id, option_id=option_id, cancelled=answer.cancelled, rejected=answer.rejected
            )
        except (KeyError, WriteFailed) as failure:
            self._resolved(entry, request_id, outcome="cancelled", by="end")
            raise Unsettled("The agent does not take the answer: its process is ending.") from failure
        self._resolved(entry, request_id, outcome=outcome, by="client", option_id=option_id)

    def _in_passing(self, request_id: str, by: By) -> None:
        self._close(request_id, outcome="cancelled", by=by)
        self._tasks.start(self._tell(request_id, cancelled=True), "cancel a permission")

    def _close(self, request_id: str, *, outcome: str, by: By, option_id: str | None = None) -> None:
        entry = self._open.pop(request_id)
        self._note_answered(request_id)
        self._resolved(entry, request_id, outcome=outcome, by=by, option_id=option_id)

    def _note_answered(self, request_id: str) -> None:
        self._answered[request_id] = None
        if len(self._answered) > ANSWERED_KEPT:
            del self._answered[next(iter(self._answered))]

    def _resolved(
        self, entry: Open, request_id: str, *, outcome: str, by: By, option_id: str | None = None
    ) -> None:
        # Put without waiting for room: a full journal must not hold up the answer that lets the agent go on.
        self._record.put(
            wire.PermissionResolved,
            entry.identity,
            request_id=request_id,
            outcome=outcome,
            by=by,
            option_id=option_id,
        )

    async def _tell(self, request_id: str, *, option_id: str | None = None, cancelled: bool = False) -> None:
        try:
            await self._adapter().answer_permission(request_id, option_id=option_id, cancelled=cancelled)
        except (KeyError, WriteFailed):
            return  # The process is going, or took the question back: its end is reported by itself.


def _preferred(ask: PermissionAsk, kinds: tuple[str, ...]) -> str | None:
    for kind in kinds:
        for option in ask.options:
            if option.kind == kind:
                return option.option_id
    return None

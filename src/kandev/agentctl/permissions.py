"""Open permission requests of one instance, and who answers them.

A request of a turn that is being cancelled or has ended is answered here, never by a person: an agent
that waits for an answer hears neither a cancel nor anything else. Not here: which turn a request belongs
to (`turns`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kandev.agentctl.adapters.base import Adapter, PermissionAsk, WriteFailed
from kandev.agentctl.attribution import Identity
from kandev.agentctl.record import Record
from kandev.agentctl.refusals import Refused, Unsettled, invalid
from kandev.agentctl.tasks import Tasks
from kandev.wire import agentctl as wire

By = Literal["client", "auto_approve", "cancel", "end"]
ALLOWING = ("allow_once", "allow_always")
REJECTING = ("reject_once", "reject_always")
"""Kinds that an automatic approval and a plain rejection take, the narrower one first."""


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

    def ids(self) -> list[str]:
        return list(self._open)

    def any_of(self, identity: Identity) -> bool:
        return any(entry.identity == identity for entry in self._open.values())

    async def ask(self, ask: PermissionAsk, identity: Identity, refused_by: Callable[[], By | None]) -> None:
        """Journal the request and leave it open, unless `refused_by` names who answers it at once with
        "cancelled". Does not wait for the agent: the caller reads its pipe."""
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
        self._open[ask.request_id] = Open(ask, identity)
        if (by := refused_by()) is not None:
            self._in_passing(ask.request_id, by)
        elif self._auto_approve and (option := _preferred(ask, ALLOWING)) is not None:
            self._close(ask.request_id, outcome="selected", by="auto_approve", option_id=option)
            self._tasks.start(self._tell(ask.request_id, option_id=option), "approve a permission")

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
        self._answered[request_id] = None
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
        self._answered[request_id] = None
        self._resolved(entry, request_id, outcome=outcome, by=by, option_id=option_id)

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

"""The one dispatcher behind every door: find the action, read the payload, ask the handler.

Not here: what a door does before (`guard`, reading bytes) and after (frames, status codes).
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from opentelemetry import trace
from opentelemetry.trace import SpanKind

from kandev.core.errors import Forbidden
from kandev.gateway.action import Action
from kandev.gateway.catalogue import ACTIONS, MCP
from kandev.gateway.errors import BadRequest, UnknownAction, error_object
from kandev.gateway.metrics import Metrics
from kandev.usecases.context import Context
from kandev.wire.gateway import ErrorObject, read_payload

T = TypeVar("T")
TRACED: Final = ("task_id", "session_id", "entry_id", "request_id")
"""Members of a payload that a trace tells: names of things, never what somebody wrote."""

tracer = trace.get_tracer("kandev.gateway")


def refuse_mcp(action: str) -> None:
    """Raises Forbidden for the actions of agents, known or not; asked by every public door before anything
    else."""
    if action.startswith(MCP):
        raise Forbidden(
            "Actions that begin with mcp. are for agents' tools only; no public door reaches them."
        )


def find_action(name: str) -> Action:
    """Raises UnknownAction, which names it."""
    if found := ACTIONS.get(name):
        return found
    raise UnknownAction(f"Unknown action {name[:100]!r}; /openapi.json lists the known ones.")


async def dispatch(ctx: Context, action: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The answer's payload. Raises what the action's use case raises, UnknownAction, BadPayload; BadRequest
    for an action that belongs to a connection."""
    found = find_action(action)
    asked = read_payload(payload, found.payload)
    if found.handler is None:
        raise BadRequest(f"{action} belongs to a connection; ask for it on the WebSocket /ws.")
    return await found.handler(ctx, asked)


class Requests:
    """Asks the dispatcher on behalf of a door; an error becomes an object."""

    def __init__(self, ctx: Context, metrics: Metrics) -> None:
        self.ctx = ctx
        self._metrics = metrics

    async def answer(self, action: str, payload: dict[str, Any], door: str) -> dict[str, Any] | ErrorObject:
        """Never raises, but when it is cancelled."""
        about = {f"kandev.{name}": payload[name] for name in TRACED if isinstance(payload.get(name), str)}
        return await self.watch(action, door, lambda: dispatch(self.ctx, action, payload), about)

    async def watch(
        self,
        action: str,
        door: str,
        ask: Callable[[], Awaitable[T]],
        about: Mapping[str, str] | None = None,
    ) -> T | ErrorObject:
        """The same for whatever answers the action; `about` goes with its trace."""
        name = action if action in ACTIONS else "unknown"
        with (
            self._metrics.request(name, door) as outcome,
            tracer.start_as_current_span(name, kind=SpanKind.SERVER, attributes=about) as span,
        ):
            answer = await guarded(action, ask)
            if isinstance(answer, ErrorObject):
                outcome.code = answer.code
            span.set_attributes({"kandev.door": door, "kandev.code": outcome.code})
            return answer


async def guarded(action: str, ask: Callable[[], Awaitable[T]]) -> T | ErrorObject:
    """One request that fails must neither end the connection nor show its insides."""
    try:
        return await ask()
    except Exception as error:  # noqa: BLE001 - around a request
        return error_object(error, action)

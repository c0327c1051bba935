"""What one entry of the catalogue is: a name, the shape of its payload, and the one handler behind both
doors.

Not here: the entries (`actions_board`, `actions_sessions`, …, `streams`), and asking for one (`dispatch`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from kandev.usecases.context import Context
from kandev.usecases.live_sessions import Ended
from kandev.wire.gateway_board import Request

P = TypeVar("P", bound=Request)
Result = dict[str, Any]
DONE: Final[Result] = {"success": True}
Handler = Callable[[Context, Any], Awaitable[Result]]


@dataclass(frozen=True)
class Action:
    """`result` describes the answer. `mutates`: goes on when its asker goes away. `stream`: belongs to a
    connection, so it exists on the WebSocket only and has no handler here."""

    name: str
    payload: type[Request]
    summary: str
    result: str
    handler: Handler | None = None
    mutates: bool = True
    stream: bool = False


class Chapter:
    """Collects the actions of one module, in order."""

    def __init__(self) -> None:
        self.actions: list[Action] = []

    def action(
        self, name: str, payload: type[P], summary: str, result: str, *, mutates: bool = True
    ) -> Callable[[Callable[[Context, P], Awaitable[Result]]], Callable[[Context, P], Awaitable[Result]]]:
        """Register the function below as the handler of `name`."""

        def register(
            handler: Callable[[Context, P], Awaitable[Result]],
        ) -> Callable[[Context, P], Awaitable[Result]]:
            self.actions.append(
                Action(name, payload, summary, result, cast(Handler, handler), mutates=mutates)
            )
            return handler

        return register

    def read(
        self, name: str, payload: type[P], summary: str, result: str
    ) -> Callable[[Callable[[Context, P], Awaitable[Result]]], Callable[[Context, P], Awaitable[Result]]]:
        """The same for an action that changes nothing."""
        return self.action(name, payload, summary, result, mutates=False)


def with_details(ended: Ended) -> Result:
    """What failed beside a success, as a member of the answer."""
    return {"details": ended.details} if ended.details else {}

"""What one action of agents is: a name, the shape of its payload, and the one handler behind every door.

Not here: the actions (`actions`), and the tools that agents see (`tools`).
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from kandev.mcp.arguments import Arguments
from kandev.mcp.caller import Caller
from kandev.mcp.results import Result
from kandev.ports.tools import ToolCall
from kandev.usecases.context import Context

P = TypeVar("P", bound=Arguments)
R = TypeVar("R", bound=Result)
Handler = Callable[[Context, Caller, Any, ToolCall | None], Awaitable[Result]]
Plain = Callable[[Context, Caller, P], Awaitable[R]]


@dataclass(frozen=True)
class McpAction:
    """`mcp.<tool without its suffix>`. `mutates`: once begun it goes on although the agent goes away."""

    name: str
    payload: type[Arguments]
    handler: Handler
    mutates: bool


class McpChapter:
    """Collects the actions of one module, in order."""

    def __init__(self) -> None:
        self.actions: list[McpAction] = []

    def action(
        self, name: str, payload: type[P], *, mutates: bool = True
    ) -> Callable[[Plain[P, R]], Plain[P, R]]:
        """Register the function below as the handler of `name`."""

        def register(handler: Plain[P, R]) -> Plain[P, R]:
            async def alone(ctx: Context, caller: Caller, asked: P, _call: ToolCall | None) -> Result:
                return await handler(ctx, caller, asked)

            self.actions.append(McpAction(name, payload, alone, mutates))
            return handler

        return register

    def read(self, name: str, payload: type[P]) -> Callable[[Plain[P, R]], Plain[P, R]]:
        """The same for an action that changes nothing."""
        return self.action(name, payload, mutates=False)

    def waiting(
        self, name: str, payload: type[P]
    ) -> Callable[
        [Callable[[Context, Caller, P, ToolCall | None], Awaitable[R]]],
        Callable[[Context, Caller, P, ToolCall | None], Awaitable[R]],
    ]:
        """The same for an action that keeps its caller waiting: the handler is given the open call, and says
        by itself from when on it is committed."""

        def register(
            handler: Callable[[Context, Caller, P, ToolCall | None], Awaitable[R]],
        ) -> Callable[[Context, Caller, P, ToolCall | None], Awaitable[R]]:
            self.actions.append(McpAction(name, payload, cast(Handler, handler), mutates=False))
            return handler

        return register

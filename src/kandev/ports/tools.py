"""What agents ask by their tools: each call of an execution's agent, and who answers it.

Called by `kandev.execution` with what comes over an execution's lane; answered by `kandev.mcp`. Who calls is
known by the execution alone: no message names it.
"""

import asyncio
from typing import Any, Protocol


class ToolCall(Protocol):
    """One request of an agent's MCP client, as JSON-RPC. It may come twice, when a backend ended in its
    middle: what is made of it derives its ids from `call_id`, so that a repeat finds what is there."""

    @property
    def call_id(self) -> str:
        """Unique for ever."""

    @property
    def message(self) -> dict[str, Any]: ...

    @property
    def again(self) -> bool:
        """An earlier backend may have had it."""

    @property
    def version(self) -> str | None:
        """The MCP version of the agent's client, if it said so."""

    @property
    def left(self) -> asyncio.Event:
        """Set when the agent does not wait for the answer any more."""

    @property
    def served(self) -> asyncio.Future[bool]:
        """Whether the answer reached the agent; settled soon after the last message, and False when the
        agent has left."""

    @property
    def committed(self) -> bool:
        """What the call is for has been done, or is being done: it goes on although the agent leaves."""

    def commit(self) -> None:
        """From now on it is `committed`."""

    async def send(self, message: dict[str, Any], last: bool) -> None:
        """A message for the agent: notifications, then with `last` the response. Never raises for a
        connection's sake: what is last is sent again when there is another one."""


class Tools(Protocol):
    """Who answers."""

    async def handle(self, execution: str, call: ToolCall) -> None:
        """Answers one call; calls are handled beside each other. Returns soon after the agent has left,
        unless the call is committed. Cancelled when this backend ends. Raises nothing."""

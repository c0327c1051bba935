"""Which turn something that the agent said belongs to.

ACP's updates carry no turn. The rule: while a turn runs, everything is that turn's. Shortly after its
end, or with a message or tool call id known from it, it is still that turn's (history). Anything else
that an agent says unasked begins a turn of its own, except kinds that report and do no work. Pure: the
caller gives the time.
"""

from dataclasses import dataclass
from typing import Any

from kandev.wire import agentctl as wire

OPENING = (wire.MessageChunk, wire.ReasoningChunk, wire.ToolCall, wire.ToolUpdate, wire.Plan)
"""Kinds that show work. Usage, mode, commands and notices come at any time."""
REMEMBERED = 4096
"""Ids of one turn that are known after its end, the newest: what comes late is about what came last."""


@dataclass(frozen=True)
class Identity:
    """The identity of a turn within its execution; generation 0 without an own id is no turn."""

    generation: int = 0
    own_turn_id: str | None = None


NO_TURN = Identity()


class Attribution:
    """`late_s`: seconds after a turn's end in which output is still that turn's."""

    def __init__(self, late_s: float) -> None:
        self._late_s = late_s
        self._running: Identity | None = None
        self._ids: dict[str, None] = {}
        self._ended: Identity | None = None
        self._ended_at = 0.0
        self._ended_ids: dict[str, None] = {}

    def started(self, identity: Identity) -> None:
        self._running = identity
        self._ids = {}

    def ended(self, now: float) -> None:
        if self._running is not None:
            self._ended, self._ended_at, self._ended_ids = self._running, now, self._ids
        self._running, self._ids = None, {}

    def abandoned(self) -> None:
        """The turn never reached the agent: what was known before holds on."""
        self._running, self._ids = None, {}

    def of_output(self, frame_type: type[wire.Frame], members: dict[str, Any], now: float) -> Identity | None:
        """None: it begins a turn of its own."""
        return self._of(_id_of(members), now, opening=issubclass(frame_type, OPENING))

    def of_permission(self, tool_call_id: str | None, now: float) -> Identity | None:
        return self._of(None if tool_call_id is None else f"tool:{tool_call_id}", now, opening=True)

    def _of(self, said_id: str | None, now: float, *, opening: bool) -> Identity | None:
        if self._running is not None:
            _remember(self._ids, said_id)
            return self._running
        if self._ended is not None and (now - self._ended_at < self._late_s or said_id in self._ended_ids):
            _remember(self._ended_ids, said_id)
            return self._ended
        return None if opening else NO_TURN


def _remember(ids: dict[str, None], said_id: str | None) -> None:
    if said_id is None:
        return
    ids.pop(said_id, None)
    ids[said_id] = None
    if len(ids) > REMEMBERED:
        del ids[next(iter(ids))]


def _id_of(members: dict[str, Any]) -> str | None:
    if (tool := members.get("tool_call_id")) is not None:
        return f"tool:{tool}"
    if (message := members.get("message_id")) is not None:
        return f"message:{message}"
    return None

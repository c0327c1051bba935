"""The agent's tool calls and permission requests, as far as a cancel and an answer need them.

Not here: the wire (`adapter`), and who decides (the instance).
"""

import secrets
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from kandev.agentctl.adapters.acp.documents import (
    SENTENCE_MAX,
    Document,
    clipped,
    kept_id,
    objects,
    part,
    text,
    word,
)
from kandev.agentctl.adapters.base import PermissionAsk, PermissionOption
from kandev.agentctl.rpc import Call

REMEMBERED = 1000
"""Tool calls whose title is kept for a permission request that names only their id."""
INPUTS_BYTES = 16 * 1024 * 1024
"""What may be kept of their inputs together; the oldest go first. A file that is written is one."""
MOST_OPTIONS = 64
"""Of a permission request, those that can be shown and chosen."""
UNFINISHED = ("pending", "in_progress")


@dataclass
class Known:
    """What is known of a tool call."""

    title: str = ""
    kind: str | None = None
    raw_input: Any = None
    size: int = 0
    """Of the input, in bytes."""


class ToolCalls:
    """Those that were seen, and those that run in this turn; of both the newest `REMEMBERED`."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}
        self._running: set[str] = set()
        self._kept = 0

    def seen(self, update: Document) -> None:
        """A `tool_call`, a `tool_call_update`, or the `toolCall` of a permission request."""
        call_id = kept_id(update.get("toolCallId"))
        known = self._known.setdefault(call_id, Known())
        known.title = clipped(text(update.get("title")) or known.title)
        known.kind = word(update.get("kind")) or known.kind
        if "rawInput" in update:
            self._keep_input(known, update["rawInput"])
        status = update.get("status")
        if status in UNFINISHED or (status is None and update.get("sessionUpdate") == "tool_call"):
            self._running.add(call_id)
        elif status is not None:
            self._running.discard(call_id)
        if len(self._known) > REMEMBERED:
            self._forget_one()

    def _forget_one(self) -> None:
        """The oldest that does not run; when all do, the oldest."""
        done = (call_id for call_id in self._known if call_id not in self._running)
        oldest = next(done, next(iter(self._known)))
        self._kept -= self._known.pop(oldest).size
        self._running.discard(oldest)

    def _keep_input(self, known: Known, value: Any) -> None:
        self._kept -= known.size
        known.raw_input, known.size = value, len(msgspec.json.encode(value))
        self._kept += known.size
        for other in self._known.values():
            if self._kept <= INPUTS_BYTES:
                return
            self._kept -= other.size
            other.raw_input, other.size = None, 0

    def get(self, call_id: str) -> Known:
        """Empty when it was never seen."""
        return self._known.get(call_id, Known())

    def take_running(self) -> list[str]:
        """Those that run; from now on they do not."""
        running = sorted(self._running)
        self._running.clear()
        return running


@dataclass(frozen=True)
class Asked:
    """An open permission request."""

    call: Call
    options: tuple[PermissionOption, ...]

    def outcome(self, option_id: str | None, *, rejected: bool) -> Document:
        """ACP's outcome. Raises KeyError for an option that was not offered. Rejected takes the agent's own
        option for it, once before always; without one it is cancelled."""
        if rejected and option_id is None:
            by_kind = {option.kind: option.option_id for option in reversed(self.options)}
            option_id = by_kind.get("reject_once", by_kind.get("reject_always"))
        if option_id is None:
            return {"outcome": "cancelled"}
        if option_id not in {option.option_id for option in self.options}:
            raise KeyError(option_id)
        return {"outcome": "selected", "optionId": option_id}


class Permissions:
    """The open requests, by our ids. No other process of the conversation has the same ones: a decision that
    comes late must not fit a request of the next process."""

    def __init__(self) -> None:
        self._open: dict[str, Asked] = {}
        self._ours = secrets.token_hex(4)
        self._count = 0

    def ask(self, call: Call, calls: ToolCalls) -> PermissionAsk:
        """Opens a request."""
        tool = part(call.params, "toolCall")
        calls.seen(tool)
        known = calls.get(kept_id(tool.get("toolCallId")))
        options = _options(call.params.get("options"))
        self._count += 1
        request_id = f"permission-{self._ours}-{self._count}"
        # It may wait for long: what the agent sent along is not kept meanwhile.
        self._open[request_id] = Asked(replace(call, params={}), options)
        return PermissionAsk(
            request_id=request_id,
            title=known.title or "The agent asks for permission",
            options=options,
            tool_call_id=None if tool.get("toolCallId") is None else kept_id(tool["toolCallId"]),
            kind=known.kind,
            raw_input=known.raw_input,
        )

    def take(self, request_id: str, option_id: str | None, *, rejected: bool) -> tuple[Call, Document]:
        """Closes a request: the agent's call and the outcome for it. Raises KeyError."""
        asked = self._open[request_id]
        outcome = asked.outcome(option_id, rejected=rejected)
        del self._open[request_id]
        return asked.call, outcome


def _options(value: Any) -> tuple[PermissionOption, ...]:
    """Those that have an id: it goes back to the agent as it came, so that none is cut."""
    named = [
        option
        for option in objects(value)
        if isinstance(option.get("optionId"), str) and len(option["optionId"]) <= SENTENCE_MAX
    ]
    return tuple(
        PermissionOption(
            option_id=option["optionId"],
            kind=word(option.get("kind")) or "",
            name=clipped(text(option.get("name")) or option["optionId"]),
        )
        for option in named[:MOST_OPTIONS]
    )

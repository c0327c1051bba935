"""Tool calls in the transcript: a line each, changed as the call goes on.

A change is announced with the whole call, so what is kept of one is bounded, and the changes of one commit
are written once, at its end. Not here: text that grows (`growth`).
"""

from dataclasses import replace
from typing import Any, Final

from kandev.core.cutting import cut, cut_members
from kandev.core.transcript import Message, ToolCall, ToolChange
from kandev.runtime.lines import Lines

DETAILS_MAX: Final = 1 << 20
"""Characters of a call's input, output and contents together: more than a person looks at, and little enough
to be announced with each change."""
TITLE_MAX: Final = 10_000
CHANGED_MAX: Final = 64
"""Calls whose changes may wait for the commit's end: what they hold is in memory."""
DETAILS: Final = ("content", "locations", "raw_input", "raw_output")


class ToolLines:
    """Of one session, within one transaction. `settle` must be called."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._changed: dict[str, Message] = {}
        """By the agent's id of the call: how it is now, not written yet."""
        self._before: dict[str, Message] = {}

    def call(self, call: ToolCall, turn: str | None) -> None:
        """It begins, or is told anew."""
        given = {"kind": call.kind, "status": call.status, **call.details}
        found = self._find(call.tool_call_id)
        if found is not None and found.turn_id == turn:
            self._change(found, call.title, given)
            return
        self.settle()
        named = {"key": call.tool_call_id, "tool_call_id": call.tool_call_id}
        self._lines.add("agent", "tool_call", cut(call.title, TITLE_MAX), _kept(named, given), turn)

    def change(self, change: ToolChange, turn: str | None) -> None:
        """What changed of it."""
        found = self._find(change.tool_call_id)
        if found is not None and found.turn_id == turn:
            words = {"kind": change.kind, "status": change.status}
            given = {**{k: v for k, v in words.items() if v is not None}, **change.details}
            self._change(found, found.content if change.title is None else change.title, given)
        elif change.title is not None or change.details:
            title, kind, status = change.title or "", change.kind or "other", change.status or "pending"
            self.call(ToolCall(change.tool_call_id, title, kind, status, change.details), turn)
        # Otherwise it was never announced: there is nothing to show of it.

    def settle(self) -> None:
        """Write what changed."""
        for key, message in self._changed.items():
            if message != self._before[key]:
                self._lines.replace(message)
        self._changed.clear()
        self._before.clear()

    def _find(self, key: str) -> Message | None:
        waiting = self._changed.get(key)
        return waiting or self._lines.tx.messages.find(self._lines.session_id, "tool_call", key)

    def _change(self, found: Message, title: str, given: dict[str, Any]) -> None:
        key = str(found.metadata["key"])
        if key not in self._changed:
            if len(self._changed) >= CHANGED_MAX:
                self.settle()
            self._before[key] = found
        metadata = _kept(found.metadata, given)
        self._changed[key] = replace(found, content=cut(title, TITLE_MAX), metadata=metadata)


def _kept(known: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What is known of a call with what is new; `cut` names what lacks something."""
    merged = {**known, **given}
    if not any(name in given for name in DETAILS):
        return merged
    details, less = cut_members({name: merged[name] for name in DETAILS if name in merged}, DETAILS_MAX)
    less += [name for name in merged.pop("cut", ()) if name not in given and name not in less]
    return {**merged, **details, **({"cut": less} if less else {})}

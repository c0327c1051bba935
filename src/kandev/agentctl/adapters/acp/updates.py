"""What each kind of `session/update` says, as frames. Pure.

Source: ACP schema, `SessionUpdate`. Not here: order, replays, which call is running (`adapter`).
"""

from collections.abc import Callable
from typing import Any

import msgspec

from kandev.agentctl.adapters.acp.documents import Document, clipped, kept_id, objects, part, text, word
from kandev.wire import agentctl as wire

Said = tuple[type[wire.Frame], dict[str, Any]]

ABOUT_BYTES = 64 * 1024
"""Of what an agent says about itself (commands, usage): it is kept on the session and told with each of its
changes. Commands beyond it are left out, and a usage that is larger is none."""
SETTINGS_KEPT = 100
"""Of an agent; what it says of others is not compared and not told."""

HISTORY = frozenset(
    {
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "plan",
    }
)
"""Kinds that tell what was said and done; a loaded conversation repeats them."""


class Updates:
    """Keeps what an update is compared with: the agent's settings and title as last seen."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}
        self._mode: str | None = None
        self._title: str | None = None
        self._kinds: dict[str, Callable[[Document], list[Said]]] = {
            "user_message_chunk": lambda update: [],
            "agent_message_chunk": _message,
            "agent_thought_chunk": _thought,
            "tool_call": _tool_call,
            "tool_call_update": _tool_update,
            "plan": lambda update: [(wire.Plan, {"entries": objects(update.get("entries"))})],
            "available_commands_update": _commands,
            "current_mode_update": self._current_mode,
            "usage_update": _usage,
            "config_option_update": self._options,
            "session_info_update": self._info,
        }

    def frames(self, update: Document) -> list[Said]:
        """What to say about it; an unknown kind becomes a notice with the update itself."""
        kind = update.get("sessionUpdate")
        known = self._kinds.get(kind) if isinstance(kind, str) else None
        if known is not None:
            return known(update)
        words = f"The agent sent an update of unknown kind: {clipped(str(kind))}"
        return [(wire.Notice, {"text": words, "data": update})]

    def begin(self, opened: Document) -> None:
        """Settings of a conversation as `session/new`, `load` or `resume` answered them."""
        self._mode = word(part(opened, "modes").get("currentModeId"))
        for option in objects(opened.get("configOptions"))[:SETTINGS_KEPT]:
            self._settings[kept_id(option.get("id"))] = _value(option)

    def _current_mode(self, update: Document) -> list[Said]:
        self._mode = word(update.get("currentModeId")) or word(update.get("modeId"))
        return [] if self._mode is None else [(wire.Mode, {"mode": self._mode})]

    def _options(self, update: Document) -> list[Said]:
        said: list[Said] = []
        for option in objects(update.get("configOptions")):
            name, value = kept_id(option.get("id")), _value(option)
            full = len(self._settings) >= SETTINGS_KEPT and name not in self._settings
            if full or self._settings.get(name) == value:
                continue
            self._settings[name] = value
            if option.get("category") == "mode" or name == "mode":
                if value != self._mode and (mode := word(value)) is not None:
                    self._mode = mode
                    said.append((wire.Mode, {"mode": mode}))
            else:
                words = f"{word(option.get('name')) or name} is now {value}."
                said.append((wire.Notice, {"text": words, "data": {"config_id": name, "value": value}}))
        return said

    def _info(self, update: Document) -> list[Said]:
        title = clipped(text(update.get("title")) or "")
        if not title or title == self._title:
            return []
        self._title = title
        words = f"The agent calls this conversation: {title}"
        return [(wire.Notice, {"text": words, "data": {"title": title}})]


def usage_frame(usage: Document) -> list[Said]:
    """The agent's count of tokens and cost, as it gave it."""
    return [(wire.Usage, {"usage": usage})] if len(msgspec.json.encode(usage)) <= ABOUT_BYTES else []


def _value(option: Document) -> Any:
    """Of a setting; what is no plain value is told as text."""
    value = option.get("currentValue")
    return value if value is None or isinstance(value, bool | int | float) else clipped(str(value))


def _message_id(update: Document) -> str | None:
    value = update.get("messageId")
    return kept_id(value) if isinstance(value, str) else None


def _message(update: Document) -> list[Said]:
    content, message_id = update.get("content"), _message_id(update)
    if isinstance(content, str):
        return [(wire.MessageChunk, {"text": content, "message_id": message_id})]
    block = part(content)
    if block.get("type") == "text":
        return [(wire.MessageChunk, {"text": text(block.get("text")) or "", "message_id": message_id})]
    return [(wire.MessageChunk, {"text": "", "message_id": message_id, "block": block})] if block else []


def _thought(update: Document) -> list[Said]:
    content = update.get("content")
    words = content if isinstance(content, str) else text(part(content).get("text"))
    return [(wire.ReasoningChunk, {"text": words or "", "message_id": _message_id(update)})]


def _tool_call(update: Document) -> list[Said]:
    members = {
        "tool_call_id": kept_id(update.get("toolCallId")),
        "title": text(update.get("title")) or "",
        "kind": word(update.get("kind")) or "other",
        "status": word(update.get("status")) or "pending",
        "content": objects(update.get("content")),
        "locations": objects(update.get("locations")),
        "raw_input": update.get("rawInput"),
        "raw_output": update.get("rawOutput"),
    }
    return [(wire.ToolCall, members)]


def _tool_update(update: Document) -> list[Said]:
    content, locations = update.get("content"), update.get("locations")
    members = {
        "tool_call_id": kept_id(update.get("toolCallId")),
        "title": text(update.get("title")),
        "kind": word(update.get("kind")),
        "status": word(update.get("status")),
        "content": None if content is None else objects(content),
        "locations": None if locations is None else objects(locations),
        "raw_input": update.get("rawInput"),
        "raw_output": update.get("rawOutput"),
    }
    return [(wire.ToolUpdate, members)]


def _commands(update: Document) -> list[Said]:
    taken, size = list[Document](), 0
    for command in objects(update.get("availableCommands")):
        size += len(msgspec.json.encode(command))
        if size > ABOUT_BYTES:
            break
        taken.append(command)
    return [(wire.Commands, {"commands": taken})]


def _usage(update: Document) -> list[Said]:
    return usage_frame({k: v for k, v in update.items() if k not in ("sessionUpdate", "_meta")})

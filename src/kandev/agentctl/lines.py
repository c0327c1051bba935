"""Cuts a byte stream into lines and lines into JSON objects, whatever an agent sends.

Not here: what the objects mean (`kandev.agentctl.rpc`).
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

SHOWN = 200
"""Characters of a bad line that are shown."""
NOTICE_GAP_S = 1.0
"""Bad lines that come faster are counted and told together."""
DEEPEST = 200
"""Levels of a message; deeper ones could be read here and break whoever writes them on."""
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line longer than the bound; its bytes were thrown away as they came."""

    limit: int


class Lines:
    """Bytes in, lines out. Never holds more than one line and one chunk."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | Skipped]:
        """The lines that `chunk` completes, without their ends, empty ones left out. A line that becomes too
        long is reported once, as soon as it is."""
        *whole, rest = chunk.split(b"\n")
        for piece in whole:
            yield from self._grow(piece)
            yield from self.end()
        yield from self._grow(rest)

    def end(self) -> Iterator[bytes]:
        """The line that has come so far: at its end, or at the stream's."""
        line = b"".join(self._parts).strip(b" \r\t")
        self._parts.clear()
        self._size = 0
        self._skipping = False
        if line:
            yield line

    def _grow(self, piece: bytes) -> Iterator[Skipped]:
        if self._skipping or not piece:
            return
        self._size += len(piece)
        if self._size > self._limit:
            self._parts.clear()
            self._skipping = True
            yield Skipped(self._limit)
        else:
            self._parts.append(piece)


def parse(line: bytes) -> dict[str, Any] | None:
    """A JSON object, or None. Agents cut characters in two: half a surrogate pair and bytes that are no
    UTF-8 become U+FFFD instead of costing the line. What is deeper than `DEEPEST` is no message."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        try:
            value = _mend(json.loads(line.decode(errors="replace")))
        except (ValueError, RecursionError):
            return None
    if not isinstance(value, dict) or _too_deep(line, value):
        return None
    return value


def _too_deep(line: bytes, value: Any) -> bool:
    if line.count(b"{") + line.count(b"[") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _mend(value: Any) -> Any:
    if isinstance(value, str):
        return SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_mend(item) for item in value]
    if isinstance(value, dict):
        return {_mend(key): _mend(item) for key, item in value.items()}
    return value


def encode(message: dict[str, Any]) -> bytes:
    """One line."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode(errors="replace") + b"\n"


class BadLines:
    """Tells about lines that could not be used: the first at once, a flood as a count."""

    def __init__(self) -> None:
        self._untold = 0
        self._quiet_until = 0.0

    def note(self, line: bytes, now: float) -> str | None:
        """A sentence, or None when it is only counted. `now` in seconds."""
        if now < self._quiet_until:
            self._untold += 1
            return None
        self._quiet_until = now + NOTICE_GAP_S
        more = self.rest(now, at_once=True)
        shown = line[: SHOWN * 4].decode(errors="replace")[:SHOWN]
        return f"The agent wrote a line that is no protocol message: {shown}{f' ({more})' if more else ''}"

    def rest(self, now: float, *, at_once: bool = False) -> str | None:
        """A sentence about those only counted, once it is time."""
        if not self._untold or (now < self._quiet_until and not at_once):
            return None
        count, self._untold = self._untold, 0
        return f"{count} more lines of the agent were no protocol messages."

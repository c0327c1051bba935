"""An ACP agent whose every chunk says when it was sent: a program of its own, run by its path.

Its prompt is `COUNT BATCH PAUSE [GATE]`: COUNT chunks, BATCH of them at a time with PAUSE seconds between,
and none before there is a file GATE. A chunk is `NUMBER:NANOSECONDS ` by the clock that all processes of a
machine share (CLOCK_MONOTONIC). A cancel ends it between two batches. Standard library only: it is started
by the dozen.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections import deque
from pathlib import Path
from typing import Any

Json = dict[str, Any]
GATE_S = 0.02
"""Between two looks at the gate."""


class Wire:
    """Lines in from stdin, frames out to stdout."""

    def __init__(self) -> None:
        self._rest = b""
        self._lines: deque[bytes] = deque()
        self.closed = False

    def next(self, wait_s: float | None) -> Json | None:
        """The next frame; None when none came in time, or there will be none."""
        deadline = None if wait_s is None else time.monotonic() + wait_s
        while not self._lines and not self.closed:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([0], [], [], left)[0]:
                return None
            self._fill()
        if not self._lines:
            return None
        frame: Json = json.loads(self._lines.popleft())
        return frame

    def _fill(self) -> None:
        chunk = os.read(0, 1 << 16)
        if not chunk:
            self.closed = True
            return
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        self._lines.extend(line for line in whole if line.strip())

    def is_cancelled(self, wait_s: float) -> bool:
        """Whether a cancel, or the end, came in so many seconds; waits for them otherwise."""
        until = time.monotonic() + wait_s
        while (frame := self.next(max(0.0, until - time.monotonic()))) is not None:
            if frame.get("method") == "session/cancel":
                return True
        return self.closed

    @staticmethod
    def send(*frames: Json) -> None:
        """All of them at one stroke."""
        data = memoryview(b"".join(json.dumps({"jsonrpc": "2.0", **f}).encode() + b"\n" for f in frames))
        while data:
            data = data[os.write(1, data) :]


def chunk(session_id: str, message_id: str, number: int) -> Json:
    """One update, stamped now."""
    content = {"type": "text", "text": f"{number}:{time.monotonic_ns()} "}
    update = {"sessionUpdate": "agent_message_chunk", "messageId": message_id, "content": content}
    return {"method": "session/update", "params": {"sessionId": session_id, "update": update}}


def stream(wire: Wire, params: Json) -> Json:
    """Plays one prompt; its result."""
    session_id = params["sessionId"]
    text = params["prompt"][0]["text"].rpartition("</kandev-context>")[2]
    count, batch, pause, *gate = text.split()
    while gate and not Path(gate[0]).exists():
        if wire.is_cancelled(GATE_S):
            return {"stopReason": "cancelled"}
    message_id = os.urandom(6).hex()
    due = time.monotonic()
    for first in range(1, int(count) + 1, int(batch)):
        until = min(first + int(batch), int(count) + 1)
        wire.send(*(chunk(session_id, message_id, number) for number in range(first, until)))
        due += float(pause)
        if wire.is_cancelled(due - time.monotonic()):
            return {"stopReason": "cancelled"}
    return {"stopReason": "end_turn"}


def answer(wire: Wire, method: str, params: Json) -> Json:
    """The result of one request."""
    match method:
        case "initialize":
            return {"protocolVersion": 1, "agentCapabilities": {"loadSession": True}, "authMethods": []}
        case "session/new":
            return {"sessionId": os.urandom(6).hex()}
        case "session/prompt":
            return stream(wire, params)
    return {}


def main() -> int:
    """Until stdin closes."""
    wire = Wire()
    while (frame := wire.next(None)) is not None:
        if "method" in frame and "id" in frame:
            wire.send({"id": frame["id"], "result": answer(wire, frame["method"], frame.get("params", {}))})
    return 0


if __name__ == "__main__":
    sys.exit(main())

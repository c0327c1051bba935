"""An ACP agent whose every chunk says when it was sent: a program of its own, run by its path.

Its prompt is `COUNT BATCH PAUSE [GATE]`: COUNT chunks, BATCH of them at a time with PAUSE seconds between,
and none before there is a file GATE. A chunk is `NUMBER:NANOSECONDS ` by the clock that all processes of a
machine share (CLOCK_MONOTONIC). A cancel ends it between two batches. Or it is `call TOOL JSON`: it calls a
tool of Kandev's and says in one chunk when it called, when it was answered, and what. Standard library only:
it is started by the dozen.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
import urllib.request
from collections import deque
from pathlib import Path
from typing import Any

Json = dict[str, Any]
GATE_S = 0.02
"""Between two looks at the gate."""
CALL_S = 120.0
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Loopback needs no proxy, whatever the environment says."""


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
    return said(session_id, message_id, f"{number}:{time.monotonic_ns()} ")


def said(session_id: str, message_id: str, text: str) -> Json:
    """One update."""
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "messageId": message_id, "content": content}
    return {"method": "session/update", "params": {"sessionId": session_id, "update": update}}


def play(wire: Wire, servers: list[Json], params: Json) -> Json:
    """Plays one prompt; its result."""
    text = params["prompt"][0]["text"]
    for block in ("</kandev-context>", "</kandev-message>"):
        text = text.rpartition(block)[2]
    if text.split(maxsplit=1)[0] != "call":
        return stream(wire, params["sessionId"], text)
    _, tool, arguments = text.split(maxsplit=2)
    began = time.monotonic_ns()
    result = call(servers[0], tool, json.loads(arguments))
    told = {"began": began, "answered": time.monotonic_ns(), "result": result}
    wire.send(said(params["sessionId"], os.urandom(6).hex(), json.dumps(told)))
    return {"stopReason": "end_turn"}


def call(server: Json, tool: str, arguments: Json) -> Json:
    """The whole result of one tool call over streamable HTTP, which needs no greeting here."""
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    body = json.dumps({**frame, "params": {"name": tool, "arguments": arguments}}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    headers |= {pair["name"]: pair["value"] for pair in server["headers"]}
    request = urllib.request.Request(server["url"], body, headers)
    with DIRECT.open(request, timeout=CALL_S) as response:
        text = response.read().decode()
        if response.headers.get_content_type() == "text/event-stream":
            text = [line for line in text.splitlines() if line.startswith("data:")][-1].removeprefix("data:")
    answered: Json = json.loads(text)
    result: Json = answered.get("result", answered)
    return result


def stream(wire: Wire, session_id: str, text: str) -> Json:
    """Chunks; the turn's result."""
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


def answer(wire: Wire, servers: list[Json], method: str, params: Json) -> Json:
    """The result of one request. `servers` becomes what the conversation is given."""
    match method:
        case "initialize":
            able = {"loadSession": True, "mcpCapabilities": {"http": True}}
            return {"protocolVersion": 1, "agentCapabilities": able, "authMethods": []}
        case "session/new" | "session/load":
            servers[:] = params["mcpServers"]
            return {"sessionId": os.urandom(6).hex()} if method == "session/new" else {}
        case "session/prompt":
            return play(wire, servers, params)
    return {}


def main() -> int:
    """Until stdin closes."""
    wire = Wire()
    servers: list[Json] = []
    while (frame := wire.next(None)) is not None:
        if "method" in frame and "id" in frame:
            result = answer(wire, servers, frame["method"], frame.get("params", {}))
            wire.send({"id": frame["id"], "result": result})
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""An ACP agent that means no good: each prompt's text names what it does. Run as a program; stdlib only.

`mode` (the first argument) misbehaves at the start: the method at which it dies, `big-error`, `big-id`. Not
here: what is expected of Kandev in return (the tests beside it).
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

SESSION = "s-1"
ESCAPE = """
import os, sys
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(300)", sys.argv[1]], {})
"""
"""Ends as a process without our marks, in a session of its own, whose parents are gone."""
LOCK = threading.Lock()


def put(**message: Any) -> None:
    """One message."""
    with LOCK:
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        sys.stdout.buffer.flush()


def update(kind: str, session: str = SESSION, **members: Any) -> None:
    """One `session/update`."""
    params = {"sessionId": session, "update": {**members, "sessionUpdate": kind}}
    put(method="session/update", params=params)


def say(text: str, session: str = SESSION) -> None:
    """One message chunk."""
    update("agent_message_chunk", session, content={"type": "text", "text": text})


def end(number: Any, reason: str = "end_turn") -> None:
    """The turn's end."""
    put(id=number, result={"stopReason": reason})


def do_say(number: Any, text: str) -> None:
    say(text)
    end(number)


def do_long(number: Any, size: str) -> None:
    say("x" * int(size))
    end(number)


def do_many(number: Any, count: str, size: str) -> None:
    """So many messages, each of its own id."""
    for n in range(int(count)):
        content = {"type": "text", "text": "x" * int(size)}
        update("agent_message_chunk", messageId=f"m{n}", content=content)
    end(number)


def do_inputs(number: Any, count: str, size: str) -> None:
    for n in range(int(count)):
        update("tool_call", toolCallId=f"c{n}", title="Write", rawInput={"content": "x" * int(size)})
    end(number)


def do_foreign(number: Any, count: str) -> None:
    for n in range(int(count)):
        say("x", f"other-{n}")
    end(number)


def do_reason(number: Any, size: str) -> None:
    end(number, "r" * int(size))


def do_flood(number: Any) -> None:
    for _ in range(100_000):
        say("x" * 1000)


def do_escape(number: Any, mark: str) -> None:
    subprocess.run([sys.executable, "-c", ESCAPE, mark], env={}, check=False)
    say("escaped")


DEEDS: dict[str, Callable[..., None]] = {
    name.removeprefix("do_"): deed for name, deed in globals().items() if name.startswith("do_")
}


def opened(mode: str) -> dict[str, Any]:
    """The answer to `session/new`."""
    if mode == "big-error":
        return {"error": {"code": 1, "message": "e" * (20 << 20)}}
    return {"result": {"sessionId": "i" * (8 << 20) if mode == "big-id" else SESSION}}


def prompted(number: Any, params: dict[str, Any]) -> None:
    """Plays the text beside the reader."""
    name, *words = params["prompt"][0]["text"].split(" ")
    threading.Thread(target=DEEDS[name], args=(number, *words), daemon=True).start()


def main(mode: str = "") -> None:
    """Until stdin ends."""
    current: Any = None
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method == mode:
            os._exit(4)
        if method == "initialize":
            put(id=number, result={"protocolVersion": 1})
        elif method == "session/new":
            put(id=number, **opened(mode))
        elif method == "session/prompt":
            current = number
            prompted(number, message["params"])
        elif method == "session/cancel":
            end(current, "cancelled")


if __name__ == "__main__":
    main(*sys.argv[1:])

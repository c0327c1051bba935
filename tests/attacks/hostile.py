"""An ACP agent that means no good: each prompt's text names what it does. Run as a program; stdlib only.

`mode` (the first argument) misbehaves at the start: the method at which it dies, `big-error`, `big-id`,
`early` (it talks before anything was agreed on). Not here: what is expected in return (the tests beside it).
"""

import json
import os
import subprocess
import sys
import threading
import time
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


def raw(data: bytes, step: int = 1 << 20) -> None:
    """Bytes, in pieces of so many."""
    with LOCK:
        for begin in range(0, len(data), step):
            sys.stdout.buffer.write(data[begin : begin + step])
            sys.stdout.buffer.flush()


def do_garbage(number: Any, limit: str) -> None:
    """Everything that is no protocol, around a turn whose words must all arrive."""
    say("one ")
    raw(b"not JSON\n[]\nnull\n{\n\xff\xfe\n" + b"[" * 5000 + b"\n\n\r\n")
    for odd in (1, 999, "x", None, True, [1], 1.5):
        put(id=odd, result={"stopReason": "end_turn", "sessionId": "stolen"})
    put(method="no/such/notification", params={"a": 1})
    put(id="q", method="no/such/request", params=[1])
    misshapen: list[Any] = [None, [], {"update": 5}, {"update": {"sessionUpdate": {}}}, {"sessionId": 7}]
    for params in misshapen:
        put(method="session/update", params=params)
    raw(b"x" * (int(limit) + 1) + b"\n")
    sys.stderr.write("noise\n" * 500_000)
    sys.stderr.flush()
    text = {"type": "text", "text": "zwölf 🙂 漢"}
    line = {"sessionUpdate": "agent_message_chunk", "content": text}
    message = {"method": "session/update", "params": {"sessionId": SESSION, "update": line}}
    raw(json.dumps(message, ensure_ascii=False).encode() + b"\n", step=1)
    end(number)
    say("behind the end")
    end(number)


def do_asks(number: Any, count: str) -> None:
    """So many permission requests at once, and then nothing."""
    for n in range(int(count)):
        tool = {"toolCallId": f"t{n}", "title": f"May I {n}"}
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
        params = {"sessionId": SESSION, "toolCall": tool, "options": options}
        put(id=f"ask-{n}", method="session/request_permission", params=params)
    say("asked")


def do_calls(number: Any, count: str) -> None:
    """Tool calls that never finish, with long names."""
    for n in range(int(count)):
        update("tool_call", toolCallId=f"{n}-{'i' * 2000}", title="t" * 2000, status="in_progress")
    say("called")


def do_chatter(number: Any) -> None:
    """Its turn ends, and it goes on talking by itself, whatever it is told."""
    end(number)
    while True:
        time.sleep(0.02)
        say("by myself ")


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
    name, *words = params["prompt"][0]["text"].rpartition("</kandev-context>")[2].strip().split(" ")
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
            if mode == "early":
                say("too early")
                update("tool_call", toolCallId="early", title="Early", status="in_progress")
                put(id="early", method="session/request_permission", params={"sessionId": SESSION})
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

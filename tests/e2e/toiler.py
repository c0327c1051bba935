"""An ACP agent that is hard to stop: each prompt's text names what it does. Run as a program; stdlib only.

`say TEXT`; `run SECONDS`, a command that it has its client run, deaf until that has ended; `toil`, tool calls
without an end, whatever is asked; `toil-on`, the same, although it answers a cancel. Not here: what is
expected of Kandev in return (the tests beside it).
"""

import json
import sys
import threading
import time
from itertools import count
from queue import Queue
from typing import Any

SESSION = "s-1"
PAUSE_S = 0.01
LOCK = threading.Lock()
ANSWERS: "dict[str, Queue[dict[str, Any]]]" = {}
OBEYS = threading.Event()
"""A cancel ends the turn that is current."""


def put(**message: Any) -> None:
    """One message."""
    with LOCK:
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        sys.stdout.buffer.flush()


def update(kind: str, **members: Any) -> None:
    """One `session/update`."""
    put(method="session/update", params={"sessionId": SESSION, "update": {**members, "sessionUpdate": kind}})


def ask(method: str, **params: Any) -> dict[str, Any]:
    """A request to the client, and its result."""
    number = f"a{len(ANSWERS)}"
    ANSWERS[number] = Queue()
    put(id=number, method=method, params={"sessionId": SESSION, **params})
    return dict(ANSWERS[number].get())


def end(number: Any, reason: str = "end_turn") -> None:
    """The turn's end."""
    put(id=number, result={"stopReason": reason})


def do_say(number: Any, text: str) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text})
    end(number)


def do_run(number: Any, seconds: str) -> None:
    terminal = ask("terminal/create", command="sleep", args=[seconds])["terminalId"]
    update("tool_call", toolCallId="c0", title="sleep", status="in_progress")
    ask("terminal/wait_for_exit", terminalId=terminal)
    end(number)


def do_toil(number: Any, _: str) -> None:
    for n in count():
        update("tool_call", toolCallId=f"c{n}", title=f"step {n}", status="completed")
        time.sleep(PAUSE_S)


def do_toil_on(number: Any, _: str) -> None:
    OBEYS.set()
    do_toil(number, "")


DEEDS = {"say": do_say, "run": do_run, "toil": do_toil, "toil-on": do_toil_on}
HELLO: dict[str, Any] = {"protocolVersion": 1, "agentCapabilities": {}}


def main() -> None:
    """Until stdin ends."""
    current: Any = None
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method is None:
            ANSWERS[number].put(message.get("result") or {})
        elif method == "initialize":
            put(id=number, result=HELLO)
        elif method == "session/new":
            put(id=number, result={"sessionId": SESSION})
        elif method == "session/prompt":
            current = number
            text = message["params"]["prompt"][0]["text"].rpartition("</kandev-context>")[2]
            name, _, words = text.strip().partition(" ")
            threading.Thread(target=DEEDS[name], args=(number, words), daemon=True).start()
        elif method == "session/cancel" and OBEYS.is_set() and current is not None:
            end(current, "cancelled")
            current = None


if __name__ == "__main__":
    main()

"""An ACP agent that behaves, but for one thing at one step, once. Run as a program; stdlib only.

Arguments: how it misbehaves (`exit`, `kill`, `mute`: it closes its output; `hang`; `shut`: it closes its
input and hangs; `history`: it repeats one without end), the step, and a file that says that it has done so
already. Not here: what is expected of Kandev.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

SESSION = "conversation"
CODE = 7
HOW, STEP, DONE = sys.argv[1], sys.argv[2], Path(sys.argv[3])
PIECE = 1000


def put(**message: Any) -> None:
    """One message."""
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def update(kind: str, **members: Any) -> None:
    """One `session/update`."""
    put(method="session/update", params={"sessionId": SESSION, "update": {"sessionUpdate": kind, **members}})


def say(text: str) -> None:
    """One message chunk."""
    update("agent_message_chunk", content={"type": "text", "text": text})


def at(step: str) -> None:
    """Here it may misbehave."""
    if step != STEP or DONE.exists():
        return
    DONE.touch()
    os.write(2, f"a line before\nlast words at {step}\n".encode())
    match HOW:
        case "exit":
            os._exit(CODE)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "mute":
            os.close(1)
        case "shut":
            os.close(0)
        case "history":
            while True:
                update("user_message_chunk", content={"type": "text", "text": "long ago " * 100})
    if step == "teardown":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        signal.pause()


class Agent:
    """Reads lines as they come."""

    def __init__(self) -> None:
        self.rest = b""
        self.prompts = 0
        self.current: Any = None
        self.logged_in = False

    def lines(self) -> Any:
        """Until the end of its input."""
        while True:
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                yield json.loads(line)
            piece = os.read(0, PIECE)
            if not piece:
                return
            self.rest += piece
            if self.prompts and b"session/prompt" in self.rest:
                at("taking")  # it has read the beginning, and what is behind it does not fit into the pipe

    def run(self) -> None:
        """All its life."""
        for message in self.lines():
            method = message.get("method", "")
            handler = getattr(self, "on_" + method.replace("/", "_"), None)
            if handler is not None:
                at(method)
                handler(message.get("id"), message.get("params", {}))
        at("teardown")

    def on_initialize(self, number: Any, params: Any) -> None:
        put(id=number, result={"protocolVersion": 1, "agentCapabilities": {"loadSession": True}})

    def on_authenticate(self, number: Any, params: Any) -> None:
        self.logged_in = True
        put(id=number, result={})

    def on_session_new(self, number: Any, params: Any) -> None:
        if STEP == "authenticate" and not self.logged_in:
            put(id=number, error={"code": -32000, "message": "log in"})
            return
        offers: dict[str, Any] = {"models": {"availableModels": []}}
        models = offers if STEP == "session/set_model" else {}
        put(id=number, result={"sessionId": SESSION, **models})

    def on_session_set_model(self, number: Any, params: Any) -> None:
        put(id=number, result={})

    def on_session_load(self, number: Any, params: Any) -> None:
        update("user_message_chunk", content={"type": "text", "text": "earlier"})
        put(id=number, result={})

    def on_session_prompt(self, number: Any, params: Any) -> None:
        """The first word says what the turn is; a turn whose step never misbehaves ends by itself."""
        self.prompts += 1
        self.current = number
        word = params["prompt"][0]["text"].rpartition("</kandev-context>")[2].split()[0]
        if word == "leave":
            os._exit(0)
        if word == "stay":  # until it is cancelled
            say("I stay.")
            return
        if word == "step":
            self.misbehave()
        say(f"{word} done")
        put(id=number, result={"stopReason": "end_turn"})

    def misbehave(self) -> None:
        """The steps within a turn, one after the other."""
        at("taken")
        say("first half ")
        at("output")
        update("tool_call", toolCallId="t1", title="A tool", status="in_progress")
        at("tool")
        tool = {"toolCallId": "t2", "title": "May I"}
        options = [{"optionId": "yes", "name": "Yes", "kind": "allow_once"}]
        if STEP == "permission":
            params = {"sessionId": SESSION, "toolCall": tool, "options": options}
            put(id="p1", method="session/request_permission", params=params)
            at("permission")

    def on_session_cancel(self, number: Any, params: Any) -> None:
        put(id=self.current, result={"stopReason": "cancelled"})
        at("cancelled")


if __name__ == "__main__":
    Agent().run()

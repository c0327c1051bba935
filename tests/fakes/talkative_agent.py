"""An ACP agent that says a lot in one message. Run as a program; stdlib only.

A prompt names it: `grow COUNT SIZE FOLDER` says so many pieces of so many characters, half of them at once
and the others when the file `go` is in the folder; `flood COUNT SIZE FOLDER` says only the first one before
that. In the folder it tells how far it came: `said` holds the number of pieces whenever it gets rid of no
more, `done` comes when all were said.
"""

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

STUCK_S = 1.0
"""So long without getting rid of a piece is being stuck."""
POLL_S = 0.01


def piece(number: int, size: int) -> str:
    """A piece that no other is like."""
    return f"{number:08}{chr(97 + number % 26) * (size - 9)} "


def whole(count: int, size: int) -> str:
    """The message."""
    return "".join(piece(number, size) for number in range(count))


def put(**message: Any) -> None:
    """One message of the protocol."""
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


class Speech:
    """One turn's message."""

    def __init__(self, size: int, folder: Path) -> None:
        self.size, self.folder = size, folder
        self.said = 0
        self.over = threading.Event()

    def say(self, until: int) -> None:
        """The pieces up to this number."""
        while self.said < until:
            content = {"type": "text", "text": piece(self.said, self.size)}
            update = {"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content}
            put(method="session/update", params={"sessionId": "s", "update": update})
            self.said += 1

    def wait_for_go(self) -> None:
        """Until the file is there."""
        while not (self.folder / "go").exists():
            time.sleep(POLL_S)

    def watch(self) -> None:
        """Tell how far it came whenever it is stuck."""
        before = -1
        while not self.over.wait(STUCK_S):
            if self.said == before:
                fresh = self.folder / "fresh"
                fresh.write_text(str(self.said))
                fresh.replace(self.folder / "said")
            before = self.said


def play(number: Any, words: list[str]) -> None:
    """One turn."""
    name, count, size, folder = words
    speech = Speech(int(size), Path(folder))
    threading.Thread(target=speech.watch, daemon=True).start()
    speech.say(1 if name == "flood" else int(count) // 2)
    speech.wait_for_go()
    speech.say(int(count))
    speech.over.set()
    (speech.folder / "done").touch()
    put(id=number, result={"stopReason": "end_turn"})


def main() -> None:
    """Until stdin ends."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        method, number = message.get("method"), message.get("id")
        if method == "initialize":
            put(id=number, result={"protocolVersion": 1})
        elif method == "session/new":
            put(id=number, result={"sessionId": "s"})
        elif method == "session/prompt":
            text = message["params"]["prompt"][0]["text"].rpartition("</kandev-context>")[2]
            words = text.strip().split(" ")
            threading.Thread(target=play, args=(number, words), daemon=True).start()


if __name__ == "__main__":
    main()

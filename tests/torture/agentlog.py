"""What the agents themselves wrote down: which prompts each process got, what it sent, in which order.

Read from the folder of `MOCK_AGENT_LOG`. A process that was killed may have written down a line that it did
not send any more; the last line of its file may be torn.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

TOKEN = re.compile(r"tk-\d+-\d+-")
TEXTS = {"agent_message_chunk": "message", "agent_thought_chunk": "thought"}


@dataclass(frozen=True)
class Piece:
    """Something that the agent sent: `kind` is `message`, `thought`, `tool_call`, `plan` or `permission`;
    `name` the agent's id of it; `status` a tool call's. `prompt`: the number of the one that ran, if any."""

    kind: str
    name: str
    text: str
    at: int
    prompt: int | None = None
    status: str = ""


@dataclass
class PromptLog:
    """One prompt: the messages in it by their tokens. Times are nanoseconds of the monotonic clock."""

    tokens: tuple[str, ...]
    received_at: int
    answered_at: int | None = None
    stop_reason: str | None = None
    cancels: int = 0
    """That came while it ran."""


@dataclass
class AgentLog:
    """One process."""

    execution: str
    pid: int
    prompts: list[PromptLog] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    opened: str | None = None
    """The conversation that it began or took up, by the agent's id."""
    loaded: bool = False
    began_at: int = 0
    last_at: int = 0
    faults: list[str] = field(default_factory=list)
    """What the protocol does not allow: a prompt beside a prompt, a gap in the numbers."""

    @property
    def session_id(self) -> str:
        return self.execution.rpartition(".")[0]


def read_logs(folder: Path) -> list[AgentLog]:
    """Every process's, oldest first."""
    logs = [_Reader(file).read() for file in sorted(folder.glob("*.jsonl"))]
    return sorted(logs, key=lambda log: log.began_at)


class _Reader:
    """Of one file."""

    def __init__(self, file: Path) -> None:
        execution, pid = file.name.removesuffix(".jsonl").rsplit(".", 1)
        self._log = AgentLog(execution, int(pid))
        self._file = file
        self._count = 0
        self._prompt_id: object = None
        self._load_id: object = None
        self._new_id: object = None

    def read(self) -> AgentLog:
        for line in self._file.read_bytes().split(b"\n")[:-1]:
            record = json.loads(line)
            self._count += 1
            if record["n"] != self._count:
                self._log.faults.append(f"record {record['n']} comes after {self._count - 1}")
            self._log.began_at = self._log.began_at or record["at"]
            self._log.last_at = record["at"]
            frame = _frame(record["line"])
            if frame is None:
                continue
            if record["dir"] == "<":
                self._received(frame, record["at"])
            else:
                self._sent(frame, record["at"])
        return self._log

    def _received(self, frame: dict[str, Any], at: int) -> None:
        method = frame.get("method")
        if method == "session/load":
            self._load_id = frame["id"]
            self._log.opened, self._log.loaded = frame["params"]["sessionId"], True
        elif method == "session/new":
            self._new_id = frame["id"]
        elif method == "session/cancel" and self._prompt_id is not None:
            self._log.prompts[-1].cancels += 1
        elif method == "session/prompt":
            if self._prompt_id is not None:
                self._log.faults.append(f"a prompt came beside one that runs, at {at}")
            self._prompt_id = frame["id"]
            text = "".join(block.get("text", "") for block in frame["params"]["prompt"])
            self._log.prompts.append(PromptLog(tuple(TOKEN.findall(text)), at))

    def _sent(self, frame: dict[str, Any], at: int) -> None:
        if frame.get("method") == "session/update" and self._load_id is None:
            self._update(frame["params"]["update"], at)
        elif frame.get("method") == "session/request_permission":
            call = frame["params"]["toolCall"]
            self._piece("permission", call["toolCallId"], call["title"], at)
        elif "method" not in frame and self._new_id is not None and frame.get("id") == self._new_id:
            self._new_id = None
            self._log.opened = (frame.get("result") or {}).get("sessionId")
            self._log.loaded = False
        elif "method" not in frame and self._load_id is not None and frame.get("id") == self._load_id:
            self._load_id = None
        elif "method" not in frame and self._prompt_id is not None and frame.get("id") == self._prompt_id:
            self._prompt_id = None
            prompt = self._log.prompts[-1]
            prompt.answered_at = at
            prompt.stop_reason = (frame.get("result") or {}).get("stopReason", "error")

    def _update(self, update: dict[str, Any], at: int) -> None:
        kind = update.get("sessionUpdate")
        if kind in TEXTS:
            self._piece(TEXTS[kind], update["messageId"], update["content"]["text"], at)
        elif kind in ("tool_call", "tool_call_update"):
            self._piece(
                "tool_call", update["toolCallId"], update.get("title", ""), at, str(update.get("status"))
            )
        elif kind == "plan":
            self._piece("plan", "plan", "\n".join(f"- {e['content']}" for e in update["entries"]), at)

    def _piece(self, kind: str, name: str, text: str, at: int, status: str = "") -> None:
        prompt = len(self._log.prompts) - 1 if self._prompt_id is not None else None
        self._log.pieces.append(Piece(kind, name, text, at, prompt, status))


def _frame(line: str) -> dict[str, Any] | None:
    """None: the garbage that a script asked for."""
    try:
        frame = json.loads(line)
    except ValueError:
        return None
    return frame if isinstance(frame, dict) else None

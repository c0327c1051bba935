"""What a conversation remembers, in a file that survives the process: texts, no tool calls.

One file per session, `<session id>.jsonl`, one entry per line, appended as things are said, so that a killed
process has lost nothing that it had said. It lies in `.mock-agent` beside the working directory, or else in
the home.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")
FOLDER = ".mock-agent"


@dataclass(frozen=True)
class Entry:
    """One message: `role` is `user` or `agent`."""

    role: str
    text: str
    message_id: str


class Memory:
    """The entries of one session, in memory and, where a folder can be written, on disk."""

    def __init__(self, file: Path | None, entries: list[Entry]) -> None:
        self._file = file
        self.entries = entries

    def add(self, entry: Entry) -> None:
        """Remember one message. A file that cannot be written any more ends the memory on disk only."""
        self.entries.append(entry)
        if self._file is None:
            return
        try:
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(entry)) + "\n")
        except OSError:
            self._file = None

    def prompts(self) -> list[str]:
        """What the user said, oldest first."""
        return [entry.text for entry in self.entries if entry.role == "user"]


def _folders(cwd: Path, home: Path | None) -> list[Path]:
    return [cwd.parent / FOLDER] + ([home / FOLDER] if home is not None else [])


def create(session_id: str, cwd: Path, home: Path | None) -> Memory:
    """The empty memory of a new session; without a file when no folder can be written."""
    for folder in _folders(cwd, home):
        if not cwd.is_dir() and folder.parent == cwd.parent:
            continue
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / f"{session_id}.jsonl"
            file.touch()
        except OSError:
            continue
        return Memory(file, [])
    return Memory(None, [])


def load(session_id: str, cwd: Path, home: Path | None) -> Memory | None:
    """The memory of an earlier session, or None when nothing is known of it."""
    if not _SAFE_ID.fullmatch(session_id):
        return None
    for folder in _folders(cwd, home):
        file = folder / f"{session_id}.jsonl"
        if file.is_file():
            return Memory(file, _entries(file.read_text(encoding="utf-8")))
    return None


def _entries(text: str) -> list[Entry]:
    entries = []
    for line in text.splitlines():
        try:
            entries.append(Entry(**json.loads(line)))
        except (ValueError, TypeError):
            continue  # the last line of a process that was killed while it wrote
    return entries

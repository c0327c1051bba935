"""The record of what agents asked of the scripted model: in memory to wait on, and as JSON lines in a file.

Not for the model's answers in full: an entry says which action was taken.
"""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
Wanted = Callable[[Entry], bool]


class RequestLog:
    """Entries in order. Keys of a request's entry: `n`, `path`, `kind`, `model`, `user`, `action`, `results`,
    `tools`, and `call` when a tool is called; of its end: `n` and `ended` or `client_gone` with `seconds`.
    `bodies` holds each request's JSON by its `n`, in memory only."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path
        self.entries: list[Entry] = []
        self.bodies: dict[int, Entry] = {}
        self._waiting: list[tuple[Wanted, asyncio.Future[Entry]]] = []

    def add(self, **fields: object) -> None:
        """Record one entry and wake who waits for it."""
        entry: Entry = {"t": round(time.time(), 3), **fields}
        self.entries.append(entry)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(entry, ensure_ascii=False) + "\n")
        for wanted, future in self._waiting:
            if not future.done() and wanted(entry):
                future.set_result(entry)

    async def seen(self, wanted: Wanted, deadline_s: float = 30.0) -> Entry:
        """The first entry that is wanted, recorded already or until the deadline; raises TimeoutError."""
        for entry in self.entries:
            if wanted(entry):
                return entry
        future: asyncio.Future[Entry] = asyncio.get_running_loop().create_future()
        waiting = (wanted, future)
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(deadline_s):
                return await future
        finally:
            self._waiting.remove(waiting)

    async def asked(self, text: str, deadline_s: float = 30.0) -> Entry:
        """The first request of a turn (one that offers tools) whose user text contains `text`."""
        return await self.seen(lambda entry: bool(entry.get("tools")) and text in entry["user"], deadline_s)

    async def finished(self, number: int, deadline_s: float = 30.0) -> Entry:
        """The end of the request `number`: the answer was sent, or the client went away."""

        def wanted(entry: Entry) -> bool:
            return bool(entry.get("n") == number and ("ended" in entry or "client_gone" in entry))

        return await self.seen(wanted, deadline_s)

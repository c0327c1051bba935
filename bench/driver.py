"""A bare ACP driver: the floor for what Kandev adds to an agent. One process, its pipes, nothing kept.

https://agentclientprotocol.com, version 1. Not Kandev's adapter, and of nobody's use beside measuring.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from bench.processes import clean_environment, ended

DEADLINE_S = 120.0
LINE_LIMIT = 1 << 24


class Bare:
    """One agent process with one conversation."""

    def __init__(self, process: Process) -> None:
        self.pid = process.pid
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[tuple[float, dict[str, Any]]]] = {}
        self._session = ""
        self._first: asyncio.Future[tuple[float, dict[str, Any]]] = asyncio.get_running_loop().create_future()
        self.on_update: Callable[[float, dict[str, Any]], None] = lambda at, update: None
        """Hears each update of the agent, with its time (`time.monotonic`)."""

    async def open(self, folder: Path) -> None:
        """`initialize` and `session/new`."""
        await self._ask("initialize", protocolVersion=1, clientCapabilities={})
        _, made = await self._ask("session/new", cwd=str(folder), mcpServers=[])
        self._session = made["sessionId"]

    async def prompt(self, text: str) -> tuple[float, dict[str, Any]]:
        """When the prompt was answered, and how."""
        return await self._ask(
            "session/prompt", sessionId=self._session, prompt=[{"type": "text", "text": text}]
        )

    def cancel(self) -> None:
        """`session/cancel`."""
        self._send({"method": "session/cancel", "params": {"sessionId": self._session}})

    def begin(self, text: str) -> asyncio.Task[tuple[float, dict[str, Any]]]:
        """`prompt`, not waited for; `first_update` is about it."""
        first: asyncio.Future[tuple[float, dict[str, Any]]] = asyncio.get_running_loop().create_future()
        self.on_update = lambda at, update: None if first.done() else first.set_result((at, update))
        self._first = first
        return asyncio.create_task(self.prompt(text))

    async def first_update(self) -> tuple[float, dict[str, Any]]:
        """The first update of what was begun, and when it came."""
        async with asyncio.timeout(DEADLINE_S):
            return await self._first

    async def _ask(self, method: str, **params: Any) -> tuple[float, dict[str, Any]]:
        name = next(self._ids)
        waiter: asyncio.Future[tuple[float, dict[str, Any]]] = asyncio.get_running_loop().create_future()
        self._waiting[name] = waiter
        self._send({"id": name, "method": method, "params": params})
        async with asyncio.timeout(DEADLINE_S):
            return await waiter

    def _send(self, frame: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode({"jsonrpc": "2.0", **frame}) + b"\n")

    async def read(self) -> None:
        """Until the agent closes its output."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            self._take(time.monotonic(), msgspec.json.decode(line))
        for waiter in self._waiting.values():
            if not waiter.done():
                waiter.set_exception(ConnectionError("the agent closed its output"))
                waiter.exception()

    def _take(self, at: float, frame: dict[str, Any]) -> None:
        if frame.get("method") == "session/update":
            self.on_update(at, frame["params"]["update"])
            return
        waiter = self._waiting.pop(frame.get("id", 0), None)
        if waiter is not None and not waiter.done():
            if "error" in frame:
                waiter.set_exception(ConnectionError(f"the agent refused: {frame['error']}"))
            else:
                waiter.set_result((at, frame["result"]))


@asynccontextmanager
async def driven(folder: Path, command: Sequence[str]) -> AsyncIterator[Bare]:
    """An agent that is ready for a prompt, while the block runs; then it is killed and awaited."""
    folder.mkdir(parents=True, exist_ok=True)
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=clean_environment(folder),
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=LINE_LIMIT,
        start_new_session=True,
    )
    bare = Bare(process)
    reading = asyncio.create_task(bare.read())
    try:
        await bare.open(folder)
        yield bare
    finally:
        await ended(process)
        reading.cancel()
        await asyncio.wait([reading])

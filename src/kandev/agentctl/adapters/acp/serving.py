"""What an ACP agent asks of its client: files, terminals, and things that do not exist.

Each request runs beside the reader, since it may wait. Not here: permission requests, which wait for people.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, Protocol

from kandev.agentctl.adapters.acp.documents import Document, clipped
from kandev.agentctl.adapters.acp.files import Files
from kandev.agentctl.adapters.acp.terminals import Terminals
from kandev.agentctl.adapters.base import WriteFailed
from kandev.agentctl.rpc import INTERNAL_ERROR, METHOD_NOT_FOUND, Call, RpcError
from kandev.agentctl.settings import Settings
from kandev.agentctl.tasks import Few, Tasks

MOST = 256
"""Requests of one agent that are under way at a time; what it asks beyond is refused."""
HELD_LINES = 2
"""They may hold so many of the longest lines together: a file to be written is one."""
LARGE_AT_ONCE = 4
"""Answers and contents of files that are in memory for an agent, which may not take them."""
REFUSALS = 64
"""That an agent has not taken yet; then what it says next waits."""
TOO_MUCH = -32000
"""JSON-RPC's first code for a server's own errors."""
LARGE = frozenset({"fs/read_text_file", "fs/write_text_file", "terminal/output"})

log = logging.getLogger(__name__)
Serve = Callable[[Document], Awaitable[Document]]


class Environment(Protocol):
    """Where the agent's environment is to be had."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Marks included."""


class Serving:
    """The owner of the tasks that serve one agent."""

    def __init__(self, process: Environment, settings: Settings) -> None:
        self._process = process
        self._settings = settings
        self._methods: dict[str, Serve] = {}
        self._terminals: Terminals | None = None
        self._tasks = Tasks()
        self._refusals = Few(self._tasks, REFUSALS)
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self._under_way = 0
        self._held = 0
        self._held_most = HELD_LINES * settings.line_max_bytes
        self._told = False
        self._closed = False

    def begin(self, cwd: str) -> None:
        """From now on there are files and terminals, in this folder."""
        files = Files(cwd, self._settings.line_max_bytes, self._settings.write_s)
        terminals = Terminals(files, cwd, self._process.environment, self._settings)
        self._terminals = terminals
        self._methods = {
            "fs/read_text_file": files.read,
            "fs/write_text_file": files.write,
            "terminal/create": terminals.create,
            "terminal/output": terminals.output,
            "terminal/wait_for_exit": terminals.wait_for_exit,
            "terminal/kill": terminals.kill,
            "terminal/release": terminals.release,
        }

    async def serve(self, call: Call) -> str | None:
        """Begins to, or refuses it because too much is under way; then a sentence for people, once."""
        if self._under_way < MOST and self._held + call.size <= self._held_most:
            self._told = self._told and self._under_way >= MOST // 2
            self._under_way += 1
            self._held += call.size
            self.start(self._counted(call), f"serve {call.method[:50]}")
            return None
        if not self._closed:
            await self._refusals.start(self._refuse(call), "refuse a request")
        told, self._told = self._told, True
        return None if told else "The agent asks too much at once: some of its requests were refused."

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Beside the reader; ended by `close`."""
        if self._closed:
            work.close()
            return
        self._tasks.start(work, name)

    async def close(self) -> None:
        """The agent says nothing more: nobody waits for answers."""
        self._closed = True
        await self._tasks.close()
        if self._terminals is not None:
            await self._terminals.close()

    async def _counted(self, call: Call) -> None:
        try:
            if call.method in LARGE:
                async with self._large:
                    await self._answer(call)
            else:
                await self._answer(call)
        finally:
            self._under_way -= 1
            self._held -= call.size

    async def _refuse(self, call: Call) -> None:
        with suppress(WriteFailed):
            await call.refuse(TOO_MUCH, f"{MOST} requests, or too much data, are under way already.")

    async def _answer(self, call: Call) -> None:
        try:
            method = self._methods.get(call.method)
            if method is None:
                unknown = clipped(call.method)
                await call.refuse(METHOD_NOT_FOUND, f"Kandev does not know the method {unknown!r}.")
                return
            try:
                result = await method(call.params)
            except RpcError as error:
                await call.refuse(error.code, clipped(error.message), error.data)
                return
            await call.answer(result)
        except WriteFailed:
            return  # The agent takes no answers; its end is reported by itself.
        except Exception:  # around a request
            log.exception("request %s of the agent failed", clipped(call.method))
            await self._apologise(call)

    async def _apologise(self, call: Call) -> None:
        with suppress(WriteFailed):
            await call.refuse(INTERNAL_ERROR, "Kandev failed to do that.")

"""What an ACP agent asks of its client: files, terminals, and things that do not exist.

Each request runs beside the reader, since it may wait. Not here: permission requests, which wait for people.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Protocol

from kandev.agentctl.adapters.acp.documents import Document
from kandev.agentctl.adapters.acp.files import Files
from kandev.agentctl.adapters.acp.terminals import Terminals
from kandev.agentctl.adapters.base import WriteFailed
from kandev.agentctl.rpc import INTERNAL_ERROR, METHOD_NOT_FOUND, Call, RpcError
from kandev.agentctl.settings import Settings

MOST = 256
"""Requests of one agent that are under way at a time."""

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
        self._tasks: set[asyncio.Task[None]] = set()
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

    def serve(self, call: Call) -> bool:
        """False when too many are under way."""
        if len(self._tasks) >= MOST:
            return False
        self.start(self._answer(call), f"serve {call.method}")
        return True

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Beside the reader; ended by `close`."""
        if self._closed:
            work.close()
            return
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """The agent says nothing more: nobody waits for answers."""
        self._closed = True
        if tasks := list(self._tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if self._terminals is not None:
            await self._terminals.close()

    async def _answer(self, call: Call) -> None:
        try:
            method = self._methods.get(call.method)
            if method is None:
                await call.refuse(METHOD_NOT_FOUND, f"Kandev does not know the method {call.method!r}.")
                return
            try:
                result = await method(call.params)
            except RpcError as error:
                await call.refuse(error.code, error.message, error.data)
                return
            await call.answer(result)
        except WriteFailed:
            return  # The agent takes no answers; its end is reported by itself.
        except Exception:  # around a request
            log.exception("request %s of the agent failed", call.method)
            await self._apologise(call)

    async def _apologise(self, call: Call) -> None:
        try:
            await call.refuse(INTERNAL_ERROR, "Kandev failed to do that.")
        except WriteFailed:
            return

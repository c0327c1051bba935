"""One launch: process, adapter, conversation; given up at a wish to end, at an exit and at the deadline.

What was started stands in `process`, `adapter` and `reader` also when the launch failed: the instance
ends it. Not here: the end.
"""

import asyncio

from kandev.agentctl import awake
from kandev.agentctl.adapters.base import Adapter, Sink, Spec, Started, StartFailed, ToolServer
from kandev.agentctl.failures import EndedEarly
from kandev.agentctl.maker import Maker, Process
from kandev.agentctl.settings import Settings
from kandev.agentctl.tasks import Tasks
from kandev.agentctl.tunnel.calls import Tunnel
from kandev.wire import agentctl as wire


class Launch:
    """Run once."""

    def __init__(
        self,
        spec: wire.CreateInstance,
        maker: Maker,
        sink: Sink,
        tasks: Tasks,
        settings: Settings,
        tunnel: Tunnel,
    ) -> None:
        self.process: Process | None = None
        self.adapter: Adapter | None = None
        self.reader: asyncio.Task[None] | None = None
        self._spec = spec
        self._maker = maker
        self._sink = sink
        self._tasks = tasks
        self._settings = settings
        self._tunnel = tunnel

    async def run(self, end_wanted: asyncio.Event) -> Started:
        """Raises StartFailed."""
        process = self.process = await self._maker.spawn(self._spec, self._settings)
        adapter = self.adapter = self._maker.adapter(process, self._sink, self._spec, self._settings)
        self.reader = self._tasks.start(self._read(adapter), "read an agent")
        starting = self._tasks.start(self._converse(adapter), "start an agent")
        exited = self._tasks.start(process.exited(), "await an exit")
        wanted = self._tasks.start(end_wanted.wait(), "end wanted")
        try:
            await awake.wait({starting, exited, wanted}, self._settings.launch_s, first=True)
            if not starting.done() and (exited.done() or self.reader.done()):
                # The agent's own words about its failure may still be in the pipe.
                await asyncio.wait({starting}, timeout=self._settings.teardown_protocol_s)
            if starting.done():
                return await self._outcome(starting, exited)
            raise StartFailed(self._why(exited, wanted.done()))
        finally:
            for task in (starting, exited, wanted):
                task.cancel()
            await asyncio.wait({starting, exited, wanted})

    async def _read(self, adapter: Adapter) -> None:
        try:
            await adapter.run()
        finally:
            # Also where reading broke: an agent that nobody reads is at its end.
            await self._sink.closed()

    async def _outcome(self, starting: asyncio.Task[Started], exited: asyncio.Task[int | None]) -> Started:
        try:
            return starting.result()
        except EndedEarly:
            # Its pipes close a moment before its exit code is there.
            await asyncio.wait({exited}, timeout=self._settings.teardown_protocol_s)
            if exited.done() and exited.result() is not None:
                raise StartFailed(self._why(exited, False)) from None
            raise

    def _why(self, exited: asyncio.Task[int | None], wanted: bool) -> str:
        if exited.done():
            return f"The agent exited with code {exited.result()} before it was ready."
        if self.reader is not None and self.reader.done():
            return "The agent closed its output before it was ready."
        if wanted:
            return "The launch was stopped."
        return f"The agent was not ready within {self._settings.launch_s:g} s."

    async def _converse(self, adapter: Adapter) -> Started:
        spec, tunnel = self._spec, self._tunnel
        return await adapter.start(
            Spec(
                cwd=spec.cwd,
                mcp_servers=spec.mcp_servers,
                tools=None if tunnel.over else ToolServer(tunnel.url, tunnel.token),
                withhold=tuple(spec.withhold),
                resume_token=spec.resume_token,
                model=spec.model,
                mode=spec.mode,
            )
        )

"""The mock agent's process: start, the end by closed stdin or a signal, and the exit code. No protocol."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from kandev import __version__
from kandev.agentctl.mock_agent.agent import Agent
from kandev.agentctl.mock_agent.commands import garbage
from kandev.agentctl.mock_agent.rpc import Connection
from kandev.agentctl.mock_agent.settings import USAGE, BadUsage, Settings, check_arguments, from_environment
from kandev.agentctl.mock_agent.stdio import Input, Output, WireLog

_SETTLE_S = 1.0


def main(argv: Sequence[str]) -> int:
    """Run until stdin closes or a signal comes.

    Answers the exit code: 2 for wrong arguments, 128 + the signal's number for a signal.
    """
    if list(argv) in (["--help"], ["-h"]):
        sys.stdout.write(USAGE + "\n")
        return 0
    try:
        check_arguments(argv)
        settings = from_environment()
    except BadUsage as error:
        sys.stderr.write(f"{error}\n")
        return 2
    if settings.exit_code is not None:
        return settings.exit_code
    code = asyncio.run(_Process(settings).run())
    # The thread that reads stdin may be waiting in a read that nothing ends.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class _Process:
    """One run: owns the reader and knows why it ends."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._agent = Agent(settings, __version__)
        self._ended = asyncio.Event()
        self._code = 0

    async def run(self) -> int:
        """Serve until the end, then end what was started. Answers the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, number)
        log = WireLog(self._settings.log)
        output = Output(sys.stdout.fileno(), log, self._closed)
        connection = Connection(
            Input(sys.stdin.fileno(), log), output, self._agent.request, self._agent.notification
        )
        self._agent.connection = connection
        if "garbage" in self._settings.flags:
            await garbage(connection, 4)
        reader = asyncio.create_task(self._read(connection))
        await self._ended.wait()
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        await output.settle(_SETTLE_S)
        await connection.close()
        await self._agent.close()
        return self._code

    async def _read(self, connection: Connection) -> None:
        await connection.serve()
        self._closed()

    def _closed(self) -> None:
        if not self._agent.switches.stubborn:
            self._ended.set()

    def _signalled(self, number: signal.Signals) -> None:
        if self._agent.switches.stubborn and number == signal.SIGTERM:
            return
        self._code = 128 + number
        self._ended.set()

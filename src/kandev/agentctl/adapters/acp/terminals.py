"""`terminal/*`: commands that the agent has us run, in its worktree, under its execution's mark.

Source: ACP schema, `CreateTerminalRequest` and its kin. Not here: permission (the agent asks for it before),
and the end of the execution, which finds these processes by their mark.
"""

import asyncio
import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path

from kandev.agentctl.adapters.acp.documents import Document, objects, text
from kandev.agentctl.adapters.acp.files import Files
from kandev.agentctl.adapters.base import StartFailed
from kandev.agentctl.child import Child, launch
from kandev.agentctl.ending import end_family, send_signal
from kandev.agentctl.looking import Family, Mark
from kandev.agentctl.origins import Environment
from kandev.agentctl.pipes import Drain, close_all, open_pipe
from kandev.agentctl.rpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from kandev.agentctl.settings import Settings

TERMINAL_MARK = "KANDEV_TERMINAL"
OUTPUT_BYTES = 1024 * 1024
"""Output that is kept when the agent names no limit, and sixteen times of which it may name."""
OUTPUTS_BYTES = 64 * 1024 * 1024
"""That the terminals of one agent may keep together; beyond it a new one keeps `LEAST_BYTES`."""
LEAST_BYTES = 64 * 1024
MOST = 64
"""Terminals that one agent may have at a time."""
SHELL = "/bin/sh"


class Terminals:
    """All terminals of one agent. `environment` is the agent's own, marks included."""

    def __init__(self, files: Files, cwd: str, environment: Mapping[str, str], settings: Settings) -> None:
        self._files = files
        self._cwd = cwd
        self._environment = dict(environment)
        self._settings = settings
        self._open: dict[str, Terminal] = {}
        self._count = 0

    async def create(self, params: Document) -> Document:
        """Starts a command. Raises RpcError with one sentence."""
        if len(self._open) >= MOST:
            raise RpcError(INVALID_PARAMS, f"There are {MOST} terminals already; release some.")
        cwd = self._cwd if params.get("cwd") is None else str(self._files.inside(params["cwd"]))
        self._count += 1
        name = f"terminal-{self._count}"
        marks = {key: value for key, value in self._environment.items() if key.startswith("KANDEV_")}
        marks[TERMINAL_MARK] = name
        given = {str(entry.get("name")): str(entry.get("value")) for entry in objects(params.get("env"))}
        environment = {**self._environment, **given, **marks}
        command = _command(params, environment, cwd)
        left = max(LEAST_BYTES, OUTPUTS_BYTES - sum(terminal.limit for terminal in self._open.values()))
        try:
            self._open[name] = Terminal(command, cwd, environment, min(_limit(params), left))
        except StartFailed as error:
            raise RpcError(INTERNAL_ERROR, str(error)) from None
        return {"terminalId": name}

    async def output(self, params: Document) -> Document:
        """What it has written so far, and how it ended if it has."""
        return self._get(params).output()

    async def wait_for_exit(self, params: Document) -> Document:
        """Returns when the command has ended, however long it takes: the agent decides."""
        return await self._get(params).exit_status()

    async def kill(self, params: Document) -> Document:
        """Ends the command and all it started; its output stays."""
        await self._get(params).end(self._settings)
        return {}

    async def release(self, params: Document) -> Document:
        """Ends the command, if it still runs, and forgets it."""
        terminal = self._get(params)
        del self._open[str(params.get("terminalId"))]
        await terminal.end(self._settings)
        terminal.close()
        return {}

    async def close(self) -> None:
        """The agent is gone: kill what its terminals run, and give the descriptors back."""
        terminals = list(self._open.values())
        self._open.clear()
        for terminal in terminals:
            terminal.kill()
            terminal.close()
        if terminals:
            ends = [asyncio.ensure_future(terminal.exit_status()) for terminal in terminals]
            _, waiting = await asyncio.wait(ends, timeout=self._settings.teardown_kill_s)
            for end in waiting:
                end.cancel()

    def _get(self, params: Document) -> "Terminal":
        name = params.get("terminalId")
        if not isinstance(name, str) or name not in self._open:
            raise RpcError(INVALID_PARAMS, f"There is no terminal {name!r}.")
        return self._open[name]


class Terminal:
    """One command with its output. Raises StartFailed."""

    def __init__(self, command: list[str], cwd: str, environment: dict[str, str], limit: int) -> None:
        reading, writing = open_pipe()
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            child = launch(command, cwd, environment, stdin=nothing, stdout=writing, stderr=writing)
        except BaseException:
            close_all(reading)
            raise
        finally:
            close_all(writing, nothing)
        self.limit = limit
        self._child: Child = child
        self._kept = Kept(limit)
        self._pipe = Drain(reading, self._kept.add)
        marks = {k.encode(): v.encode() for k, v in environment.items() if k.startswith("KANDEV_")}
        self._family = Family(_mark(marks), root=(child.pid, child.start_time))

    def output(self) -> Document:
        """ACP's `TerminalOutputResponse`."""
        self._pipe.drain()
        answer: Document = {"output": self._kept.text(), "truncated": self._kept.truncated}
        if not self._child.running:
            answer["exitStatus"] = _status(self._child.code)
        return answer

    async def exit_status(self) -> Document:
        """ACP's `TerminalExitStatus`, once the command has ended."""
        return _status(await self._child.exited())

    async def end(self, settings: Settings) -> None:
        """The command and all it started."""
        await end_family(self._family, settings)

    def kill(self) -> None:
        """At once, without looking whether it worked."""
        for process in self._family.look():
            send_signal(process, signal.SIGKILL)

    def close(self) -> None:
        """No more output."""
        self._pipe.close()


class Kept:
    """The end of an output, at most `limit` bytes, beginning at a character."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self.truncated = False

    def add(self, chunk: bytes) -> None:
        """Cuts at the front when it gets too much."""
        self._data += chunk
        excess = len(self._data) - self._limit
        if excess > 0:
            while excess < len(self._data) and self._data[excess] & 0xC0 == 0x80:
                excess += 1
            del self._data[:excess]
            self.truncated = True

    def text(self) -> str:
        """Bytes that are no UTF-8 show as U+FFFD."""
        return self._data.decode(errors="replace")


def _command(params: Document, environment: Mapping[str, str], cwd: str) -> list[str]:
    """Some agents give a whole shell line as the command, and no arguments: that is run by a shell."""
    command, args = text(params.get("command")), params.get("args") or []
    if not command:
        raise RpcError(INVALID_PARAMS, "A terminal needs a command.")
    if not isinstance(args, list) or not all(isinstance(word, str) for word in args):
        raise RpcError(INVALID_PARAMS, "The arguments of a terminal's command must be a list of texts.")
    found = shutil.which(str(Path(cwd, command)) if "/" in command else command, path=environment.get("PATH"))
    if args or found is not None or command.split() == [command]:
        return [command, *args]
    return [SHELL, "-c", command]


def _limit(params: Document) -> int:
    limit = params.get("outputByteLimit")
    if limit is None:
        return OUTPUT_BYTES
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        raise RpcError(INVALID_PARAMS, "The parameter outputByteLimit must be a whole number from 0 on.")
    return min(limit, 16 * OUTPUT_BYTES)


def _mark(marks: dict[bytes, bytes]) -> Mark:
    """The environment's alone: a brand names the execution, and not which of its terminals."""

    def carried(environment: Environment) -> bool:
        return all(environment.get(name) == value for name, value in marks.items())

    return Mark(carried, lambda brand: False)


def _status(code: int | None) -> Document:
    if code is None or code >= 0:
        return {"exitCode": code, "signal": None}
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    return {"exitCode": None, "signal": name}

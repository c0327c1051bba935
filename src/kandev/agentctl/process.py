"""Owns the process tree of one execution: starts the agent, carries its three pipes, ends it, proves it gone.

Not here: what is said over the pipes (`kandev.agentctl.rpc`, `kandev.agentctl.adapters`), and when an agent
is ended (the instance). Every process of an execution carries a mark in its environment (`KANDEV_EXECUTION`,
`KANDEV_HOME`, `KANDEV_INCARNATION`) and a brand (`kandev.agentctl.branding`), which its children inherit.
"""

import asyncio
from collections.abc import Mapping

from kandev.agentctl.adapters.base import StartFailed
from kandev.agentctl.child import (
    Child,
    adopts_orphans,
    become_subreaper,
    launch,
    reap_orphans,
    watched_children,
)
from kandev.agentctl.ending import end_family, end_marked
from kandev.agentctl.grouping import Group, own_group
from kandev.agentctl.looking import Family, find_marked, mark_of
from kandev.agentctl.origins import EXECUTION_MARK, HOME_MARK
from kandev.agentctl.pipes import Drain, ReadEnd, Tail, WriteEnd, close_all, open_pipe
from kandev.agentctl.settings import Settings
from kandev.wire import agentctl as wire

__all__ = [
    "AgentProcess",
    "StartFailed",
    "agent_environment",
    "become_subreaper",
    "end_marked",
    "find_marked",
    "past_proxies",
    "spawn",
]

INHERITED = frozenset({"PATH", "HOME", "LANG", "TERM", "TMPDIR"})
INHERITED_PREFIXES = ("LC_", "SSL_CERT_")
OURSELVES = ("127.0.0.1", "localhost")
PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"})


def agent_environment(inherited: Mapping[str, str], extra: Mapping[str, str]) -> dict[str, str]:
    """What an agent gets: the named variables of ours (paths, language, terminal, proxies, certificates) and
    `extra` (its profile's and the marks), nothing else."""
    kept = {
        name: value
        for name, value in inherited.items()
        if name in INHERITED or name.startswith(INHERITED_PREFIXES) or name.upper() in PROXIES
    }
    return {**kept, **extra}


def past_proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """Where proxies are set, this machine's own addresses are asked without one: Kandev's tools are there."""
    if not any(environment.get(name) for name in environment if name.upper() in PROXIES - {"NO_PROXY"}):
        return dict(environment)
    given = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    spared = [name.strip() for name in given.split(",") if name.strip()]
    spared += [name for name in OURSELVES if name not in spared]
    return {**environment, "no_proxy": ",".join(spared), "NO_PROXY": ",".join(spared)}


async def spawn(
    execution_id: str, command: list[str], cwd: str, env: dict[str, str], settings: Settings
) -> "AgentProcess":
    """Start an agent. `env` is its whole environment (see `agent_environment`); the execution's mark is
    added. Raises StartFailed with one sentence."""
    environment = {**env, EXECUTION_MARK: execution_id}
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for ours_first in (False, True, True):  # stdin, stdout, stderr
            reading, writing = open_pipe()
            ours.append(reading if ours_first else writing)
            theirs.append(writing if ours_first else reading)
    except OSError as error:
        close_all(*ours, *theirs)
        raise StartFailed(f"The agent got no pipes: {error.strerror}.") from None
    group = Group(execution_id, env.get(HOME_MARK, ""), own_group())
    try:
        with group.entered():
            child = launch(command, cwd, environment, stdin=theirs[0], stdout=theirs[1], stderr=theirs[2])
    except BaseException:
        close_all(*ours)
        group.remove()
        raise
    finally:
        close_all(*theirs)
    pipes = (ours[0], ours[1], ours[2])
    return AgentProcess(execution_id, child, pipes, environment=environment, group=group, settings=settings)


class AgentProcess:
    """An agent and everything that it started. `end` must be called in the end, also when the agent ended by
    itself: it ends what the agent left and gives the descriptors back."""

    def __init__(
        self,
        execution_id: str,
        child: Child,
        pipes: tuple[int, int, int],
        *,
        environment: dict[str, str],
        group: Group,
        settings: Settings,
    ) -> None:
        self.execution_id = execution_id
        self.pid = child.pid
        self.start_time = child.start_time
        self.environment = environment
        """All that the agent was started with, marks included; for the commands that it has us run."""
        self._child = child
        self._settings = settings
        self._stdin = WriteEnd(pipes[0], settings.write_s)
        self._stdout = ReadEnd(pipes[1])
        self._tail = Tail(settings.stderr_tail_lines)
        self._stderr = Drain(pipes[2], self._tail.add)
        self._group = group
        self._family = Family(
            mark=mark_of(execution_id, environment.get(HOME_MARK, "")),
            root=(child.pid, child.start_time),
            grouped=group.pids,
            others=watched_children,
        )
        self._hurry = asyncio.Event()
        self._ending: asyncio.Task[list[wire.Process]] | None = None
        self._exit = asyncio.ensure_future(self._watch())

    async def read(self) -> bytes:
        """The next chunk of stdout; `b""` when it is closed, or the agent has ended and all it said was
        read."""
        return await self._stdout.read()

    async def write(self, data: bytes) -> None:
        """Whole, in the order of the calls. Raises WriteFailed at `write_s`, or when the pipe is closed."""
        await self._stdin.write(data)

    async def close_input(self) -> None:
        """May be called more than once."""
        self._stdin.close()

    def stderr_tail(self) -> list[str]:
        """The last lines, oldest first."""
        return self._tail.lines()

    async def exited(self) -> int | None:
        """Exit code, negative for a signal, None when it cannot be known. May be awaited many times."""
        return await asyncio.shield(self._exit)

    def look(self) -> list[wire.Process]:
        """Every live process of this execution, terminals included. For what comes with every turn: an end is
        proven by a look at all processes of the machine."""
        reap_orphans()
        return self._family.look_near() if adopts_orphans() else self._family.look()

    async def end(self, *, force: bool) -> list[wire.Process]:
        """Close stdin and wait (not when `force`), SIGTERM and wait, SIGKILL and wait, look. Returns the
        survivors. Concurrent callers share one end, and a forceful one hurries a polite one; later callers
        get the same answer, or another try when something survived."""
        if force:
            self._hurry.set()
        if self._ending is None or self._must_try_again(self._ending):
            self._ending = asyncio.create_task(self._end(), name=f"end {self.execution_id}")
        return await asyncio.shield(self._ending)

    @staticmethod
    def _must_try_again(ending: "asyncio.Task[list[wire.Process]]") -> bool:
        return ending.done() and (
            ending.cancelled() or ending.exception() is not None or bool(ending.result())
        )

    async def _end(self) -> list[wire.Process]:
        self._stdin.close()
        await self._wait_politely()
        survivors = await end_family(self._family, self._settings, kill_group=self._group.kill)
        if not self._child.running:
            await self._exit
        self._stdout.finish()
        self._stderr.close()
        reap_orphans()
        self._group.remove()
        return survivors

    async def _wait_politely(self) -> None:
        if self._hurry.is_set() or self._exit.done():
            return
        hurry = asyncio.ensure_future(self._hurry.wait())
        try:
            await asyncio.wait(
                [self._exit, hurry],
                timeout=self._settings.teardown_stdin_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            hurry.cancel()

    async def _watch(self) -> int | None:
        """What the agent said before it ended is kept; what a grandchild might still say is not waited
        for."""
        code = await self._child.exited()
        self._stderr.drain()
        self._stdout.end()
        self._stdin.close()
        return code

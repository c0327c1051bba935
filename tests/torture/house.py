"""A Kandev that is tortured: shrunk settings, a log of each agent, and ways to kill or hold its programs.

Processes are signalled one by one, and only those that carry this home's mark.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.e2e.kandev import DEADLINE_S, Kandev
from tests.e2e.scenes import alive, environment_of

SHRUNK = {
    "KANDEV_CANCEL_ACKNOWLEDGE_S": "0.6",
    "KANDEV_CANCEL_REPEAT_S": "0.1",
    "KANDEV_CANCEL_SETTLE_S": "0.05",
    "KANDEV_MESSAGE_ANSWER_S": "3",
    "KANDEV_PROMPT_ACCEPT_S": "5",
    "KANDEV_LAUNCH_S": "30",
    "KANDEV_COMMIT_S": "15",
    "KANDEV_AGENTCTL_CALL_S": "10",
    "KANDEV_AGENTCTL_LOST_S": "20",
    "KANDEV_REFUSAL_RETRY_S": "0.05",
    "KANDEV_OWN_TURN_SILENT_S": "0.2",
    "KANDEV_LATE_OUTPUT_S": "0.1",
    "KANDEV_TEARDOWN_PROTOCOL_S": "0.1",
    "KANDEV_TEARDOWN_STDIN_S": "0.3",
    "KANDEV_TEARDOWN_TERM_S": "0.3",
    "KANDEV_TEARDOWN_KILL_S": "5",
    "KANDEV_TEARDOWN_S": "20",
    "KANDEV_SWEEP_S": "1",
    "KANDEV_WINDOW_FRAMES": "16",
    "KANDEV_JOURNAL_MAX_BYTES": "1000000",
    "KANDEV_QUEUE_MAX_PER_SESSION": "6",
}
"""What people wait for is short; what only a broken or an overloaded machine reaches is generous."""
TIGHT = {
    "KANDEV_CANCEL_ACKNOWLEDGE_S": "0.15",
    "KANDEV_MESSAGE_ANSWER_S": "0.3",
    "KANDEV_PROMPT_ACCEPT_S": "0.4",
    "KANDEV_LAUNCH_S": "1.2",
    "KANDEV_AGENTCTL_CALL_S": "0.7",
    "KANDEV_AGENTCTL_LOST_S": "1",
    "KANDEV_WRITE_S": "2",
    "KANDEV_TEARDOWN_KILL_S": "0.5",
    "KANDEV_TEARDOWN_S": "1.5",
    "KANDEV_JOURNAL_MAX_BYTES": "60000",
}
"""On top of the others: everything that waits runs out now and then, and is settled in its defined way."""
SLEEPY = {"KANDEV_IDLE_SLEEP_S": "0.2"}
"""Agents are put to sleep as soon as they have nothing to do."""
ANSWER_S = 60.0
"""Longer than any deadline above: whoever is not answered by then waits without end."""


@dataclass(frozen=True)
class Running:
    """A process of this home. `execution` None: backend or agentctl, or what they start for themselves."""

    pid: int
    command: str
    execution: str | None


def running(home: Path) -> list[Running]:
    """All processes with the home's mark that are no zombies."""
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - names only
        if name.isdigit():
            with suppress(OSError):
                words = environment_of(int(name))
                if words.get("KANDEV_HOME") == str(home) and alive(int(name)):
                    command = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ")
                    text = command.decode(errors="replace").strip()
                    found.append(Running(int(name), text, words.get("KANDEV_EXECUTION")))
    return found


def send(pid: int, number: int) -> bool:
    """To this process, if it is there still."""
    with suppress(OSError):
        os.kill(pid, number)
        return True
    return False


class House(Kandev):
    """`up` is set while a backend is there to be asked."""

    def __init__(self, home: Path, environment: dict[str, str] | None = None) -> None:
        super().__init__(home, {**SHRUNK, **(environment or {})})
        self.agent_logs = home.parent / f"{home.name}-agents"
        self.agent_logs.mkdir(parents=True, exist_ok=True)
        self._http.timeout = httpx.Timeout(ANSWER_S)
        self.up = asyncio.Event()
        self.changing = asyncio.Lock()
        """Held by whoever kills, starts or pauses programs."""
        self._moments: dict[str, asyncio.Event] = {}

    def heard(self, action: str) -> None:
        """Somebody was told of it."""
        if (moment := self._moments.pop(action, None)) is not None:
            moment.set()

    async def moment(self, action: str, most_s: float) -> None:
        """Until somebody is told of it, or so long."""
        moment = self._moments.setdefault(action, asyncio.Event())
        with suppress(TimeoutError):
            async with asyncio.timeout(most_s):
                await moment.wait()

    async def start(self, *arguments: str) -> dict[str, object]:
        """Until it is ready. One that is killed by a point before that is started again."""
        try:
            ready = await super().start(*arguments)
        except AssertionError:
            if await super()._gone(signal.SIGKILL) != -signal.SIGKILL:
                raise
            return await self.start(*arguments)
        self.up.set()
        return ready

    async def keep_up(self, died: Callable[[int], None]) -> None:
        """For ever: a backend that dies by itself is told of, by its exit code, and followed by the next."""
        while True:
            await asyncio.sleep(0.03)
            if self.changing.locked() or self.process is None or self.process.poll() is None:
                continue
            async with self.changing:
                self.up.clear()
                died(await super()._gone(signal.SIGKILL))
                await self.start()

    async def kill(self) -> None:
        """`kill -9` of the backend."""
        self.up.clear()
        await super().kill()

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """A polite end."""
        self.up.clear()
        return await super().stop(number)

    async def kill_while_it_starts(self, after_s: float) -> None:
        """Start it and kill it so soon; it may be ready by then."""
        self.up.clear()
        starting = asyncio.create_task(super().start())
        await asyncio.wait({starting}, timeout=after_s)
        process = self.process
        assert process is not None
        process.kill()
        with suppress(AssertionError, ValueError):
            await starting
        await super()._gone(signal.SIGKILL)

    async def second(self) -> tuple[int, str]:
        """Start another backend on the same home; its exit code, and what it said."""
        command = [sys.executable, "-m", "kandev", "serve", "--port", "0", "--no-browser"]

        def ran() -> tuple[int, str]:
            done = subprocess.run(
                command,
                env=self.env(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=DEADLINE_S,
            )
            return done.returncode, done.stderr

        return await asyncio.to_thread(ran)

    @property
    def serves(self) -> bool:
        """There is a backend, and it is ready."""
        return self.up.is_set() and self.process is not None and self.process.poll() is None

    # -- who is there -----------------------------------------------------------------------------

    def backend(self) -> int | None:
        """Its pid."""
        return self.process.pid if self.process else None

    def agentctl(self) -> int | None:
        """Its pid, when one lives."""
        for one in running(self.home):
            if one.execution is None and " agentctl" in one.command:
                return one.pid
        return None

    def agents(self) -> list[int]:
        """The agents' own processes, without what they have started."""
        return [one.pid for one in running(self.home) if one.execution and "mock-agent" in one.command]

    async def hang_up(self) -> None:
        """Close what the client keeps open; it can be used on."""
        await self._http.aclose()
        self._http = httpx.AsyncClient(timeout=ANSWER_S, trust_env=False)

    async def close(self) -> None:
        """Its client, when no program runs any more."""
        await self._http.aclose()

"""How an instance comes by its agent: the process and the adapter that speaks to it.

A seam: the real maker (`programs`) starts programs, tests give their own. Not here: what a process or an
adapter does.
"""

from typing import Protocol

from kandev.agentctl.adapters.base import Adapter, Sink
from kandev.agentctl.settings import Settings
from kandev.wire import agentctl as wire


class Process(Protocol):
    """What an instance needs of `process.AgentProcess`."""

    @property
    def pid(self) -> int: ...

    def stderr_tail(self) -> list[str]: ...

    async def exited(self) -> int | None:
        """Waits for the exit; the code, negative for a signal."""

    def look(self) -> list[wire.Process]:
        """The living processes that carry the execution's mark."""

    async def end(self, *, force: bool) -> list[wire.Process]:
        """The whole ladder, shared by concurrent callers; the survivors."""


class Maker(Protocol):
    """Brings an agent up to where a conversation can begin."""

    async def spawn(self, spec: wire.CreateInstance, settings: Settings) -> Process:
        """Raises StartFailed."""

    def adapter(self, process: Process, sink: Sink, spec: wire.CreateInstance, settings: Settings) -> Adapter:
        """Raises StartFailed for a protocol that is not spoken."""

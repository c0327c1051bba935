"""Where agents run: the backend's side of agentctl.

Called by `runtime.effects` and by start-up. One implementation talks to a real agentctl
(`kandev.execution`), one is simulated for tests; both pass one contract suite. Answers are never mixed: what
agentctl *says* is a result, what could not be asked raises `Unreachable`.
"""

from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, Protocol

from kandev.core.errors import AgentFault
from kandev.core.inputs import Frame
from kandev.core.session import Answer, TurnRef


class Unreachable(AgentFault):
    """Nothing is known: no answer, a broken connection, a deadline. Ask again."""


class UnknownExecution(AgentFault):
    """agentctl does not know this execution (any more); or its journal is another one."""


class LaunchRefused(AgentFault):
    """The agent did not come up; one sentence why. `stderr` holds its last lines."""

    def __init__(self, message: str, stderr: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.stderr = stderr


class CancelRefused(AgentFault):
    """agentctl refused a cancel in words."""


@dataclass(frozen=True)
class LaunchSpec:
    """How to start one execution. `cwd` exists; `cancel_acknowledge_s` in seconds. `mcp_mode`:
    which of Kandev's tools its agent gets (`task`); None: no tools."""

    execution: str
    session_id: str
    task_id: str
    protocol: str
    command: tuple[str, ...]
    cwd: str
    env: dict[str, str] = field(default_factory=dict)
    mcp_servers: tuple[dict[str, Any], ...] = ()
    resume_token: str | None = None
    model: str | None = None
    mode: str | None = None
    auto_approve: bool = False
    auth_method: str | None = None
    withhold: tuple[str, ...] = ()
    cancel_acknowledge_s: float | None = None
    mcp_mode: str | None = None


@dataclass(frozen=True)
class Up:
    """The agent is ready. `memory` False: the conversation asked for could not be taken up."""

    journal: str
    conversation: str | None = None
    memory: bool | None = None
    agent: str | None = None


@dataclass(frozen=True)
class Prompted:
    """`taken`: written whole and journalled; else refused in words, for ever, with `reason`."""

    taken: bool
    reason: str = ""


@dataclass(frozen=True)
class Down:
    """The tree was ended and looked at. `survivors`: `pid command` of each process that is left."""

    last_seq: int = 0
    journal: str | None = None
    survivors: tuple[str, ...] = ()
    exit_code: int | None = None


@dataclass(frozen=True)
class Running:
    """An execution that agentctl knows."""

    execution: str
    session_id: str
    journal: str
    state: str


class Agents(Protocol):
    """All deadlines are the caller's, in seconds; a call may be cancelled at any await and repeated."""

    async def start(self, spec: LaunchSpec, deadline: float) -> Up:
        """Bring an execution up, or join the one of this id. Starts agentctl itself if there is none.
        Raises LaunchRefused, Unreachable."""

    async def prompt(self, turn: TurnRef, dispatch_id: str, content: str, deadline: float) -> Prompted:
        """Hand a prompt over. A repeated dispatch id gets its first answer. Raises UnknownExecution,
        Unreachable."""

    async def dispatched(self, turn: TurnRef, dispatch_id: str, deadline: float) -> bool | None:
        """Was it taken? False is for ever; None: the write is under way. Raises UnknownExecution,
        Unreachable."""

    async def cancel(self, turn: TurnRef, deadline: float) -> bool:
        """True: the turn is over, or such a turn will never be (`acknowledged`, `not_running`). False: the
        agent did not acknowledge in its time. Raises CancelRefused, UnknownExecution, Unreachable."""

    async def answer_permission(self, turn: TurnRef, request: str, answer: Answer, deadline: float) -> None:
        """Settled when it returns, also when it had been answered before. Raises UnknownExecution,
        Unreachable."""

    async def end(self, execution: str, *, force: bool, deadline: float) -> Down:
        """End the tree, keep the journal, fence the id. Raises UnknownExecution (then it is fenced all the
        same), Unreachable."""

    async def put_to_sleep(self, execution: str, seen: int, deadline: float) -> str | None:
        """`end`, if nothing goes on: no turn, nothing journalled behind `seen`, nothing that a turn left
        running, and an agent that can take its conversation up again. None: it is over. Else a sentence says
        why not, and nothing was done. Raises UnknownExecution, Unreachable."""

    async def forget(self, execution: str, deadline: float) -> None:
        """Drop an ended execution and its journal; unknown is fine. Raises Unreachable."""

    def follow(
        self, execution: str, journal: str, after: int, committed: Callable[[], int]
    ) -> AsyncIterator[Frame]:
        """The journal's frames behind `after`, in order, live, without an end until the last one
        (`Exited`). What `committed()` returns is acknowledged as it grows. Raises UnknownExecution (also
        for another journal id), Unreachable."""

    async def known(self, deadline: float) -> tuple[Running, ...]:
        """All executions of the agentctl that runs; none when none runs. Raises Unreachable."""

    async def unknown(self, executions: Collection[str], deadline: float) -> Collection[str]:
        """Those that the agentctl that runs does not know: nothing of them is left. None when none runs, for
        nobody has looked. Raises Unreachable."""

    async def attach(self, epoch: int) -> None:
        """Act with this epoch from now on."""

    async def close(self, *, stop_agents: bool, deadline: float) -> int:
        """Let go: idle executions are ended (all, with `stop_agents`); returns how many turns go on."""

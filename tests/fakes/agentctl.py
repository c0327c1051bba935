"""The simulated agentctl: the execution port without processes, sockets, threads or disk.

`SimAgentctl` is the world that outlives backends; each backend has a `SimAgents` of its own on it.
Asyncio only, so it runs under virtual time and seeded schedules. Faults are injected at
`SimAgentctl.fault`. Not here: one execution's rules (`simulated_execution`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine
from typing import Any, TypeVar

from kandev.agentctl.settings import Settings
from kandev.core import inputs
from kandev.core.session import Answer, TurnRef
from kandev.ports.execution import (
    Down,
    LaunchRefused,
    LaunchSpec,
    Prompted,
    Running,
    UnknownExecution,
    Unreachable,
    Up,
)
from kandev.ports.tools import Tools
from tests.fakes.simulated_execution import SimExecution, within
from tests.fakes.simulated_tunnel import SimLane, SimTunnel
from tests.fakes.tools import FakeTools

T = TypeVar("T")
Fault = Callable[[str, str, str], Awaitable[None]]
"""`(call, "before" | "after", execution)`: may wait, or raise Unreachable. "before" loses the request,
"after" its answer."""


async def no_fault(call: str, moment: str, execution: str) -> None:
    """Everything arrives at once."""


class SimAgentctl:
    """`launch_s`: seconds a launch takes. `refuse_launch`: one sentence why every launch fails, or None."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.epoch = 0
        self.executions: dict[str, SimExecution] = {}
        self.tombstones: set[str] = set()
        self.lanes: dict[str, SimLane] = {}
        """Of each execution, the newest one."""
        self.fault: Fault = no_fault
        self.launch_s = 0.0
        self.refuse_launch: str | None = None
        self.configure: Callable[[SimExecution], None] = lambda execution: None
        """Called with each new execution, e.g. to set `accept_s`, `end_s` or `survivors`."""
        self._journals = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._launches: dict[str, asyncio.Task[Up]] = {}

    # -- what a test does to it -------------------------------------------------------------------

    def kill_agent(self, execution: str, code: int = -9) -> None:
        """The agent's process dies."""
        one = self.executions[execution]
        one.exit_code = code
        one.finish()

    def die(self, *, journals_survive: bool = True) -> None:
        """agentctl is killed and replaced: all agents are ended; its journals are adopted, or lost with
        the machine. A launch that was under way begins anew when it is asked for again."""
        for execution, one in list(self.executions.items()):
            cut_off = one.state == "starting"
            one.dropped = one.dropped or cut_off or not journals_survive
            one.lose()
            one.wake()
            if one.dropped:
                del self.executions[execution]
                del self._launches[execution]

    async def close(self) -> None:
        """End everything, so that no task is left."""
        for one in self.executions.values():
            one.finish()
            await one.close()
        while left := [task for task in self._tasks if not task.done()]:
            for task in left:
                task.cancel()
            await asyncio.wait(left)

    # -- what clients ask -----------------------------------------------------------------------

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A request is served to its end although its client goes away."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._served)
        return task

    def _served(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # Its client may have gone away and never look.

    def get(self, execution: str) -> SimExecution:
        if (one := self.executions.get(execution)) is None:
            raise UnknownExecution(f"There is no execution {execution!r}.")
        return one

    def find(self, execution: str) -> SimExecution:
        if execution not in self.executions:
            self.tombstones.add(execution)
        return self.get(execution)

    async def start(self, spec: LaunchSpec) -> Up:
        if (launch := self._launches.get(spec.execution)) is None:
            launch = self._launches[spec.execution] = self.run(self._launch(spec))
        return await asyncio.shield(launch)

    async def _launch(self, spec: LaunchSpec) -> Up:
        # Here, not where it is asked for: it may be deleted before the launch has its first turn of the loop.
        if spec.execution in self.tombstones:
            raise LaunchRefused(f"The execution {spec.execution!r} was deleted.")
        self._journals += 1
        tunnel = SimTunnel(spec.execution, self.settings.mcp_hold_s, wanted=spec.mcp_mode is not None)
        one = SimExecution(spec, f"journal-{self._journals}", self.settings, tunnel)
        self.configure(one)
        self.executions[spec.execution] = one
        if (lane := self.lanes.get(spec.execution)) is not None:
            lane.open(tunnel)
        await within(one.over, self.launch_s)
        if one.dropped:
            raise Unreachable("agentctl ended during this launch.")
        if self.refuse_launch is not None:
            one.finish()
        if one.state != "starting":
            raise LaunchRefused(self.refuse_launch or "The launch was stopped.")
        conversation = spec.resume_token or f"conversation-{self._journals}"
        one.ready(conversation)
        return Up(one.journal, conversation, None if spec.resume_token is None else True, "Simulated agent")

    async def forget(self, execution: str) -> None:
        one = self.find(execution)
        self.tombstones.add(execution)
        await one.end()
        if self.executions.get(execution) is one:
            del self.executions[execution]
            del self._launches[execution]
        one.dropped = True
        one.wake()
        await one.close()


class SimAgents:
    """Implements `ports.execution.Agents` for one backend."""

    def __init__(self, world: SimAgentctl, tools: Tools | None = None) -> None:
        self.world = world
        self.epoch = 0
        self.lanes: dict[str, SimLane] = {}
        self._tools = tools or FakeTools()

    async def start(self, spec: LaunchSpec, deadline: float) -> Up:
        self._keep_lane(spec.execution)
        return await self._call("start", spec.execution, deadline, lambda: self.world.start(spec))

    async def prompt(self, turn: TurnRef, dispatch_id: str, content: str, deadline: float) -> Prompted:
        async def serve() -> Prompted:
            return await self.world.get(turn.execution).prompt(turn, dispatch_id, content, self._stale())

        return await self._call("prompt", turn.execution, deadline, serve, check_epoch=False)

    async def dispatched(self, turn: TurnRef, dispatch_id: str, deadline: float) -> bool | None:
        async def serve() -> bool | None:
            return self.world.get(turn.execution).dispatched(dispatch_id, turn.generation)

        return await self._call("dispatched", turn.execution, deadline, serve)

    async def cancel(self, turn: TurnRef, deadline: float) -> bool:
        async def serve() -> bool:
            return await self.world.get(turn.execution).cancel(turn)

        return await self._call("cancel", turn.execution, deadline, serve)

    async def answer_permission(self, turn: TurnRef, request: str, answer: Answer, deadline: float) -> None:
        async def serve() -> None:
            self.world.get(turn.execution).permissions.answer(request, answer)

        await self._call("answer_permission", turn.execution, deadline, serve)

    async def end(self, execution: str, *, force: bool, deadline: float) -> Down:
        async def serve() -> Down:
            return await self.world.find(execution).end()

        return await self._call("end", execution, deadline, serve)

    async def put_to_sleep(self, execution: str, seen: int, deadline: float) -> str | None:
        async def serve() -> str | None:
            return await self.world.get(execution).put_to_sleep(seen)

        return await self._call("put_to_sleep", execution, deadline, serve)

    async def forget(self, execution: str, deadline: float) -> None:
        try:
            await self._call("forget", execution, deadline, lambda: self.world.forget(execution))
        except UnknownExecution:
            return

    async def follow(
        self, execution: str, journal: str, after: int, committed: Callable[[], int]
    ) -> AsyncIterator[inputs.Frame]:
        await self.world.fault("follow", "before", execution)
        if self._stale():
            raise Unreachable("Another backend owns this agentctl.")
        one = self.world.get(execution)
        if one.journal != journal:
            raise UnknownExecution(f"The journal of {execution!r} is another one now.")
        self._keep_lane(execution)
        position = after
        while True:
            if one.dropped:
                raise UnknownExecution(f"The execution {execution!r} was deleted.")
            one.acknowledged = max(one.acknowledged, min(committed(), len(one.frames)))
            if position < len(one.frames):
                frame = one.frames[position]
                position += 1
                yield frame
                await self.world.fault("frame", "after", execution)
                if isinstance(frame.report, inputs.Exited):
                    return
            else:
                await one.news()

    async def known(self, deadline: float) -> tuple[Running, ...]:
        async def serve() -> tuple[Running, ...]:
            return tuple(
                Running(one.spec.execution, one.spec.session_id, one.journal, one.state)
                for one in self.world.executions.values()
            )

        return await self._call("known", "", deadline, serve)

    async def unknown(self, executions: Collection[str], deadline: float) -> Collection[str]:
        return set(executions) - {one.execution for one in await self.known(deadline)}

    async def attach(self, epoch: int) -> None:
        self.epoch = epoch

    def _keep_lane(self, execution: str) -> None:
        if execution not in self.lanes and not self._stale():
            self.lanes[execution] = self.world.lanes[execution] = SimLane(execution, self._tools)
            if (one := self.world.executions.get(execution)) is not None:
                self.lanes[execution].open(one.tunnel)

    async def leave_tools(self) -> None:
        """This backend answers no tool calls any more."""
        for lane in self.lanes.values():
            await lane.close()

    async def close(self, *, stop_agents: bool, deadline: float) -> int:
        await self.leave_tools()
        going_on = 0
        for one in self.world.executions.values():
            if one.turn is None or stop_agents:
                await one.end()
            else:
                going_on += 1
        return going_on

    def _stale(self) -> str | None:
        self.world.epoch = max(self.world.epoch, self.epoch)
        return "old epoch" if self.epoch < self.world.epoch else None

    async def _call(
        self,
        call: str,
        execution: str,
        deadline: float,
        serve: Callable[[], Coroutine[Any, Any, T]],
        *,
        check_epoch: bool = True,
    ) -> T:
        try:
            async with asyncio.timeout(deadline):
                await self.world.fault(call, "before", execution)
                if check_epoch and self._stale():
                    raise Unreachable("Another backend owns this agentctl.")
                answer = await asyncio.shield(self.world.run(serve()))
                await self.world.fault(call, "after", execution)
                return answer
        except TimeoutError as error:
            raise Unreachable(f"agentctl did not answer within {deadline:g} s.") from error

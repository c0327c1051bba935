"""Agents on this machine: the execution port over a local agentctl.

An agentctl that died is replaced by the next call that needs one; the new one ends what the old one left
and keeps its journals. Not here: HTTP (`client`), the stream (`following`), starting it (`sidecar`).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from typing import TypeVar

from kandev.core.errors import AgentFault
from kandev.core.inputs import Frame
from kandev.core.session import Answer, TurnRef
from kandev.execution.client import Client, NoConnection, Said
from kandev.execution.following import follow
from kandev.execution.frames import process_line
from kandev.execution.lanes import Lanes
from kandev.execution.sidecar import Info, Sidecar
from kandev.ports.execution import (
    CancelRefused,
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
from kandev.wire import agentctl as wire

T = TypeVar("T")


class LocalAgents:
    """Implements `ports.execution.Agents`. `call_s` (seconds) bounds the opening of a stream. `tools` answers
    what agents ask by their tools."""

    def __init__(self, sidecar: Sidecar, call_s: float, tools: Tools) -> None:
        self._sidecar = sidecar
        self._call_s = call_s
        self._epoch = 0
        self._client: Client | None = None
        self._info: Info | None = None
        self._lanes = Lanes(tools, self._at_hand, call_s)

    # -- executions -----------------------------------------------------------------------------

    async def start(self, spec: LaunchSpec, deadline: float) -> Up:
        asked = wire.CreateInstance(
            execution_id=spec.execution,
            session_id=spec.session_id,
            task_id=spec.task_id,
            protocol="codex" if spec.protocol == "codex" else "acp",
            command=list(spec.command),
            cwd=spec.cwd,
            env=spec.env,
            mcp_servers=list(spec.mcp_servers),
            resume_token=spec.resume_token,
            model=spec.model,
            mode=spec.mode,
            auto_approve=spec.auto_approve,
            auth_method=spec.auth_method,
            withhold=list(spec.withhold),
            cancel_acknowledge_s=spec.cancel_acknowledge_s,
            mcp_mode=spec.mcp_mode,
        )
        try:
            # Before the answer: agents call tools while their conversation is being opened.
            with self._lanes.launching(spec.execution, wanted=spec.mcp_mode is not None):
                up = await self._act(deadline, lambda client, left: client.create(asked, left))
        except Said as said:
            raise LaunchRefused(said.refusal.message, tuple(said.refusal.stderr_tail)) from said
        return Up(up.journal_id, up.resume_token, up.memory, _agent(up))

    async def end(self, execution: str, *, force: bool, deadline: float) -> Down:
        asked = wire.StopInstance(force=force)
        stopped = await self._call(deadline, lambda client, left: client.stop(execution, asked, left))
        survivors = tuple(process_line(process) for process in stopped.survivors)
        return Down(stopped.last_seq, stopped.journal_id, survivors, stopped.exit_code)

    async def put_to_sleep(self, execution: str, seen: int, deadline: float) -> str | None:
        asked = wire.Sleep(after_seq=seen)
        try:
            await self._act(deadline, lambda client, left: client.sleep(execution, asked, left))
        except Said as said:
            return said.refusal.message
        return None

    async def forget(self, execution: str, deadline: float) -> None:
        try:
            await self._call(deadline, lambda client, left: client.delete(execution, left))
        except UnknownExecution:
            return

    async def known(self, deadline: float) -> tuple[Running, ...]:
        if self._sidecar.find() is None:
            return ()
        instances = await self._call(deadline, lambda client, left: client.instances(left))
        return tuple(Running(i.instance_id, i.session_id, i.journal_id, i.state) for i in instances)

    async def unknown(self, executions: Collection[str], deadline: float) -> Collection[str]:
        if self._sidecar.find() is None:
            return ()
        instances = await self._call(deadline, lambda client, left: client.instances(left))
        return set(executions) - {instance.instance_id for instance in instances}

    # -- turns ------------------------------------------------------------------------------------

    async def prompt(self, turn: TurnRef, dispatch_id: str, content: str, deadline: float) -> Prompted:
        asked = wire.Prompt(dispatch_id=dispatch_id, prompt_generation=turn.generation, content=content)
        try:
            await self._ask(deadline, lambda client, left: client.prompt(turn.execution, asked, left))
        except Said as said:
            return Prompted(taken=False, reason=said.refusal.message)
        return Prompted(taken=True)

    async def dispatched(self, turn: TurnRef, dispatch_id: str, deadline: float) -> bool | None:
        state = await self._call(
            deadline,
            lambda client, left: client.dispatch(turn.execution, dispatch_id, turn.generation, left),
        )
        return state.accepted

    async def cancel(self, turn: TurnRef, deadline: float) -> bool:
        asked = wire.Cancel(prompt_generation=None if turn.own else turn.generation, own_turn_id=turn.own)
        try:
            told = await self._act(deadline, lambda client, left: client.cancel(turn.execution, asked, left))
        except Said as said:
            raise CancelRefused(said.refusal.message) from said
        return told.outcome != "not_acknowledged"

    async def answer_permission(self, turn: TurnRef, request: str, answer: Answer, deadline: float) -> None:
        cancelled = answer.option_id is None and not answer.rejected
        asked = wire.AnswerPermission(
            option_id=answer.option_id, cancelled=cancelled, rejected=answer.rejected
        )
        try:
            await self._act(
                deadline,
                lambda client, left: client.answer_permission(turn.execution, request, asked, left),
            )
        except Said as said:
            if said.refusal.reason not in ("already_answered", "unknown_request"):
                raise AgentFault(said.refusal.message) from said

    async def follow(
        self, execution: str, journal: str, after: int, committed: Callable[[], int]
    ) -> AsyncIterator[Frame]:
        client = await self._reach(self._call_s)
        self._lanes.keep(execution)
        async for frame in follow(client, execution, journal, after, committed, self._call_s):
            yield frame

    # -- agentctl itself ----------------------------------------------------------------------------

    async def attach(self, epoch: int) -> None:
        self._epoch = epoch
        if self._client is not None:
            self._client.epoch = epoch

    async def close(self, *, stop_agents: bool, deadline: float) -> int:
        going_on = 0
        ends = time.monotonic() + deadline
        try:
            if self._sidecar.find() is not None:
                going_on = await self._end_idle(stop_agents=stop_agents, deadline=deadline)
            if going_on == 0:
                await self._sidecar.end(max(0.0, ends - time.monotonic()))
        finally:
            await self.abandon()
        return going_on

    async def leave_tools(self) -> None:
        """No tool call is answered any more: agentctl holds them for the next backend."""
        await self._lanes.close()

    async def abandon(self) -> None:
        """Let go without a word: another backend asks now."""
        await self._lanes.close()
        if self._client is not None:
            await self._client.close()
        self._client = None

    async def _end_idle(self, *, stop_agents: bool, deadline: float) -> int:
        instances = await self._call(deadline, lambda client, left: client.instances(left))
        live = [instance for instance in instances if instance.state in ("starting", "ready")]
        # One that starts has something to say: the next backend takes it over.
        working = [i for i in live if i.state == "starting" or i.turn_generation is not None or i.own_turn_id]
        ending = live if stop_agents else [instance for instance in live if instance not in working]
        async with asyncio.TaskGroup() as group:
            for instance in ending:
                group.create_task(self._end_quietly(instance.instance_id, deadline))
        return len(live) - len(ending)

    async def _end_quietly(self, execution: str, deadline: float) -> None:
        try:
            await self.end(execution, force=False, deadline=deadline)
        except AgentFault:
            return  # agentctl ends what is left when it ends itself.

    async def _call(self, deadline: float, ask: Callable[[Client, float], Awaitable[T]]) -> T:
        """Ask; a refusal has no meaning for this question."""
        try:
            return await self._ask(deadline, ask)
        except Said as said:
            raise Unreachable(said.refusal.message) from said

    async def _act(self, deadline: float, ask: Callable[[Client, float], Awaitable[T]]) -> T:
        """Ask; a refusal raises `Said`, but another backend's ownership is no answer to the question."""
        try:
            return await self._ask(deadline, ask)
        except Said as said:
            if said.refusal.reason == "old_epoch":
                raise Unreachable(said.refusal.message) from said
            raise

    async def _ask(self, deadline: float, ask: Callable[[Client, float], Awaitable[T]]) -> T:
        """Ask; when nobody listens there any more, ask the agentctl that takes its place. Raises
        Unreachable, Said."""
        ends = time.monotonic() + deadline
        client = await self._reach(deadline)
        try:
            return await ask(client, max(0.0, ends - time.monotonic()))
        except NoConnection:
            if self._info is not None and self._sidecar.lives(self._info):
                raise
        client = await self._reach(max(0.0, ends - time.monotonic()))
        return await ask(client, max(0.0, ends - time.monotonic()))

    def _at_hand(self) -> Client | None:
        """The client of the agentctl that lives. Raises Unreachable when nobody can tell."""
        lives = self._info is not None and self._sidecar.lives(self._info)
        return self._client if lives else None

    async def _reach(self, deadline: float) -> Client:
        info = await self._sidecar.ensure(deadline)
        if self._client is None or self._info != info:
            old, self._info = self._client, info
            self._client = Client(info.url, info.token)
            self._client.epoch = self._epoch
            if old is not None:
                await old.retire()
        return self._client


def _agent(instance: wire.Instance) -> str | None:
    words = (instance.agent_name, instance.agent_version)
    return " ".join(word for word in words if word) or None

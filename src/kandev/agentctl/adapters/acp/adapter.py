"""One ACP agent: keeps wire order, turns what it says into events, and answers what it asks of its client.

Not here: generations, fences, deadlines of turn control (the instance), and the parts in the modules beside
this one. Source: ACP version 1 (agentclientprotocol.com); "real agents" below is what running ones were seen
to do.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from kandev.agentctl.adapters.acp.calls import Permissions, ToolCalls
from kandev.agentctl.adapters.acp.documents import Document, clipped, kept_id, part, prompt_blocks, text
from kandev.agentctl.adapters.acp.opening import Opening, said
from kandev.agentctl.adapters.acp.replay import Replay
from kandev.agentctl.adapters.acp.serving import Serving
from kandev.agentctl.adapters.acp.updates import HISTORY, Updates, usage_frame
from kandev.agentctl.adapters.base import Sink, Spec, Started, TurnEnd
from kandev.agentctl.rpc import Call, Peer, PeerGone, Reply, RpcError, Stream
from kandev.agentctl.settings import Settings
from kandev.wire import agentctl as wire

FOREIGN_TOLD = 20
"""Other conversations that are named; an agent may have any number of them."""


class Process(Stream, Protocol):
    """What the adapter needs of `kandev.agentctl.process.AgentProcess`."""

    @property
    def environment(self) -> Mapping[str, str]:
        """What the agent was started with."""


class AcpAdapter:
    """`auth_method` is the id of the agent's login method to use when it demands one."""

    def __init__(
        self, process: Process, sink: Sink, settings: Settings, *, auth_method: str | None = None
    ) -> None:
        self._process = process
        self._sink = sink
        self._settings = settings
        self._auth_method = auth_method
        self._peer = Peer(process, self, line_max=settings.line_max_bytes)
        self._serving = Serving(process, settings)
        self._session_id: str | None = None
        self._replay = Replay(settings.cancel_settle_s, settings.late_output_s, self._opened)
        self._updates = Updates()
        self._calls = ToolCalls()
        self._permissions = Permissions()
        self._foreign: set[str] = set()
        # Events come from the reader and, at a cancel, from beside it; the sink takes one at a time.
        self._speaking = asyncio.Lock()
        self._cancelled: list[str] = []

    async def run(self) -> None:
        """See `Adapter`. Also ends what the agent's terminals still run."""
        try:
            await self._peer.run()
        finally:
            await self._serving.close()
        await self._tell_cancelled()
        await self._sink.closed()

    async def start(self, spec: Spec) -> Started:
        """See `Adapter`."""
        self._serving.begin(spec.cwd)
        patience, environment = self._settings.write_s, self._process.environment
        opening = Opening(self._peer, self._replay, self._auth_method, patience, environment)
        return await opening.run(spec)

    async def prompt(self, content: str | list[Document]) -> None:
        """See `Adapter`. The end can be told before this returns: the agent may be as quick as that."""
        params = {"sessionId": self._session_id, "prompt": prompt_blocks(content)}
        await self._peer.call("session/prompt", params, self._prompt_answered)

    async def cancel(self) -> None:
        """See `Adapter`. The message first: events may have to wait for room."""
        self._cancelled += self._calls.take_running()
        if self._session_id is not None:
            await self._peer.notify("session/cancel", {"sessionId": self._session_id})
        self._serving.start(self._tell_cancelled(), "tell cancelled tool calls")

    async def answer_permission(
        self,
        request_id: str,
        *,
        option_id: str | None = None,
        cancelled: bool = False,
        rejected: bool = False,
    ) -> str:
        """See `Adapter`. KeyError also for an option that was not offered."""
        wanted = None if cancelled else option_id
        call, outcome = self._permissions.take(request_id, wanted, rejected=rejected and not cancelled)
        await call.answer({"outcome": outcome})
        return str(outcome["outcome"])

    async def close_input(self) -> None:
        """See `Adapter`."""
        await self._process.close_input()
        await self._peer.fail_open()

    # -- what the agent says, in wire order ---------------------------------------------------

    async def notification(self, method: str, params: Document) -> None:
        """Agents send notifications of their own making; only ACP's are for us."""
        if method == "session/update":
            await self._update(params)

    async def request(self, call: Call) -> None:
        """Of the agent to its client."""
        if call.method == "session/request_permission":
            async with self._speaking:
                await self._sink.permission(self._permissions.ask(call, self._calls))
        elif (words := await self._serving.serve(call)) is not None:
            await self.notice(words)

    async def notice(self, text: str) -> None:
        """Of the peer."""
        await self._say(wire.Notice, text=text)

    async def _update(self, params: Document) -> None:
        update = part(params, "update")
        session_id = text(params.get("sessionId"))
        if self._session_id is not None and session_id not in (None, self._session_id):
            await self._about_another(str(session_id))
            return
        kind = text(update.get("sessionUpdate"))
        if kind in HISTORY and self._replay.swallows():
            return
        if kind in ("tool_call", "tool_call_update"):
            self._calls.seen(update)
        await self._tell_cancelled()
        for frame_type, members in self._updates.frames(update):
            await self._say(frame_type, **members)

    async def _about_another(self, session_id: str) -> None:
        named = kept_id(session_id)
        if named not in self._foreign and len(self._foreign) < FOREIGN_TOLD:
            self._foreign.add(named)
            await self.notice(f"The agent reports about another conversation ({named}); it is not shown.")

    async def _prompt_answered(self, reply: Reply) -> None:
        if isinstance(reply, PeerGone):
            return
        await self._tell_cancelled()
        self._calls.take_running()
        if isinstance(reply, RpcError):
            end = TurnEnd("error", said(reply))
        else:
            if usage := part(reply, "usage"):
                for frame_type, members in usage_frame(usage):
                    await self._say(frame_type, **members)
            reason = text(part(reply).get("stopReason"))
            missing = TurnEnd("error", "The agent gave no stop reason.")
            end = missing if reason is None else TurnEnd(clipped(reason))
        async with self._speaking:
            await self._sink.turn_ended(end)

    def _opened(self, answer: Any, session_id: str | None) -> None:
        self._session_id = session_id
        self._updates.begin(part(answer))

    async def _tell_cancelled(self) -> None:
        """What ran at the cancel is cancelled, until the agent itself says how it ended."""
        while self._cancelled:
            call_id = self._cancelled.pop(0)
            await self._say(wire.ToolUpdate, tool_call_id=call_id, status="cancelled")

    async def _say(self, frame_type: type[wire.Frame], **members: Any) -> None:
        async with self._speaking:
            await self._sink.event(frame_type, **members)

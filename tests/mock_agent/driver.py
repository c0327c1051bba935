"""A small ACP client for tests: starts an agent process and talks to it. Not Kandev's own adapter.

    async with Peer.start(cwd=tmp_path) as peer:
        await peer.initialize()
        session_id = await peer.new(tmp_path)
        turn = peer.prompt(session_id, "say hello")
        assert (await turn.end())["stopReason"] == "end_turn"
        assert peer.messages(session_id) == ["hello"]

Every wait has a deadline (`DEADLINE_S`) and fails with TimeoutError after it. Leaving the block ends the
process.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

Json = dict[str, Any]
DEADLINE_S = 10.0
COMMAND = (sys.executable, "-m", "kandev.agentctl.mock_agent")
LINE_LIMIT = 1 << 28


class PeerError(Exception):
    """An error response: `error` is its payload."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error))
        self.error = error


class Turn:
    """A prompt that is under way."""

    def __init__(self, request_id: int, reply: asyncio.Future[Json]) -> None:
        self.request_id = request_id
        self._reply = reply

    @property
    def ended(self) -> bool:
        """Whether the prompt has been answered."""
        return self._reply.done()

    async def end(self, deadline_s: float = DEADLINE_S) -> Json:
        """The prompt's result. Raises PeerError for an error response."""
        async with asyncio.timeout(deadline_s):
            return await asyncio.shield(self._reply)


class Peer:
    """The client's end of one agent process. What arrives is kept: `frames`, `not_json`, `asked`."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.frames: list[Json] = []
        self.not_json: list[bytes] = []
        self.line_sizes: list[int] = []
        self.asked: list[Json] = []
        self.answer: Callable[[Json], Json | None] = lambda request: None
        """Called with each request of the agent; the result it answers is sent, None sends nothing."""
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._next_id = 0
        self._news = asyncio.Condition()

    @staticmethod
    @asynccontextmanager
    async def start(
        cwd: Path, env: Mapping[str, str] | None = None, command: Sequence[str] = COMMAND
    ) -> AsyncIterator[Peer]:
        """Start an agent in a clean environment whose home is beside `cwd`, and end it afterwards."""
        environ = {"PATH": os.environ["PATH"], "HOME": str(cwd.parent), **_python_path(), **(env or {})}
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environ, cwd=cwd, limit=LINE_LIMIT
        )
        peer = Peer(process)
        reading = asyncio.create_task(peer._read())
        try:
            yield peer
        finally:
            if process.returncode is None:
                process.kill()
            await asyncio.wait_for(process.wait(), DEADLINE_S)
            await asyncio.wait_for(reading, DEADLINE_S)
            peer.close_stdin()

    async def initialize(self) -> Json:
        """`initialize`, and its result."""
        return await self.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    async def new(self, cwd: Path, mcp_servers: Sequence[Json] = ()) -> str:
        """`session/new`, and the session's id."""
        result = await self.call("session/new", {"cwd": str(cwd), "mcpServers": list(mcp_servers)})
        return str(result["sessionId"])

    async def load(self, session_id: str, cwd: Path) -> Json:
        """`session/load`, and its result."""
        return await self.call("session/load", {"sessionId": session_id, "cwd": str(cwd), "mcpServers": []})

    def prompt(self, session_id: str, text: str) -> Turn:
        """`session/prompt` with one text block; the turn is not waited for."""
        blocks = [{"type": "text", "text": text}]
        reply = self.request("session/prompt", {"sessionId": session_id, "prompt": blocks})
        return Turn(self._next_id, reply)

    def cancel(self, session_id: str) -> None:
        """`session/cancel`: a notification."""
        self.send({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session_id}})

    def request(self, method: str, params: Json) -> asyncio.Future[Json]:
        """Send a request; the future gets its result, or PeerError."""
        self._next_id += 1
        reply: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting[self._next_id] = reply
        self.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})
        return reply

    async def round_trip(self, session_id: str) -> None:
        """Return when the agent has taken everything that was sent before."""
        await self.call("session/set_mode", {"sessionId": session_id, "modeId": "default"})

    async def call(self, method: str, params: Json) -> Json:
        """Send a request and wait for its result."""
        async with asyncio.timeout(DEADLINE_S):
            return await self.request(method, params)

    def send(self, frame: Json) -> None:
        """Send any frame."""
        self.send_raw(json.dumps(frame).encode() + b"\n")

    def send_raw(self, data: bytes) -> None:
        """Send any bytes."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)

    def close_stdin(self) -> None:
        """Close the agent's stdin."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def exit_code(self) -> int:
        """Wait until the process has ended."""
        return await asyncio.wait_for(self.process.wait(), DEADLINE_S)

    async def until(self, holds: Callable[[], object], deadline_s: float = DEADLINE_S) -> None:
        """Wait until something holds, looking again whenever a line has arrived."""
        async with asyncio.timeout(deadline_s), self._news:
            await self._news.wait_for(holds)

    def updates(self, session_id: str, kind: str | None = None) -> list[Json]:
        """The `update` of each `session/update` of a session so far, in order."""
        frames = [frame["params"] for frame in self.frames if frame.get("method") == "session/update"]
        found = [params["update"] for params in frames if params["sessionId"] == session_id]
        return [update for update in found if kind in (None, update.get("sessionUpdate"))]

    def messages(self, session_id: str, kind: str = "agent_message_chunk") -> list[str]:
        """The texts of the agent's messages so far; chunks of one message id are one."""
        texts: dict[str, str] = {}
        for update in self.updates(session_id, kind):
            key = update["messageId"]
            texts[key] = texts.get(key, "") + update["content"]["text"]
        return list(texts.values())

    async def until_said(self, session_id: str, text: str) -> None:
        """Wait until a message with this text has arrived."""
        await self.until(lambda: text in self.messages(session_id))

    def answered_at(self, turn: Turn) -> int:
        """Where among `frames` the answer of a prompt that has ended stands."""
        answers = (frame.get("id") == turn.request_id and "method" not in frame for frame in self.frames)
        return list(answers).index(True)

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            self._take(line)
            async with self._news:
                self._news.notify_all()
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(ConnectionError("the agent has closed its stdout"))
        async with self._news:
            self._news.notify_all()

    def _take(self, line: bytes) -> None:
        self.line_sizes.append(len(line))
        try:
            frame = json.loads(line)
        except ValueError:
            self.not_json.append(line)
            return
        self.frames.append(frame)
        if "method" in frame and "id" in frame:
            self.asked.append(frame)
            if (result := self.answer(frame)) is not None:
                self.send({"jsonrpc": "2.0", "id": frame["id"], "result": result})
        elif (reply := self._waiting.pop(frame.get("id"), None)) is not None and not reply.done():
            if "error" in frame:
                reply.set_exception(PeerError(frame["error"]))
            else:
                reply.set_result(frame["result"])


def _python_path() -> dict[str, str]:
    path = os.environ.get("PYTHONPATH")
    source = Path(__file__).parents[2] / "src"
    return {"PYTHONPATH": os.pathsep.join([str(source), path] if path else [str(source)])}


def end_process(pid: int) -> None:
    """Kill one process that an agent said it has started; it may be gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return

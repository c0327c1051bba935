"""A bare ACP client: just enough JSON-RPC over stdio to prove that an agent of the bed works.

It stands beside Kandev's own client on purpose, so that a test of the bed says nothing about Kandev. Not for
anything but tests: it waits, remembers every update, and allows whatever it is asked.
Protocol: https://agentclientprotocol.com (initialize, session/new, session/prompt, session/cancel).
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Any

from . import processes
from .bed import BedAgent

Json = dict[str, Any]

CHUNK_BYTES = 65_536
REQUEST_S = 60.0
STDIN_CLOSE_S = 3.0
TERMINATE_S = 3.0
KILL_S = 5.0
METHOD_NOT_FOUND = -32601
ALLOWING = ("allow_once", "allow_always")


class AgentError(Exception):
    """The agent answered a request with a JSON-RPC error; `code` and `data` are the error's."""

    def __init__(self, method: str, error: Json) -> None:
        super().__init__(f"{method}: {error.get('message')} ({error.get('code')})")
        self.code = error.get("code")
        self.data = error.get("data")


class BareAgent:
    """A running agent: `async with BareAgent(bed.agent("gemini")) as agent`; at the end nothing of it runs.

    `updates` are the `update` objects of session/update in order, `asked` the permission requests' params,
    `ended_by` what it took to end the agent: "stdin", "SIGTERM" or "SIGKILL".
    """

    def __init__(self, agent: BedAgent) -> None:
        self.agent = agent
        self.updates: list[Json] = []
        self.asked: list[Json] = []
        self.ended_by = ""
        self._ids = count(1)
        self._waiting: dict[int, tuple[str, asyncio.Future[Json]]] = {}
        self._arrived = asyncio.Event()
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "BareAgent":
        with (self.agent.home / "stderr.log").open("ab") as stderr:
            self._process = await asyncio.create_subprocess_exec(
                *self.agent.command,
                env=self.agent.env,
                cwd=self.agent.workspace,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
            )
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._end()
        finally:
            processes.kill_marked(self.agent.mark)
            if self._reader is not None:
                self._reader.cancel()
                with suppress(asyncio.CancelledError):
                    await self._reader

    async def initialize(self) -> Json:
        """The result of `initialize`, with no client capabilities offered."""
        capabilities = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        client = {"name": "test-bed", "title": "Test bed", "version": "0"}
        params = {"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": client}
        return await self.request("initialize", params)

    async def new_session(self) -> str:
        """The id of a new session in the agent's workspace and mode, without MCP servers."""
        result = await self.request("session/new", {"cwd": str(self.agent.workspace), "mcpServers": []})
        session = str(result["sessionId"])
        if self.agent.mode is not None:
            await self.request("session/set_mode", {"sessionId": session, "modeId": self.agent.mode})
        return session

    async def load_session(self, session: str) -> None:
        """Load a session that an earlier process of the same agent has made; its history comes as updates."""
        params = {"sessionId": session, "cwd": str(self.agent.workspace), "mcpServers": []}
        await self.request("session/load", params)

    async def prompt(self, session: str, text: str) -> asyncio.Future[Json]:
        """Send a prompt; the future gives the turn's result, {"stopReason": …}, or raises AgentError."""
        blocks = [{"type": "text", "text": text}]
        return await self._send_request("session/prompt", {"sessionId": session, "prompt": blocks})

    async def cancel(self, session: str) -> None:
        """Send session/cancel: a notification, so nothing answers it but the turn's end."""
        await self._send({"method": "session/cancel", "params": {"sessionId": session}})

    def said(self) -> str:
        """All text of the agent's messages so far."""
        chunks = [one for one in self.updates if one.get("sessionUpdate") == "agent_message_chunk"]
        return "".join(chunk["content"].get("text", "") for chunk in chunks)

    async def until(self, condition: Callable[[], bool], deadline_s: float = REQUEST_S) -> None:
        """Wait until what has arrived from the agent makes the condition true; raises TimeoutError."""
        async with asyncio.timeout(deadline_s):
            while not condition():
                self._arrived.clear()
                await self._arrived.wait()

    async def request(self, method: str, params: Json, deadline_s: float = REQUEST_S) -> Json:
        """The result of a request; raises AgentError and TimeoutError."""
        async with asyncio.timeout(deadline_s):
            return await (await self._send_request(method, params))

    async def _send_request(self, method: str, params: Json) -> asyncio.Future[Json]:
        number = next(self._ids)
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (method, future)
        await self._send({"id": number, "method": method, "params": params})
        return future

    async def _send(self, message: Json) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        await self._process.stdin.drain()

    async def _read(self) -> None:
        # Chunks, not lines: one line can be larger than a stream's limit.
        assert self._process is not None and self._process.stdout is not None
        rest = b""
        while chunk := await self._process.stdout.read(CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                await self._take(json.loads(line))
            self._arrived.set()
        for method, future in self._waiting.values():
            if not future.done():
                future.set_exception(AgentError(method, {"message": "the agent has closed its output"}))

    async def _take(self, message: Json) -> None:
        if "method" not in message:
            self._finish(message)
        elif "id" in message:
            await self._send({"id": message["id"]} | self._reply(message["method"], message["params"]))
        elif message["method"] == "session/update":
            self.updates.append(message["params"]["update"])

    def _finish(self, message: Json) -> None:
        method, future = self._waiting.pop(message["id"])
        if future.done():  # Nobody waits for it any more.
            return
        if "error" in message:
            future.set_exception(AgentError(method, message["error"]))
        else:
            future.set_result(message.get("result") or {})

    def _reply(self, method: str, params: Json) -> Json:
        if method != "session/request_permission":
            return {"error": {"code": METHOD_NOT_FOUND, "message": f"{method} is not offered."}}
        self.asked.append(params)
        by_kind = {option["kind"]: option["optionId"] for option in params["options"]}
        chosen = next(by_kind[kind] for kind in ALLOWING if kind in by_kind)
        return {"result": {"outcome": {"outcome": "selected", "optionId": chosen}}}

    async def _end(self) -> None:
        assert self._process is not None and self._process.stdin is not None
        self._process.stdin.close()
        if await self._gone(STDIN_CLOSE_S):
            self.ended_by = "stdin"
            return
        self._process.terminate()
        if await self._gone(TERMINATE_S):
            self.ended_by = "SIGTERM"
            return
        processes.kill_marked(self.agent.mark)
        self.ended_by = "SIGKILL"
        if not await self._gone(KILL_S):
            raise TimeoutError(f"{self.agent.name} is still alive {KILL_S} s after SIGKILL.")

    async def _gone(self, deadline_s: float) -> bool:
        # Not Process.wait(): it can hang while a process of the agent's holds a pipe.
        process = self._process
        assert process is not None
        try:
            await processes.wait_until(lambda: process.returncode is not None, "the agent's exit", deadline_s)
        except TimeoutError:
            return False
        return True

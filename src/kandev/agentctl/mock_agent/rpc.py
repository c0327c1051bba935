"""JSON-RPC 2.0 over lines, as an ACP agent speaks it: frames out, frames in, replies matched to requests.

Requests that arrive run as tasks of this connection, so that the reader goes on while a script plays. Not for
what the methods mean: that is `agent`.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from kandev.agentctl.mock_agent.stdio import Input, Output

Json = dict[str, Any]
"""A JSON object as it came over the wire: nothing about its fields has been checked."""

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
AUTH_REQUIRED = -32000


class RpcError(Exception):
    """An error response: `code`, one sentence, and `data` as the protocol has them."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def payload(self) -> Json:
        """The `error` member of a response."""
        body: Json = {"code": self.code, "message": self.message}
        if self.data is not None:
            body["data"] = self.data
        return body


@dataclass(frozen=True)
class Answer:
    """What a request gets, and what is done right after the response is out."""

    result: object = None
    error: RpcError | None = None
    afterwards: Callable[[], Awaitable[None]] | None = None


RequestHandler = Callable[[str, Json], Awaitable[Answer]]
NotificationHandler = Callable[[str, Json], None]


class Connection:
    """One JSON-RPC peer. Owns the tasks of the requests that arrived and the waiters of those sent."""

    def __init__(
        self, source: Input, sink: Output, on_request: RequestHandler, on_notification: NotificationHandler
    ) -> None:
        self._source = source
        self._sink = sink
        self._on_request = on_request
        self._on_notification = on_notification
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting: dict[int, asyncio.Future[Json]] = {}
        self._next_id = 0

    async def serve(self) -> None:
        """Read until the other side closes.

        After each frame the loop is yielded to once, so that a prompt has begun to play before a cancel right
        behind it is looked at.
        """
        while (line := await self._source.next_line()) is not None:
            if line.strip():
                self._receive(line)
                await asyncio.sleep(0)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside the reader; it is cancelled when the connection closes."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel and await everything that runs."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def raw(self, line: bytes) -> None:
        """Send a line as it is."""
        await self._sink.write(line)

    async def notify(self, method: str, params: Json) -> None:
        """Send a notification."""
        await self._send({"method": method, "params": params})

    async def request(self, method: str, params: Json) -> Json:
        """Send a request and wait for its response frame (`result` or `error` in it). Ids count from 0."""
        number, self._next_id = self._next_id, self._next_id + 1
        reply: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = reply
        try:
            await self._send({"id": number, "method": method, "params": params})
            return await reply
        finally:
            del self._waiting[number]

    async def _send(self, frame: Json) -> None:
        await self._sink.write(json.dumps({"jsonrpc": "2.0", **frame}, ensure_ascii=False).encode())

    def _receive(self, line: bytes) -> None:
        try:
            frame = json.loads(line)
        except ValueError:
            self.start(self._refuse(None, RpcError(PARSE_ERROR, "the line is not JSON")))
            return
        if not isinstance(frame, dict):
            self.start(self._refuse(None, RpcError(INVALID_REQUEST, "a frame is a JSON object")))
            return
        method, params = frame.get("method"), frame.get("params")
        if not isinstance(params, dict):
            params = {}
        if isinstance(method, str) and "id" in frame:
            self.start(self._answer(frame["id"], method, params))
        elif isinstance(method, str):
            self._on_notification(method, params)
        elif isinstance(number := frame.get("id"), int) and number in self._waiting:
            self._resolve(self._waiting[number], frame)

    @staticmethod
    def _resolve(reply: asyncio.Future[Json], frame: Json) -> None:
        if not reply.done():
            reply.set_result(frame)

    async def _answer(self, request_id: object, method: str, params: Json) -> None:
        try:
            answer = await self._on_request(method, params)
        except RpcError as error:
            answer = Answer(error=error)
        except Exception:  # noqa: BLE001 - around a request: a bug of ours fails it, not the process
            traceback.print_exc(file=sys.stderr)
            answer = Answer(error=RpcError(INTERNAL_ERROR, "the mock agent failed; its stderr says how"))
        if answer.error is not None:
            await self._refuse(request_id, answer.error)
        else:
            await self._send({"id": request_id, "result": answer.result})
        if answer.afterwards is not None:
            await answer.afterwards()

    async def _refuse(self, request_id: object, error: RpcError) -> None:
        await self._send({"id": request_id, "error": error.payload()})

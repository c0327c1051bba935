"""Both ends of an instance's tunnel, for a test: the agent's MCP client, and the backend's lane.

Not here: real agents and Kandev's own tools.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec
from websockets.asyncio.client import ClientConnection

from kandev.wire import mcp as wire
from tests.agentctl.server.hosts import SOON, Host

BOTH = "application/json, text/event-stream"
Message = dict[str, Any]


def request(number: Any = 1, method: str = "tools/call", **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def cancelled(number: Any) -> Message:
    params = {"requestId": number}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


@dataclass
class Client:
    """An agent's MCP client."""

    host: Host
    execution: str = "e1"
    token: str = ""

    def __post_init__(self) -> None:
        self.token = self.token or self.host.instances.get(self.execution).tunnel.token

    def headers(self, **more: str | bytes) -> dict[str, str | bytes]:
        return {"Authorization": f"Bearer {self.token}", "Accept": BOTH, **more}

    async def send(self, message: Any, method: str = "POST", **headers: str | bytes) -> httpx.Response:
        content = message if isinstance(message, bytes) else json.dumps(message).encode()
        path = f"/instances/{self.execution}/mcp"
        given = [
            (name.encode(), text.encode() if isinstance(text, str) else text)
            for name, text in self.headers(**headers).items()
        ]
        return await self.host.http.request(method, path, content=content, headers=given)

    def call(self, number: Any = 1, **headers: str) -> asyncio.Task[httpx.Response]:
        """A tool call, beside the test."""
        return asyncio.create_task(self.send(request(number, name="t"), **headers))


def events(response: httpx.Response) -> list[Message]:
    """What an event stream carried."""
    lines = response.text.splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]


def complaint(message: Message) -> str:
    """The text of a tool result that says what is wrong."""
    assert message["result"]["isError"]
    return str(message["result"]["content"][0]["text"])


class Backend:
    """A lane, as the backend has it."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def next(self, kind: type[Any]) -> Any:
        """The next document, which must be of this kind."""
        async with asyncio.timeout(SOON):
            document = wire.read_from_agent(await self.connection.recv())
        assert isinstance(document, kind), document
        return document

    async def answer(self, call: wire.McpCall, *, last: bool = True, **message: Any) -> None:
        given = message or {"jsonrpc": "2.0", "id": msgspec.json.decode(call.message)["id"], "result": {}}
        raw = msgspec.Raw(msgspec.json.encode(given))
        document = wire.McpAnswer(call_id=call.call_id, message=raw, last=last)
        await self.connection.send(msgspec.json.encode(document), text=True)


@asynccontextmanager
async def lane(host: Host, execution: str = "e1") -> AsyncIterator[Backend]:
    async with host.stream(execution=execution, query="lane=mcp") as connection:
        yield Backend(connection)

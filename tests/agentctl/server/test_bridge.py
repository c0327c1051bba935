"""The bridge for agents that take only programs: what it carries, and what it says when it cannot."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kandev.wire import mcp
from tests.agentctl.server.hosts import SOON, Host
from tests.agentctl.server.lanes import Message, cancelled, complaint, lane, request

pytestmark = pytest.mark.proves("CTL-mcp")

COMMAND = (sys.executable, "-P", "-m", "kandev", "agentctl", "mcp-bridge")


class Bridge:
    """One, as an agent has it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    def say(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")

    async def hear(self) -> Message:
        assert self.process.stdout is not None
        async with asyncio.timeout(SOON):
            answer: Message = json.loads(await self.process.stdout.readline())
        return answer

    async def end(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(SOON):
            return await self.process.wait()


@asynccontextmanager
async def bridge_to(url: str, token: str) -> AsyncIterator[Bridge]:
    environment = {"KANDEV_MCP_URL": url, "KANDEV_MCP_TOKEN": token}
    process = await asyncio.create_subprocess_exec(
        *COMMAND, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=1 << 24
    )
    bridge = Bridge(process)
    try:
        yield bridge
    finally:
        assert await bridge.end() == 0


@asynccontextmanager
async def bridge(host: Host) -> AsyncIterator[Bridge]:
    await host.create(mcp_mode="task")
    tunnel = host.instances.get("e1").tunnel
    async with bridge_to(tunnel.url, tunnel.token) as one:
        yield one


async def test_calls_are_carried_beside_each_other_with_their_progress(host: Host) -> None:
    async with bridge(host) as agent, lane(host) as backend:
        await backend.next(mcp.McpLane)
        agent.say(request(1), request(2))
        first, second = [await backend.next(mcp.McpCall) for _ in range(2)]
        await backend.answer(second)
        assert (await agent.hear())["id"] == 2
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}}
        await backend.answer(first, last=False, **note)
        await backend.answer(first)
        assert [await agent.hear(), await agent.hear()] == [note, {"jsonrpc": "2.0", "id": 1, "result": {}}]


async def test_it_says_who_it_is_and_which_version_it_speaks(host: Host) -> None:
    async with bridge(host) as agent, lane(host) as backend:
        await backend.next(mcp.McpLane)
        agent.say(request(1, "initialize"))
        hello = await backend.next(mcp.McpCall)
        await backend.answer(hello, jsonrpc="2.0", id=1, result={"protocolVersion": "2025-06-18"})
        await agent.hear()
        await backend.next(mcp.McpServed)
        agent.say({"jsonrpc": "2.0", "method": "notifications/initialized"}, request(2))
        call = await backend.next(mcp.McpCall)
        assert (hello.version, call.version) == (None, "2025-06-18")
        (held,) = host.instances.get("e1").tunnel._calls.values()
        assert held.client
        await backend.answer(call)
        await agent.hear()


async def test_a_cancelled_call_is_left_and_gets_no_answer(host: Host) -> None:
    async with bridge(host) as agent, lane(host) as backend:
        await backend.next(mcp.McpLane)
        agent.say(request(1))
        call = await backend.next(mcp.McpCall)
        agent.say(cancelled(1))
        assert (await backend.next(mcp.McpLeft)).call_id == call.call_id
        agent.say(request(2))
        await backend.answer(await backend.next(mcp.McpCall))
        assert (await agent.hear())["id"] == 2


async def test_its_end_leaves_what_it_waits_for(host: Host) -> None:
    await host.create(mcp_mode="task")
    tunnel = host.instances.get("e1").tunnel
    async with lane(host) as backend:
        await backend.next(mcp.McpLane)
        async with bridge_to(tunnel.url, tunnel.token) as agent:
            agent.say(request(1))
            call = await backend.next(mcp.McpCall)
        assert (await backend.next(mcp.McpLeft)).call_id == call.call_id


async def test_what_is_refused_is_told_under_the_requests_own_id(host: Host) -> None:
    async with bridge(host) as agent:
        agent.say(request(1, text="x" * 5 * 1024 * 1024))
        refused = await agent.hear()
        assert refused["id"] == 1
        assert complaint(refused).startswith("[INTERNAL_ERROR] A message of a tool's client has at most")
        agent.say(b"no json")
        assert "not JSON" in (await agent.hear())["error"]["message"]
        agent.say(b"", b"   ", request(2, "tools/list", text="x" * 5 * 1024 * 1024))
        assert (await agent.hear())["error"]["code"] == -32603


async def test_a_wrong_token_is_told(host: Host) -> None:
    await host.create(mcp_mode="task")
    async with bridge_to(host.instances.get("e1").tunnel.url, "wrong") as agent:
        agent.say(request(1))
        assert "needs the token" in complaint(await agent.hear())


async def test_without_agentctl_calls_fail_in_words() -> None:
    async with bridge_to("http://127.0.0.1:9/instances/e1/mcp", "t") as agent:
        agent.say(request(1), request(2, "tools/list"))
        assert complaint(await agent.hear()).startswith("[INTERNAL_ERROR] Kandev cannot be reached")
        assert "Kandev cannot be reached" in (await agent.hear())["error"]["message"]


def test_a_person_who_starts_it_hears_what_it_is_for() -> None:
    done = subprocess.run(
        COMMAND, check=False, env={}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "started by an agent that Kandev runs" in done.stderr


def test_it_loads_nothing_but_the_standard_library() -> None:
    code = "import sys, kandev.agentctl.tunnel.bridge; print(*{n.split('.')[0] for n in sys.modules})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert not set(done.stdout.split()) & {"msgspec", "starlette", "uvicorn", "asyncio", "mcp", "httpx"}

"""Each call is answered by itself: beside others, within bounds, and not longer than its agent waits."""

import asyncio
import json
from typing import Any

import pytest

from kandev.core.errors import Conflict, Forbidden, Invalid, KandevError, NotFound, QueueFull
from kandev.core.session import Launch, Outcome
from kandev.mcp import server
from kandev.mcp.failures import texts, told
from kandev.mcp.server import AgentTools
from kandev.ports.tools import ToolCall
from tests.mcp.clients import Call, context, tool_call

pytestmark = pytest.mark.proves("MCP-task-mode")
SOON = 10


class Played(AgentTools):
    """The server with tools of the test's: noted, and held until it lets them go on."""

    def __init__(self) -> None:
        super().__init__()
        self.called: list[tuple[str, str, dict[str, Any]]] = []
        self.cancelled = 0
        self.binding = False
        self.go = asyncio.Event()
        self.begun = asyncio.Event()

    async def _call(
        self, execution: str, call: ToolCall, name: str, arguments: dict[str, Any]
    ) -> dict[str, Any] | tuple[str, ...]:
        self.called.append((execution, name, arguments))
        if self.binding:
            call.commit()
        self.begun.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return {"done": name}


@pytest.fixture
def tools() -> Played:
    tools = Played()
    tools.begin(context())
    return tools


async def test_a_tools_result_is_structured_and_told_as_text(tools: Played) -> None:
    tools.go.set()
    call = tool_call(limit=3)
    await tools.handle("e1", call)
    assert tools.called == [("e1", "list_workspaces_kandev", {"limit": 3})]
    result = call.response["result"]
    assert result["structuredContent"] == json.loads(call.text) == {"done": "list_workspaces_kandev"}


async def test_an_execution_that_nobody_knows_may_call_nothing() -> None:
    tools = AgentTools()
    tools.begin(context())
    call = tool_call()
    await tools.handle("e9", call)
    assert call.text == "[NOT_FOUND] The session of this agent was deleted."


@pytest.mark.parametrize(
    "present",
    [
        {"outcome": Outcome.CANCELLED},
        {"launch": Launch.CLOSING},
        {"launch": Launch.LOST},
        {"execution": "e2"},
    ],
)
async def test_what_a_stopped_or_replaced_agent_still_asks_for_is_not_done(present: dict[str, Any]) -> None:
    tools = AgentTools()
    tools.begin(context(**present))
    call = tool_call()
    await tools.handle("e1", call)
    assert call.text.startswith("[CONFLICT] Your session was stopped")


async def test_calls_are_answered_beside_each_other(tools: Played) -> None:
    slow = asyncio.create_task(tools.handle("e1", tool_call()))
    await tools.begun.wait()
    listing = Call({"jsonrpc": "2.0", "id": "x", "method": "tools/list"})
    await tools.handle("e1", listing)
    assert "list_workspaces_kandev" in {tool["name"] for tool in listing.response["result"]["tools"]}
    assert not slow.done()
    tools.go.set()
    await slow


async def test_a_call_whose_agent_left_is_given_up(tools: Played) -> None:
    call = tool_call()
    handling = asyncio.create_task(tools.handle("e1", call))
    await tools.begun.wait()
    call.left.set()
    async with asyncio.timeout(SOON):
        await handling
    assert (tools.cancelled, call.sent) == (1, [])


async def test_a_call_that_is_past_its_commit_goes_on_without_its_agent(tools: Played) -> None:
    tools.binding = True
    call = tool_call()
    handling = asyncio.create_task(tools.handle("e1", call))
    await tools.begun.wait()
    call.left.set()
    await asyncio.wait({handling}, timeout=0.05)
    assert not handling.done()
    tools.go.set()
    async with asyncio.timeout(SOON):
        await handling
    assert (tools.cancelled, call.response["id"]) == (0, 7)


@pytest.mark.parametrize(("bound", "executions"), [("CALLS_OF_ONE", ("e1", "e1")), ("CALLS", ("e1", "e2"))])
async def test_more_calls_than_the_bound_are_refused_in_words(
    tools: Played,
    monkeypatch: pytest.MonkeyPatch,
    bound: str,
    executions: tuple[str, str],
) -> None:
    monkeypatch.setattr(server, bound, 1)
    first = asyncio.create_task(tools.handle(executions[0], tool_call()))
    await tools.begun.wait()
    refused = tool_call()
    await tools.handle(executions[1], refused)
    assert refused.text.startswith("[INTERNAL_ERROR] Too many tool calls are under way")
    tools.go.set()
    await first
    again = tool_call()
    await tools.handle("e1", again)
    assert again.response["result"]["structuredContent"] == {"done": "list_workspaces_kandev"}


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Invalid("no."), "[VALIDATION_ERROR] no."),
        (NotFound("no."), "[NOT_FOUND] no."),
        (Forbidden("no."), "[FORBIDDEN] no."),
        (Conflict("no."), "[CONFLICT] no."),
        (KandevError("a secret"), "[INTERNAL_ERROR] Something went wrong inside Kandev"),
        (RuntimeError("a secret"), "[INTERNAL_ERROR] Something went wrong inside Kandev"),
    ],
)
def test_what_goes_wrong_is_told_by_a_code_and_a_sentence(fault: Exception, text: str) -> None:
    assert told(fault, "a_tool").startswith(text)
    assert "secret" not in told(fault, "a_tool")


@pytest.mark.parametrize(
    "message",
    [
        {"method": "tools/call", "params": [1]},
        {"method": "tools/call", "params": {"name": 7}},
        {"method": "tools/call", "params": {"name": "nothing"}},
        {"method": "tools/call"},
        {"method": "no/such/method"},
        {"method": "resources/list"},
        {"method": ""},
    ],
)
async def test_what_is_no_request_of_ours_is_an_error_of_the_protocol(
    tools: Played, message: dict[str, Any]
) -> None:
    call = Call({"jsonrpc": "2.0", "id": 7, **message})
    await tools.handle("e1", call)
    assert call.response["error"]["code"] in (-32601, -32602)
    assert not tools.called


async def test_a_backend_that_never_saw_the_handshake_serves_a_client_that_had_it(tools: Played) -> None:
    tools.go.set()
    for version in (None, "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"):
        call = tool_call()
        call.version = version
        await tools.handle("e1", call)
        assert not call.response["result"].get("isError"), version


async def test_a_version_that_nobody_speaks_is_refused(tools: Played) -> None:
    call = tool_call()
    call.version = "1999-01-01"
    await tools.handle("e1", call)
    assert "error" in call.response


async def test_a_library_that_could_not_be_loaded_is_loaded_by_the_next_call(
    tools: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools.go.set()

    def broken() -> Any:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(server, "_load", broken)
        failed = tool_call()
        await tools.handle("e1", failed)
    assert failed.text.startswith("[INTERNAL_ERROR]")
    again = tool_call()
    await tools.handle("e1", again)
    assert again.response["result"]["structuredContent"] == {"done": "list_workspaces_kandev"}


def test_details_of_a_refusal_follow_its_sentence_as_json() -> None:
    full = QueueFull("The queue is full.", {"error": "queue_full", "queue_size": 2, "max": 2})
    sentence, details = texts(full, "message_task_kandev")
    assert sentence == "[CONFLICT] The queue is full." and json.loads(details)["max"] == 2
    assert texts(Conflict("no."), "message_task_kandev") == ("[CONFLICT] no.",)

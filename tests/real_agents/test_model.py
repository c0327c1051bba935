"""The scripted model: what a prompt's directives make it answer, and that each wire format carries it."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from .model import Action, Planner, ScriptedModel
from .model.answering import user_text
from .model.directives import Asked
from .model.tools import Tool, filled

Json = dict[str, Any]

SHELL_SCHEMA: Json = {
    "type": "object",
    "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
    "required": ["command", "description"],
}
SHELL = Tool("bash", SHELL_SCHEMA)
WRITER = Tool("write", {"properties": {"filePath": {"type": "string"}, "content": {"type": "string"}}})
MCP = Tool("tools_add", {"properties": {"a": {"type": "integer"}}, "required": ["a", "b"]})
TOOLS = (SHELL, WRITER, MCP)


def chat(text: str, stream: bool) -> tuple[str, Json]:
    tool = {"type": "function", "function": {"name": "bash", "parameters": SHELL_SCHEMA}}
    return "/v1/chat/completions", _openai(text, stream) | {"tools": [tool]}


def anthropic(text: str, stream: bool) -> tuple[str, Json]:
    return "/v1/messages", _openai(text, stream) | {"tools": [{"name": "bash", "input_schema": SHELL_SCHEMA}]}


def _openai(text: str, stream: bool) -> Json:
    return {"model": "m", "stream": stream, "messages": [{"role": "user", "content": text}]}


def responses(text: str, stream: bool) -> tuple[str, Json]:
    given = [{"role": "user", "content": [{"type": "input_text", "text": text}]}]
    tool = {"type": "function", "name": "bash", "parameters": SHELL_SCHEMA}
    return "/v1/responses", {"model": "m", "stream": stream, "input": given, "tools": [tool]}


def gemini(text: str, stream: bool) -> tuple[str, Json]:
    method = "streamGenerateContent" if stream else "generateContent"
    declared = [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": SHELL_SCHEMA}]}]
    contents = [{"role": "user", "parts": [{"text": text}]}]
    return f"/v1beta/models/m:{method}", {"contents": contents, "tools": declared}


FORMATS = pytest.mark.parametrize("written", [chat, anthropic, responses, gemini])
Written = Callable[[str, bool], tuple[str, Json]]


async def _ask(model: ScriptedModel, written: Written, text: str, stream: bool) -> httpx.Response:
    path, body = written(text, stream)
    async with httpx.AsyncClient(base_url=model.base_url, timeout=10, trust_env=False) as client:
        return await client.post(path, json=body)


@FORMATS
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_plain_prompt_is_echoed(model: ScriptedModel, written: Written, stream: bool) -> None:
    answer = await _ask(model, written, "hello", stream)

    assert answer.status_code == 200
    assert "echo: hello" in answer.text


@FORMATS
@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
async def test_a_shell_directive_calls_the_offered_tool(
    model: ScriptedModel, written: Written, stream: bool
) -> None:
    answer = await _ask(model, written, "[shell echo hi]", stream)
    entry = await model.log.asked("[shell")

    assert "bash" in answer.text
    assert "echo hi" in answer.text
    assert entry["call"]["arguments"]["command"] == "echo hi"


@FORMATS
async def test_a_cut_answer_breaks_off(model: ScriptedModel, written: Written) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await _ask(model, written, "[cut]", stream=True)


@FORMATS
async def test_an_error_directive_gives_its_http_status(model: ScriptedModel, written: Written) -> None:
    assert (await _ask(model, written, "[error 429]", stream=True)).status_code == 429


async def test_a_client_that_leaves_a_hanging_request_is_recorded(model: ScriptedModel) -> None:
    asking = asyncio.create_task(_ask(model, chat, "[hang]", stream=True))
    entry = await model.log.asked("[hang]")
    asking.cancel()

    assert "client_gone" in await model.log.finished(entry["n"], deadline_s=5)


async def test_the_request_log_is_written_as_json_lines(model: ScriptedModel) -> None:
    await _ask(model, chat, "hello", stream=False)
    assert isinstance(model.log.path, Path)
    lines = [json.loads(line) for line in model.log.path.read_text(encoding="utf-8").splitlines()]

    assert [line.get("user") for line in lines] == ["hello", None]


@pytest.mark.parametrize(
    ("text", "results", "action"),
    [
        ("hello", (), Action.ECHO),
        ("[slow 2]", (), Action.SLOW),
        ("[think 1]", (), Action.THINK),
        ("[hang]", (), Action.HANG),
        ("[shell ls] [slow 1]", (), Action.CALL),
        ("[shell ls] [slow 1]", ("listing",), Action.SLOW),
        ("[shell ls]", ("listing",), Action.DONE),
        ("[mcp missing {}]", (), Action.NO_TOOL),
    ],
)
def test_directives_are_played_one_after_the_other(
    text: str, results: tuple[str, ...], action: Action
) -> None:
    assert Planner().plan(Asked(text, results, TOOLS), 1).action is action


@pytest.mark.parametrize(
    ("text", "tool", "arguments"),
    [
        ("[shell ls [a-z]*]", "bash", {"command": "ls [a-z]*", "description": "mock"}),
        ("[ask]", "bash", {"command": "touch asked-7.txt", "description": "mock"}),
        ("[write a.txt some text]", "write", {"filePath": "a.txt", "content": "some text"}),
        ('[mcp add {"a": 2}]', "tools_add", {"a": 2, "b": "mock"}),
    ],
)
def test_a_directive_calls_a_tool_with_arguments_that_fit_its_schema(
    text: str, tool: str, arguments: Json
) -> None:
    call = Planner().plan(Asked(text, (), TOOLS), 7).call

    assert call is not None
    assert (call.tool.name, call.arguments) == (tool, arguments)


def test_a_hidden_tool_is_searched_for_once() -> None:
    planner = Planner()
    search = Tool("tool_search", {"properties": {"query": {"type": "string"}}})
    first = planner.plan(Asked("[mcp add {}]", (), (search,)), 1)
    second = planner.plan(Asked("[mcp add {}]", ("found",), (search, MCP)), 2)

    assert first.call is not None and first.call.arguments == {"query": "add"}
    assert second.call is not None and second.call.tool == MCP


def test_a_request_without_tools_gets_a_short_answer_unless_the_text_wants_more() -> None:
    assert Planner().plan(Asked("[slow 9]"), 1).action is Action.SIDE
    assert Planner().plan(Asked("[notools] [slow 9]"), 1).action is Action.SLOW


def test_what_an_agent_puts_around_a_prompt_is_not_taken_for_the_prompt() -> None:
    parts = ["<env>today</env>", "an older prompt", "<system-reminder>x</system-reminder> the prompt"]

    assert user_text(parts).strip() == "the prompt"
    assert user_text(["<env>today</env>"]) == ""


def test_required_arguments_are_filled_by_their_type() -> None:
    properties = {
        "flag": {"type": "boolean"},
        "many": {"type": ["array", "null"]},
        "one": {"enum": ["first", "second"]},
    }
    schema = {"properties": properties, "required": ["flag", "many", "one", "other"]}

    assert filled(schema, {}) == {"flag": False, "many": [], "one": "first", "other": "mock"}

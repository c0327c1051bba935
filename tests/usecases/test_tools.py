"""The list of tools: exact names per mode, closed schemas, truthful annotations, and one text everywhere."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from kandev.core import toolbox
from kandev.core.context_block import choice
from kandev.gateway import errors as gateway_errors
from kandev.gateway.catalogue import ACTIONS as PUBLIC
from kandev.mcp import failures
from kandev.mcp.actions import ACTIONS, dispatch_mcp
from kandev.mcp.arguments import Arguments
from kandev.mcp.failures import UnknownAction
from kandev.mcp.tools import TOOLS, tools_of
from kandev.wire.gateway import BadPayload
from tests.gateway.house import House
from tests.usecases.family import Family, family

LOOKING = (
    "list_related_tasks",
    "list_tasks",
    "list_task_sessions",
    "get_task_conversation",
    "list_workspaces",
    "list_workflows",
    "list_workflow_steps",
    "list_agents",
)
CHANGING = ("message_task", "create_task", "spawn_session", "update_task", "move_task")
ASKING = "ask_user_question"
BY_MODE = {
    "task": {*LOOKING, *CHANGING, ASKING},
    "office": {"list_related_tasks", ASKING},
    "config": set[str](),
    "external": set[str](),
}
WRONG: Any = 12.5


@pytest.mark.field("D37")
@pytest.mark.parametrize("mode", toolbox.MODES)
def test_a_mode_has_exactly_these_tools(mode: toolbox.Mode) -> None:
    expected = {f"{name}_kandev" for name in BY_MODE[mode]}
    assert {tool.name for tool in tools_of(mode)} == set(toolbox.NAMES[mode]) == expected
    assert {name for name, tool in TOOLS.items() if mode in tool.modes} == expected


def test_only_the_task_mode_has_the_tools_that_steer_others() -> None:
    for mode in ("config", "office", "external"):
        assert toolbox.MESSAGE not in toolbox.NAMES[mode]
        assert toolbox.STOP not in toolbox.NAMES[mode]


def test_the_actions_of_agents_are_exactly_those_of_the_tools_and_no_public_ones() -> None:
    assert set(ACTIONS) == {f"mcp.{name}" for name in (*LOOKING, *CHANGING, ASKING)}
    assert set(ACTIONS) == {tool.action for tool in TOOLS.values()}
    assert not set(ACTIONS) & set(PUBLIC)


async def test_an_unknown_action_is_told_as_such(house: House) -> None:
    kin = await family(house)
    who = await kin.member()
    for name in ("mcp.delete_everything", "task.delete", ""):
        with pytest.raises(UnknownAction):
            await dispatch_mcp(house.ctx, who.calling(), name, {})


def test_the_errors_of_tools_have_the_codes_of_the_doors() -> None:
    doors = {kind: code for kind, code in gateway_errors.CODES if kind.__module__ != gateway_errors.__name__}
    tools = {kind: code for kind, code in failures.CODES if kind is not UnknownAction}
    assert doors == tools


# -- schemas ------------------------------------------------------------------------------------


def _objects(node: Any) -> list[dict[str, Any]]:
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    own = [node] if isinstance(node, dict) and node.get("type") == "object" else []
    return [*own, *(found for one in inner for found in _objects(one))]


@pytest.mark.proves("MCP-closed-schemas")
@pytest.mark.parametrize("name", TOOLS)
def test_a_schema_is_closed_whole_and_the_one_that_is_read(name: str) -> None:
    tool = TOOLS[name]
    schema = tool.input_schema
    assert schema["type"] == "object"
    assert all(found["additionalProperties"] is False for found in _objects(schema))
    assert "$ref" not in str(schema)
    assert "null" not in str(schema)
    fields = msgspec.structs.fields(tool.arguments)
    assert set(schema["properties"]) == {f.name for f in fields}
    assert set(schema.get("required", ())) == {f.name for f in fields if f.required}
    assert tool.output["type"] == "object"
    assert "$ref" not in str(tool.output)


@pytest.mark.parametrize("name", TOOLS)
def test_no_tool_takes_an_argument_that_says_who_calls(name: str) -> None:
    assert not [f for f in TOOLS[name].input_schema["properties"] if f.startswith(("sender", "caller"))]


def needed(name: str) -> dict[str, Any]:
    """Arguments of the right shape with what is required."""
    if name == f"{ASKING}_kandev":
        return {"questions": [{"prompt": "x"}]}
    return {f.name: "x" for f in msgspec.structs.fields(TOOLS[name].arguments) if f.required}


@pytest.mark.proves("MCP-closed-schemas")
@pytest.mark.parametrize("name", TOOLS)
async def test_a_wrong_argument_is_named_and_changes_nothing(house: House, name: str) -> None:
    kin = await family(house)
    who = await kin.member()
    before = await kin.everything()
    action = name.removesuffix("_kandev")

    async def refused(**arguments: Any) -> str:
        with pytest.raises(BadPayload) as caught:
            await kin.call(who, action, **arguments)
        text = failures.told(caught.value, name)
        assert text.startswith("[VALIDATION_ERROR] ")
        return text

    assert "Unknown field `surprise`" in await refused(**needed(name), surprise=1)
    for field in msgspec.structs.fields(TOOLS[name].arguments):
        assert f"`{field.name}`" in await refused(**{**needed(name), field.name: WRONG})
        if field.required:
            without = {k: v for k, v in needed(name).items() if k != field.name}
            assert await refused(**without) == f"[VALIDATION_ERROR] The field `{field.name}` is missing."
    assert await kin.everything() == before


@pytest.mark.parametrize("name", TOOLS)
def test_an_optional_argument_may_be_null(name: str) -> None:
    kind = TOOLS[name].arguments
    assert issubclass(kind, Arguments)
    optional = [f for f in msgspec.structs.fields(kind) if not f.required and f.default is None]
    msgspec.convert({**needed(name), **{f.name: None for f in optional}}, kind)


# -- what they say of themselves ----------------------------------------------------------------


@pytest.mark.parametrize("name", TOOLS)
async def test_a_tool_that_says_it_reads_only_has_an_action_that_changes_nothing(name: str) -> None:
    tool = TOOLS[name]
    # A question is given up with its call, so it is not finished at any price; read-only it is not.
    assert ACTIONS[tool.action].mutates is not (tool.read_only or name == f"{ASKING}_kandev")
    assert tool.read_only == (name.removesuffix("_kandev") in LOOKING)
    if tool.read_only:
        assert tool.idempotent
        assert not tool.destructive


def test_the_tools_that_can_end_what_others_do_say_so() -> None:
    assert {name for name, tool in TOOLS.items() if tool.destructive} == {
        "message_task_kandev",
        "update_task_kandev",
        "move_task_kandev",
    }


@pytest.mark.parametrize("name", [n for n, t in TOOLS.items() if t.read_only])
async def test_a_tool_that_reads_only_writes_nothing(house: House, name: str) -> None:
    kin = await family(house)
    who = await kin.member()
    given = {"task_id": who.id} if "task_id" in TOOLS[name].input_schema["properties"] else {}
    before = await kin.everything()
    await kin.call(who, name.removesuffix("_kandev"), **given)
    assert await kin.everything() == before


def test_the_description_opens_with_the_choice_and_calls_no_interrupt_a_stop() -> None:
    tool = TOOLS[toolbox.MESSAGE]
    assert tool.description.startswith("\n".join(choice(toolbox.NAMES["task"])))
    mode = tool.input_schema["properties"]["delivery_mode"]
    assert (mode["enum"], mode["default"]) == (["queued", "interrupt"], "queued")
    for text in (tool.description, mode["description"]):
        assert "direct" in text
        ways = [line for line in text.splitlines() if toolbox.STOP not in line]
        assert not re.search(r"\b(stop|halt|kill)", "\n".join(ways), re.IGNORECASE)


def test_every_text_names_only_tools_that_its_reader_has() -> None:
    for mode in toolbox.MODES:
        for tool in tools_of(mode):
            texts = f"{tool.description} {tool.input_schema}"
            assert set(re.findall(r"\b[a-z_]+_kandev\b", texts)) <= set(toolbox.NAMES[mode]), tool.name


# -- answers ------------------------------------------------------------------------------------


async def every_answer(kin: Family) -> dict[str, dict[str, Any]]:
    """One of each tool."""
    parent = await kin.member()
    child = await kin.member(parent=parent)
    step = (await kin.call(parent, "list_workflow_steps"))["steps"][1]["workflow_step_id"]
    given: dict[str, dict[str, Any]] = {
        "message_task": {"task_id": child.id, "prompt": "say hi"},
        "create_task": {"title": "New", "parent_id": "self"},
        "spawn_session": {"task_id": child.id},
        "update_task": {"task_id": child.id, "priority": "high"},
        "move_task": {"task_id": child.id, "workflow_step_id": step},
        "get_task_conversation": {"task_id": child.id},
    }
    return {name: await kin.call(parent, name, **given.get(name, {})) for name in (*LOOKING, *CHANGING)}


async def test_each_answer_has_the_shape_that_its_tool_tells(house: House) -> None:
    kin = await family(house)
    for name, answer in (await every_answer(kin)).items():
        tool = TOOLS[f"{name}_kandev"]
        msgspec.convert(answer, tool.answer)
        assert set(answer) <= set(tool.output["properties"])
        assert set(tool.output["required"]) <= set(answer)

"""Every kind of `session/update`, as real agents sent them and as none should."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from kandev.agentctl.adapters.base import Started
from tests.agentctl.adapter.peer import MakeStage, Message, Stage

WIRE = sorted((Path(__file__).parent / "wire").glob("*.jsonl"))
TEXT = {"type": "text", "text": "hi"}
IMAGE = {"type": "image", "data": "eA==", "mimeType": "image/png"}
OPTION: Message = {"id": "effort", "name": "Effort", "type": "select"}
CASES: list[tuple[str, Message, list[tuple[str, Message]]]] = [
    ("user_message_chunk", {"content": TEXT}, []),
    ("agent_message_chunk", {"content": TEXT}, [("MessageChunk", {"text": "hi", "message_id": None})]),
    (
        "agent_message_chunk",
        {"content": TEXT, "messageId": "m"},
        [("MessageChunk", {"text": "hi", "message_id": "m"})],
    ),
    (
        "agent_message_chunk",
        {"content": IMAGE},
        [("MessageChunk", {"text": "", "message_id": None, "block": IMAGE})],
    ),
    ("agent_thought_chunk", {"content": TEXT}, [("ReasoningChunk", {"text": "hi", "message_id": None})]),
    (
        "plan",
        {"entries": [{"content": "a", "priority": "high", "status": "pending"}, 5]},
        [("Plan", {"entries": [{"content": "a", "priority": "high", "status": "pending"}]})],
    ),
    (
        "available_commands_update",
        {"availableCommands": [{"name": "x"}]},
        [("Commands", {"commands": [{"name": "x"}]})],
    ),
    ("current_mode_update", {"currentModeId": "plan"}, [("Mode", {"mode": "plan"})]),
    ("usage_update", {"used": 1, "size": 2, "_meta": {}}, [("Usage", {"usage": {"used": 1, "size": 2}})]),
    ("session_info_update", {"_meta": {"x": 1}}, []),
    (
        "session_info_update",
        {"title": "A title"},
        [("Notice", {"text": "The agent calls this conversation: A title", "data": {"title": "A title"}})],
    ),
    (
        "config_option_update",
        {"configOptions": [{"id": "m", "category": "mode", "currentValue": "yolo"}]},
        [("Mode", {"mode": "yolo"})],
    ),
    (
        "config_option_update",
        {"configOptions": [{**OPTION, "currentValue": "low"}, {"id": "same", "currentValue": 1}]},
        [("Notice", {"text": "Effort is now low.", "data": {"config_id": "effort", "value": "low"}})],
    ),
    (
        "from_the_future",
        {"x": 1},
        [
            (
                "Notice",
                {
                    "text": "The agent sent an update of unknown kind: from_the_future",
                    "data": {"sessionUpdate": "from_the_future", "x": 1},
                },
            )
        ],
    ),
]


@pytest.mark.proves("ACP-updates")
@pytest.mark.parametrize(("kind", "update", "said"), CASES, ids=[case[0] for case in CASES])
async def test_each_kind_of_update_is_said_as_it_should_be(
    stages: MakeStage, kind: str, update: Message, said: list[tuple[str, Message]]
) -> None:
    stage = stages()
    await stage.open(configOptions=[{"id": "same", "currentValue": 1}])
    stage.agent.update(kind_=kind, **update)
    stage.agent.text("end")
    await stage.sink.until("MessageChunk", 2 if said and said[0][0] == "MessageChunk" else 1)
    assert stage.sink.said[:-1] == said


@pytest.mark.proves("ACP-updates")
async def test_a_tool_call_and_its_updates_carry_what_changed(stage: Stage) -> None:
    content = [{"type": "content", "content": TEXT}]
    stage.agent.update(
        kind_="tool_call", toolCallId="t", title="Run", kind="execute", content=content, rawInput={"a": 1}
    )
    stage.agent.update(kind_="tool_call_update", toolCallId="t", status="completed", rawOutput=None)
    await stage.sink.until("ToolUpdate")
    call, update = stage.sink.of("ToolCall")[0], stage.sink.of("ToolUpdate")[0]
    assert (call["title"], call["kind"], call["status"]) == ("Run", "execute", "pending")
    assert (call["content"], call["raw_input"]) == (content, {"a": 1})
    changed = {name: value for name, value in update.items() if value is not None}
    assert changed == {"tool_call_id": "t", "status": "completed"}


MISSHAPEN: list[Any] = [
    None,
    7,
    "x",
    [],
    {},
    {"sessionUpdate": None},
    {"sessionUpdate": ["x"]},
    {"sessionUpdate": "agent_message_chunk"},
    {"sessionUpdate": "agent_message_chunk", "content": [1]},
    {"sessionUpdate": "agent_thought_chunk", "content": {"text": 5}},
    {"sessionUpdate": "tool_call"},
    {"sessionUpdate": "tool_call", "toolCallId": {"a": 1}, "title": 5, "content": "x", "locations": {}},
    {"sessionUpdate": "tool_call_update", "status": 5, "content": [5]},
    {"sessionUpdate": "plan", "entries": "x"},
    {"sessionUpdate": "available_commands_update"},
    {"sessionUpdate": "current_mode_update"},
    {"sessionUpdate": "config_option_update", "configOptions": [1, {"id": None}]},
    {"sessionUpdate": "session_info_update", "title": 9},
]


@pytest.mark.proves("ACP-updates")
async def test_misshapen_updates_kill_nothing(stage: Stage) -> None:
    for update in MISSHAPEN:
        stage.agent.say({"method": "session/update", "params": {"sessionId": "s1", "update": update}})
    shapes: list[Any] = [None, [], "x", {}]
    for params in shapes:
        stage.agent.say({"method": "session/update", "params": params})
    stage.agent.update(
        kind_="agent_message_chunk", content={"type": "text", "text": "alive"}, messageId="last"
    )
    while not stage.sink.of("MessageChunk") or stage.sink.of("MessageChunk")[-1]["message_id"] != "last":
        await stage.sink.until("MessageChunk", len(stage.sink.of("MessageChunk")) + 1)


async def test_what_is_about_another_conversation_is_not_shown_but_said_once(stage: Stage) -> None:
    for _ in range(3):
        stage.agent.update("other", kind_="agent_message_chunk", content=TEXT)
    stage.agent.text("mine")
    await stage.sink.until("MessageChunk")
    assert [kind for kind, _ in stage.sink.said] == ["Notice", "MessageChunk"]


@pytest.mark.proves("ACP-updates")
@pytest.mark.parametrize("recording", WIRE, ids=[path.stem for path in WIRE])
async def test_recorded_agents_are_understood(stages: MakeStage, recording: Path) -> None:
    """Line by line: its requests are answered, nothing is a bad line, its turns end."""
    stage = stages()
    lines = [json.loads(line) for line in recording.read_text().splitlines()]
    starting, ours = stage.begin(), dict[int, int]()
    for direction, message in lines:
        if direction == "<":
            answers = "method" not in message
            stage.agent.say({**message, "id": ours[message["id"]]} if answers else message)
        else:
            await play(stage, message, starting, ours)
    prompts = sum(1 for _, message in lines if message.get("method") == "session/prompt")
    await stage.sink.until("turn_ended", prompts)
    assert not [notice for notice in stage.sink.of("Notice") if "no protocol message" in notice["text"]]
    assert "echo: hello" in stage.sink.texts()


async def play(
    stage: Stage, message: Message, starting: "asyncio.Task[Started]", ours: dict[int, int]
) -> None:
    """Do what the recorded client did; `ours` maps its request ids to the adapter's."""
    if "result" in message:
        answered = sum(1 for sent in stage.agent.received if "result" in sent)
        ask = await stage.sink.until("permission", answered + 1)
        option = message["result"]["outcome"].get("optionId")
        await stage.adapter.answer_permission(ask.request_id, option_id=option)
        assert (await stage.agent.next())["result"] == message["result"]
        return
    if message["method"] == "session/prompt":
        await starting
        await stage.adapter.prompt(message["params"]["prompt"])
    elif message["method"] == "session/cancel":
        await stage.adapter.cancel()
    request = await stage.agent.expect(message["method"])
    if "id" in message:
        ours[message["id"]] = request["id"]

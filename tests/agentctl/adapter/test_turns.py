"""Prompts, cancels and permissions, frame by frame."""

import asyncio
import json
from typing import Any

import pytest

from kandev.agentctl.adapters.base import TurnEnd, WriteFailed
from tests.agentctl.adapter.peer import MakeStage, Message, Stage

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "never", "name": "Never", "kind": "reject_always"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


@pytest.mark.proves("ACP-prompt", "CANCEL-test-protocol-acp", "CANCEL-test-adapter")
async def test_a_prompt_is_one_request_and_its_answer_ends_the_turn_behind_its_output(stage: Stage) -> None:
    request = await stage.prompt("do it")
    assert request == {
        "jsonrpc": "2.0",
        "id": request["id"],
        "method": "session/prompt",
        "params": {"sessionId": "s1", "prompt": [{"type": "text", "text": "do it"}]},
    }
    stage.agent.text("one ")
    stage.agent.text("two")
    stage.agent.answer(request, {"stopReason": "end_turn", "usage": {"totalTokens": 7}})
    assert await stage.sink.until("turn_ended") == TurnEnd("end_turn")
    kinds = [kind for kind, _ in stage.sink.said]
    assert kinds == ["MessageChunk", "MessageChunk", "Usage", "turn_ended"]
    assert stage.sink.of("Usage") == [{"usage": {"totalTokens": 7}}]


async def test_content_blocks_are_passed_on_as_they_are(stage: Stage) -> None:
    blocks = [{"type": "text", "text": "see"}, {"type": "image", "data": "eA==", "mimeType": "image/png"}]
    await stage.adapter.prompt(blocks)
    assert (await stage.agent.expect("session/prompt"))["params"]["prompt"] == blocks


@pytest.mark.field("B13")
@pytest.mark.parametrize(
    ("answer", "end"),
    [
        ({"result": {"stopReason": "max_tokens"}}, TurnEnd("max_tokens")),
        ({"result": {"stopReason": "a new word"}}, TurnEnd("a new word")),
        ({"error": {"code": 401, "message": "bad key"}}, TurnEnd("error", "bad key (401)")),
        ({"result": None}, TurnEnd("error", "The agent gave no stop reason.")),
        ({"result": {}, "error": None}, TurnEnd("error", "The agent gave no stop reason.")),
    ],
)
async def test_every_kind_of_answer_ends_the_turn_once(stage: Stage, answer: Message, end: TurnEnd) -> None:
    request = await stage.prompt()
    stage.agent.say({"id": request["id"], **answer}, {"id": request["id"], **answer})
    stage.agent.text("after")
    await stage.sink.until("MessageChunk")
    assert stage.sink.of("turn_ended") == [end]


@pytest.mark.field("B13")
async def test_a_second_answer_to_a_cancelled_prompt_does_not_end_the_next_turn(stage: Stage) -> None:
    first = await stage.prompt()
    await stage.adapter.cancel()
    await stage.agent.expect("session/cancel")
    stage.agent.answer(first, {"stopReason": "cancelled"})
    await stage.sink.until("turn_ended")
    second = await stage.prompt("next")
    stage.agent.answer(first, {"stopReason": "cancelled"})
    stage.agent.text("at work")
    await stage.sink.until("MessageChunk")
    assert stage.sink.of("turn_ended") == [TurnEnd("cancelled")]
    stage.agent.answer(second, {"stopReason": "end_turn"})
    assert await stage.sink.until("turn_ended", 2) == TurnEnd("end_turn")


async def test_a_process_that_goes_first_ends_no_turn_but_closes(stage: Stage) -> None:
    await stage.prompt()
    stage.agent.end()
    await stage.sink.until("closed")
    assert stage.sink.of("turn_ended") == []
    with pytest.raises(WriteFailed):
        await stage.adapter.prompt("again")


async def test_a_prompt_to_a_closed_input_is_a_failed_write(stage: Stage) -> None:
    await stage.adapter.close_input()
    with pytest.raises(WriteFailed):
        await stage.adapter.prompt("hello")


@pytest.mark.proves(
    "CANCEL-acp-frame",
    "CANCEL-acp-no-id",
    "CANCEL-acp-only-session-id",
    "CANCEL-flow-1-message-sent",
    "CANCEL-test-protocol-acp",
    "CANCEL-test-adapter",
)
async def test_a_cancel_is_exactly_this_notification(stage: Stage) -> None:
    await stage.prompt()
    await stage.adapter.cancel()
    assert await stage.agent.next() == {
        "jsonrpc": "2.0",
        "method": "session/cancel",
        "params": {"sessionId": "s1"},
    }
    expected = b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}\n'
    assert stage.agent.raw[-1] == expected


@pytest.mark.proves(
    "CANCEL-acp-prompt-returns", "CANCEL-flow-2-agent-answers", "CANCEL-flow-3-prompt-returns"
)
async def test_the_prompt_returns_cancelled_and_the_next_prompt_goes_to_the_same_process(
    stage: Stage,
) -> None:
    request = await stage.prompt()
    await stage.adapter.cancel()
    await stage.agent.expect("session/cancel")
    stage.agent.answer(request, {"stopReason": "cancelled"})
    assert await stage.sink.until("turn_ended") == TurnEnd("cancelled")
    again = await stage.prompt("again")
    stage.agent.answer(again, {"stopReason": "end_turn"})
    assert await stage.sink.until("turn_ended", 2) == TurnEnd("end_turn")


async def test_a_cancel_may_be_repeated_and_waits_for_no_answer(stage: Stage) -> None:
    await stage.prompt()
    for _ in range(3):
        await stage.adapter.cancel()
        assert "id" not in await stage.agent.expect("session/cancel")


async def test_a_cancel_marks_the_tool_calls_that_run_and_only_those(stage: Stage) -> None:
    await stage.prompt()
    stage.agent.update(kind_="tool_call", toolCallId="done", title="a", status="in_progress")
    stage.agent.update(kind_="tool_call_update", toolCallId="done", status="completed")
    stage.agent.update(kind_="tool_call", toolCallId="runs", title="b")
    await stage.sink.until("ToolCall", 2)
    await stage.adapter.cancel()
    await stage.sink.until("ToolUpdate", 2)
    await stage.adapter.cancel()
    stage.agent.update(kind_="tool_call_update", toolCallId="runs", status="failed")
    await stage.sink.until("ToolUpdate", 3)
    updates = [(said["tool_call_id"], said["status"]) for said in stage.sink.of("ToolUpdate")]
    assert updates == [("done", "completed"), ("runs", "cancelled"), ("runs", "failed")]


async def test_a_tool_call_of_an_earlier_turn_is_not_marked_by_a_later_cancel(stage: Stage) -> None:
    request = await stage.prompt()
    stage.agent.update(kind_="tool_call", toolCallId="left", title="a", status="in_progress")
    stage.agent.answer(request, {"stopReason": "end_turn"})
    await stage.sink.until("turn_ended")
    request = await stage.prompt()
    await stage.adapter.cancel()
    stage.agent.answer(request, {"stopReason": "cancelled"})
    await stage.sink.until("turn_ended", 2)
    assert stage.sink.of("ToolUpdate") == []


async def test_a_full_journal_holds_up_the_reader_but_not_the_cancel(stage: Stage) -> None:
    await stage.prompt()
    stage.sink.hold = asyncio.Event()
    stage.agent.update(kind_="tool_call", toolCallId="t", title="a", status="in_progress")
    stage.agent.text("behind")
    while not stage.adapter._calls._running:
        await asyncio.sleep(0)
    async with asyncio.timeout(1):
        await stage.adapter.cancel()
        await stage.agent.expect("session/cancel")
    assert stage.sink.said == []
    stage.sink.hold.set()
    await stage.sink.until("MessageChunk")
    kinds = [(kind, what.get("status")) for kind, what in stage.sink.said]
    assert kinds == [("ToolCall", "in_progress"), ("ToolUpdate", "cancelled"), ("MessageChunk", None)]


def request_permission(stage: Stage, number: Any = "p1", **tool: Any) -> None:
    params = {"sessionId": "s1", "toolCall": {"toolCallId": "t1", **tool}, "options": OPTIONS}
    stage.agent.say({"id": number, "method": "session/request_permission", "params": params})


@pytest.mark.proves("ACP-permission")
@pytest.mark.field("B47")
@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ({"option_id": "once"}, {"outcome": "selected", "optionId": "once"}),
        ({"rejected": True}, {"outcome": "selected", "optionId": "no"}),
        ({"cancelled": True}, {"outcome": "cancelled"}),
        ({}, {"outcome": "cancelled"}),
    ],
)
async def test_a_permission_is_asked_and_answered(stage: Stage, answer: Message, outcome: Message) -> None:
    await stage.prompt()
    request_permission(stage, number=0, title="Run it", kind="execute", rawInput={"command": "ls"})
    stage.agent.text("still read")
    ask = await stage.sink.until("permission")
    await stage.sink.until("MessageChunk")
    assert (ask.title, ask.kind, ask.tool_call_id) == ("Run it", "execute", "t1")
    assert ask.raw_input == {"command": "ls"}
    assert [option.option_id for option in ask.options] == ["always", "once", "never", "no"]
    assert await stage.adapter.answer_permission(ask.request_id, **answer) == outcome["outcome"]
    assert await stage.agent.next() == {"jsonrpc": "2.0", "id": 0, "result": {"outcome": outcome}}
    with pytest.raises(KeyError):
        await stage.adapter.answer_permission(ask.request_id, **answer)


@pytest.mark.proves("ACP-permission")
async def test_a_request_that_names_only_the_tool_call_gets_its_title_from_it(stage: Stage) -> None:
    stage.agent.update(
        kind_="tool_call", toolCallId="t1", title="Write a file", kind="edit", rawInput={"p": 1}
    )
    request_permission(stage)
    ask = await stage.sink.until("permission")
    assert (ask.title, ask.kind, ask.raw_input) == ("Write a file", "edit", {"p": 1})


@pytest.mark.field("A13")
async def test_what_a_helper_asks_under_a_conversation_of_its_own_reaches_the_client(stage: Stage) -> None:
    await stage.prompt()
    params = {"sessionId": "helper-1", "toolCall": {"toolCallId": "t9", "title": "Help"}, "options": OPTIONS}
    stage.agent.say({"id": "h1", "method": "session/request_permission", "params": params})
    ask = await stage.sink.until("permission")
    assert ask.title == "Help"
    assert await stage.adapter.answer_permission(ask.request_id, rejected=True) == "selected"
    assert (await stage.agent.next())["id"] == "h1"


async def test_an_option_that_was_not_offered_leaves_the_request_open(stage: Stage) -> None:
    request_permission(stage)
    ask = await stage.sink.until("permission")
    with pytest.raises(KeyError):
        await stage.adapter.answer_permission(ask.request_id, option_id="nonsense")
    assert await stage.adapter.answer_permission(ask.request_id, option_id="once") == "selected"


async def test_several_requests_are_open_at_once_and_answered_by_their_own_ids(stage: Stage) -> None:
    request_permission(stage, number="first", title="1")
    request_permission(stage, number=12345678901234567890123, title="2")
    first, second = await stage.sink.until("permission"), await stage.sink.until("permission", 2)
    await stage.adapter.answer_permission(second.request_id, option_id="once")
    await stage.adapter.answer_permission(first.request_id, cancelled=True)
    assert [(await stage.agent.next())["id"] for _ in range(2)] == [12345678901234567890123, "first"]


async def test_a_request_without_options_or_tool_call_can_still_be_cancelled(stage: Stage) -> None:
    stage.agent.say({"id": 5, "method": "session/request_permission", "params": {"options": [{"x": 1}, 3]}})
    ask = await stage.sink.until("permission")
    assert (ask.options, ask.tool_call_id) == ((), None)
    assert await stage.adapter.answer_permission(ask.request_id, rejected=True) == "cancelled"


async def test_an_answer_to_an_agent_that_is_gone_is_a_failed_write(stages: MakeStage) -> None:
    stage = stages()
    await stage.open()
    request_permission(stage)
    ask = await stage.sink.until("permission")
    await stage.adapter.close_input()
    with pytest.raises(WriteFailed):
        await stage.adapter.answer_permission(ask.request_id, option_id="once")


async def test_every_message_is_one_line_of_json(stage: Stage) -> None:
    await stage.adapter.prompt("two\nlines \u2028 é 🙂")
    assert all(raw.count(b"\n") == 1 and raw.endswith(b"\n") for raw in stage.agent.raw)
    assert json.loads(stage.agent.raw[-1])["params"]["prompt"][0]["text"] == "two\nlines \u2028 é 🙂"

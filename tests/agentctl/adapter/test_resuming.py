"""How an earlier conversation is taken up, and what is said about its memory."""

import asyncio

import pytest

from kandev.agentctl.adapters.base import Started
from tests.agentctl.adapter.peer import INITIALIZED, MakeStage, Message, Stage

LOAD = {"agentCapabilities": {"loadSession": True}}

NEITHER: Message = {"agentCapabilities": {}}


async def begin(stage: Stage, hello: Message) -> "asyncio.Task[Started]":
    starting = stage.begin(resume_token="old")
    stage.agent.answer(await stage.agent.expect("initialize"), hello)
    return starting


def replay(stage: Stage) -> None:
    for kind in ("user_message_chunk", "agent_message_chunk"):
        stage.agent.update("old", kind_=kind, content={"type": "text", "text": "earlier words"})
    stage.agent.update("old", kind_="tool_call", toolCallId="t", title="earlier", status="completed")


@pytest.mark.proves("ACP-load")
@pytest.mark.parametrize("late", [False, True], ids=["before the reply", "behind the reply"])
async def test_a_loaded_conversation_has_memory_and_its_history_is_not_shown_again(
    stages: MakeStage, late: bool
) -> None:
    stage = stages()
    starting = await begin(stage, LOAD)
    load = await stage.agent.expect("session/load")
    assert load["params"] == {"sessionId": "old", "cwd": stage.cwd, "mcpServers": []}
    if not late:
        replay(stage)
    stage.agent.update("old", kind_="available_commands_update", availableCommands=[{"name": "x"}])
    stage.agent.answer(load, {})
    if late:
        replay(stage)
    started = await starting
    assert (started.resume_token, started.memory, started.warnings) == ("old", True, ())
    assert started.proven
    assert [kind for kind, _ in stage.sink.said] == ["Commands"]
    stage.agent.update("old", kind_="agent_message_chunk", content={"type": "text", "text": "new words"})
    await stage.sink.until("MessageChunk")
    assert stage.sink.texts() == "new words"


@pytest.mark.proves("ACP-load")
@pytest.mark.field("D47")
async def test_a_load_that_brings_no_history_has_failed_and_a_new_conversation_begins(
    stages: MakeStage,
) -> None:
    stage = stages()
    starting = await begin(stage, LOAD)
    stage.agent.answer(await stage.agent.expect("session/load"), None)
    stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s1"})
    started = await starting
    assert (started.resume_token, started.memory) == ("s1", False)
    assert started.warnings == ("The agent loaded the conversation, but it is empty.",)
    await stage.prompt()
    assert stage.agent.received[-1]["params"]["sessionId"] == "s1"


@pytest.mark.proves("ACP-load")
async def test_resume_is_preferred_and_needs_no_history(stages: MakeStage) -> None:
    stage = stages()
    starting = await begin(stage, INITIALIZED)
    stage.agent.answer(await stage.agent.expect("session/resume"), {})
    started = await starting
    assert (started.resume_token, started.memory, started.proven) == ("old", True, False)


async def test_a_resume_that_fails_is_followed_by_load_then_by_a_new_conversation(stages: MakeStage) -> None:
    stage = stages()
    starting = await begin(stage, INITIALIZED)
    stage.agent.refuse(await stage.agent.expect("session/resume"), -32601, "not found")
    load = await stage.agent.expect("session/load")
    replay(stage)
    stage.agent.refuse(load, -32602, "Session not found: old")
    stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s1"})
    started = await starting
    assert (started.resume_token, started.memory) == ("s1", False)
    assert any("Session not found: old (-32602)" in text for text in started.warnings)
    assert stage.sink.texts() == ""


async def test_an_agent_that_can_take_up_nothing_gets_a_new_conversation(stages: MakeStage) -> None:
    stage = stages()
    starting = await begin(stage, NEITHER)
    stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s1"})
    started = await starting
    assert started.memory is False
    assert "cannot take up" in started.warnings[0]

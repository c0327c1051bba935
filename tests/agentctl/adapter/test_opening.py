"""How a conversation begins: the exact frames, and every way in which it can fail."""

import asyncio
from typing import Any

import pytest

from kandev import __version__
from kandev.agentctl.adapters.base import StartFailed
from tests.agentctl.adapter.peer import INITIALIZED, MakeStage, Message, Stage


@pytest.mark.proves("ACP-initialize", "ACP-new", "CANCEL-test-protocol-acp")
async def test_the_handshake_is_initialize_and_session_new_with_the_profiles_servers(
    stages: MakeStage,
) -> None:
    stage = stages()
    servers = [
        {"name": "web", "url": "http://127.0.0.1:1/mcp", "headers": {"Authorization": "Bearer t"}},
        {"name": "tool", "command": "tool", "args": ["--x"], "env": {"A": "1"}},
    ]
    starting = stage.begin(mcp_servers=servers)
    hello = await stage.agent.expect("initialize")
    assert hello == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True},
            "clientInfo": {"name": "kandev", "title": "Kandev", "version": __version__},
        },
    }
    stage.agent.answer(hello, INITIALIZED)
    new = await stage.agent.expect("session/new")
    headers = [{"name": "Authorization", "value": "Bearer t"}]
    assert new["params"] == {
        "cwd": stage.cwd,
        "mcpServers": [
            {"type": "http", "name": "web", "url": "http://127.0.0.1:1/mcp", "headers": headers},
            {"name": "tool", "command": "tool", "args": ["--x"], "env": [{"name": "A", "value": "1"}]},
        ],
    }
    stage.agent.answer(new, {"sessionId": "0"})
    started = await starting
    assert (started.resume_token, started.memory, started.warnings) == ("0", None, ())
    assert (started.agent_name, started.agent_version) == ("scripted", "1.2")


async def test_a_capability_that_is_withheld_is_not_offered(stages: MakeStage) -> None:
    stage = stages()
    starting = stage.begin(withhold=("fs",))
    hello = await stage.agent.expect("initialize")
    assert hello["params"]["clientCapabilities"] == {
        "fs": {"readTextFile": False, "writeTextFile": False},
        "terminal": True,
    }
    stage.agent.answer(hello, INITIALIZED)
    stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "0"})
    await starting


@pytest.mark.proves("ACP-initialize")
async def test_an_answer_to_initialize_may_lack_everything(stages: MakeStage) -> None:
    stage = stages()
    starting = stage.begin()
    stage.agent.answer(await stage.agent.expect("initialize"), {})
    stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s"})
    assert (await starting).agent_name is None


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({"result": {"protocolVersion": 2}}, "The agent speaks version 2 of ACP; Kandev speaks 1."),
        ({"result": "hi"}, "is no object: it does not speak ACP"),
        ({"result": None}, "it does not speak ACP"),
        ({"error": {"code": -32603, "message": "no licence"}}, "no licence"),
        ({"error": "plain words"}, "plain words"),
        ({"error": {"message": {"odd": 1}}}, "odd"),
    ],
)
async def test_a_bad_answer_to_initialize_fails_the_start_with_a_sentence(
    stages: MakeStage, answer: Message, sentence: str
) -> None:
    stage = stages()
    starting = stage.begin()
    stage.agent.say({"id": (await stage.agent.expect("initialize"))["id"], **answer})
    with pytest.raises(StartFailed, match=sentence):
        await starting


@pytest.mark.parametrize("step", ["initialize", "session/new"])
async def test_an_agent_that_dies_in_the_handshake_fails_the_start_at_once(
    stages: MakeStage, step: str
) -> None:
    stage = stages()
    starting = stage.begin()
    if step != "initialize":
        stage.agent.answer(await stage.agent.expect("initialize"), INITIALIZED)
    await stage.agent.expect(step)
    stage.agent.end()
    with pytest.raises(StartFailed, match="The agent ended before it was ready"):
        await starting
    await stage.sink.until("closed")
    stage.agent.end()


@pytest.mark.parametrize("step", ["initialize", "session/new"])
async def test_a_silent_agent_can_be_given_up_at_every_step(stages: MakeStage, step: str) -> None:
    stage = stages()
    starting = stage.begin()
    if step != "initialize":
        stage.agent.answer(await stage.agent.expect("initialize"), INITIALIZED)
    await stage.agent.expect(step)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting


async def test_a_closed_stdin_fails_the_start_with_a_sentence(stages: MakeStage) -> None:
    stage = stages()
    await stage.agent.close_input()
    with pytest.raises(StartFailed, match="takes no input"):
        await stage.begin()


@pytest.mark.parametrize("answer", [{}, {"sessionId": None}, [], None])
async def test_a_new_conversation_without_an_id_fails_the_start(stages: MakeStage, answer: Any) -> None:
    stage = stages()
    starting = stage.begin()
    stage.agent.answer(await stage.agent.expect("initialize"), INITIALIZED)
    stage.agent.answer(await stage.agent.expect("session/new"), answer)
    with pytest.raises(StartFailed, match="no sessionId"):
        await starting


METHODS = [
    {"id": "key", "name": "API key", "description": "Set SCRIPTED_KEY"},
    {"id": "web", "name": "Browser"},
]


async def to_demand(stage: Stage, data: Any = None, **hello: Any) -> "asyncio.Task[Any]":
    starting = stage.begin()
    stage.agent.answer(await stage.agent.expect("initialize"), {**INITIALIZED, **hello})
    stage.agent.refuse(await stage.agent.expect("session/new"), -32000, "Please run `scripted login`", data)
    return starting


@pytest.mark.proves("ACP-authenticate")
async def test_a_demand_for_login_is_told_in_the_agents_own_words_with_its_methods(stages: MakeStage) -> None:
    starting = await to_demand(stages(), authMethods=METHODS)
    with pytest.raises(StartFailed) as failure:
        await starting
    told = str(failure.value)
    assert "Please run `scripted login`" in told
    assert "API key (key) – Set SCRIPTED_KEY; Browser (web)" in told
    assert "auth_method" in told


@pytest.mark.proves("ACP-authenticate")
async def test_methods_that_only_the_error_names_are_told(stages: MakeStage) -> None:
    starting = await to_demand(stages(), {"authMethods": METHODS[1:]})
    with pytest.raises(StartFailed, match=r"Browser \(web\)"):
        await starting


async def test_a_login_method_that_the_profile_names_is_used_once(stages: MakeStage) -> None:
    stage = stages(auth_method="key")
    starting = await to_demand(stage, authMethods=METHODS)
    login = await stage.agent.expect("authenticate")
    assert login["params"] == {"methodId": "key"}
    stage.agent.answer(login, {})
    stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s1"})
    assert (await starting).resume_token == "s1"


async def test_a_login_that_is_refused_or_does_not_help_fails_the_start(stages: MakeStage) -> None:
    for helps in (False, True):
        stage = stages(auth_method="key")
        starting = await to_demand(stage)
        login = await stage.agent.expect("authenticate")
        if helps:
            stage.agent.answer(login, None)
            stage.agent.refuse(await stage.agent.expect("session/new"), -32000, "still no")
        else:
            stage.agent.refuse(login, -32603, "still no")
        with pytest.raises(StartFailed, match="still no"):
            await starting


async def test_a_server_of_a_kind_that_the_agent_denies_is_left_out_with_a_warning(stages: MakeStage) -> None:
    stage = stages()
    servers = [{"name": "web", "url": "http://127.0.0.1:1"}, {"name": "odd"}]
    starting = stage.begin(mcp_servers=servers)
    capabilities = {"mcpCapabilities": {"http": False}}
    stage.agent.answer(await stage.agent.expect("initialize"), {"agentCapabilities": capabilities})
    new = await stage.agent.expect("session/new")
    assert new["params"]["mcpServers"] == []
    stage.agent.answer(new, {"sessionId": "s1"})
    assert len((await starting).warnings) == 2


OPTIONS = [{"id": "brain", "category": "model", "type": "select", "currentValue": "small", "options": []}]


@pytest.mark.parametrize(
    ("offer", "expected"),
    [
        (
            {"configOptions": OPTIONS},
            ("session/set_config_option", {"sessionId": "s1", "configId": "brain", "value": "big"}),
        ),
        (
            {"models": {"availableModels": [], "currentModelId": "small"}},
            ("session/set_model", {"sessionId": "s1", "modelId": "big"}),
        ),
    ],
)
async def test_a_model_is_set_as_the_agent_offers_it(
    stages: MakeStage, offer: Message, expected: tuple[str, Message]
) -> None:
    stage = stages()
    starting = stage.begin(model="big")
    stage.agent.answer(await stage.agent.expect("initialize"), INITIALIZED)
    stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s1", **offer})
    setting = await stage.agent.next()
    assert (setting["method"], setting["params"]) == expected
    stage.agent.answer(setting, {})
    assert (await starting).warnings == ()


async def test_a_mode_that_is_refused_and_a_model_that_is_not_offered_are_warnings(stages: MakeStage) -> None:
    stage = stages()
    starting = stage.begin(model="big", mode="plan")
    stage.agent.answer(await stage.agent.expect("initialize"), INITIALIZED)
    modes = {"availableModes": [], "currentModeId": "ask"}
    stage.agent.answer(await stage.agent.expect("session/new"), {"sessionId": "s1", "modes": modes})
    setting = await stage.agent.expect("session/set_mode")
    assert setting["params"] == {"sessionId": "s1", "modeId": "plan"}
    stage.agent.refuse(setting, -32602, "no such mode")
    warnings = (await starting).warnings
    assert warnings[0] == "The agent offers no choice of model; 'big' was not set."
    assert warnings[1] == "The mode 'plan' was not set: no such mode (-32602)"

"""The mock agent as a JSON-RPC and ACP peer: frames, errors, memory, and an independent client."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, cast

import acp
import pytest
from acp.schema import ClientCapabilities, TextContentBlock
from acp.stdio import spawn_agent_process

from tests.mock_agent.driver import COMMAND, Peer, PeerError


@pytest.mark.proves("MOCK-load", "CLI-mock-agent")
async def test_it_says_what_it_can_do(work: Path) -> None:
    async with Peer.start(work) as peer:
        said = await peer.initialize()
    assert said["protocolVersion"] == 1
    assert said["agentCapabilities"]["loadSession"] is True
    assert said["agentCapabilities"]["mcpCapabilities"] == {"http": True, "sse": False}
    assert said["agentInfo"]["name"] == "kandev-mock-agent"


@pytest.mark.proves("MOCK-load")
async def test_a_conversation_is_loaded_by_another_process(work: Path) -> None:
    async with Peer.start(work) as first:
        session = await first.new(work)
        await first.prompt(session, "say one\nstream 2 0").end()
        first.prompt(session, "say two\ncrash")
        await first.exit_code()
    async with Peer.start(work) as second:
        await second.initialize()
        await second.load(session, work)
        replayed = [
            (update["sessionUpdate"], update["content"]["text"]) for update in second.updates(session)
        ]
        assert replayed == [
            ("user_message_chunk", "say one\nstream 2 0"),
            ("agent_message_chunk", "one"),
            ("agent_message_chunk", "chunk 1 chunk 2 "),
            ("user_message_chunk", "say two\ncrash"),
            ("agent_message_chunk", "two"),
        ]
        assert "method" not in second.frames[-1]
        await second.prompt(session, "recall").end()
        assert second.messages(session)[-1] == "recall: say one / stream 2 0 | say two / crash"


@pytest.mark.proves("MOCK-load")
async def test_its_memory_lies_beside_the_working_directory(peer: Peer, session: str, work: Path) -> None:
    await peer.prompt(session, "say one").end()
    assert [path.name for path in (work.parent / ".mock-agent").iterdir()] == [f"{session}.jsonl"]
    assert list(work.iterdir()) == []


@pytest.mark.proves("MOCK-load")
async def test_its_memory_lies_in_the_home_when_there_is_no_other_place(work: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / ".mock-agent").write_text("in the way")
    async with Peer.start(work, {"HOME": str(home)}) as peer:
        session = await peer.new(work)
        await peer.prompt(session, "say one").end()
    async with Peer.start(work, {"HOME": str(home)}) as peer:
        await peer.load(session, work)
        assert peer.messages(session) == ["one"]


@pytest.mark.proves("MOCK-load")
@pytest.mark.parametrize("session_id", ["mock-0", "../work", "", "0"])
async def test_an_unknown_conversation_cannot_be_loaded(peer: Peer, work: Path, session_id: str) -> None:
    with pytest.raises(PeerError) as unknown:
        await peer.load(session_id, work)
    assert unknown.value.error["code"] == -32602


async def test_what_a_request_lacks_is_said(peer: Peer, session: str, work: Path) -> None:
    wrong: list[tuple[str, dict[str, Any], int]] = [
        ("session/new", {"cwd": "here", "mcpServers": []}, -32602),
        ("session/new", {"cwd": str(work)}, -32602),
        ("session/prompt", {"sessionId": "nobody", "prompt": []}, -32602),
        ("session/set_mode", {"sessionId": session, "modeId": "party"}, -32602),
        ("session/dance", {}, -32601),
    ]
    for method, params, code in wrong:
        with pytest.raises(PeerError) as refused:
            await peer.call(method, params)
        assert refused.value.error["code"] == code


async def test_lines_that_are_no_frames_are_refused_and_it_goes_on(peer: Peer, session: str) -> None:
    peer.send_raw(b"\n \nnot JSON\n\xff\xfe\n[]\n7\n")
    peer.send({"jsonrpc": "2.0", "id": 0, "result": "nobody asked"})
    peer.send({"jsonrpc": "2.0", "method": "session/unknown", "params": []})
    assert await peer.prompt(session, "say on").end() == {"stopReason": "end_turn"}
    refused = [frame["error"]["code"] for frame in peer.frames if frame.get("id", 0) is None]
    assert refused == [-32700, -32700, -32600, -32600]


async def test_a_prompt_of_many_megabytes_is_taken(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "say " + "x" * 5_000_000)
    await turn.end()
    assert len(peer.messages(session)[0]) == 5_000_000


class _Client:
    """A client of the public SDK that keeps what arrives and allows once."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **kwargs: Any) -> Any:
        option = next(option for option in options if option.kind == "allow_once")
        outcome = {"outcome": "selected", "optionId": option.option_id}
        return acp.RequestPermissionResponse.model_validate({"outcome": outcome})


@pytest.mark.proves("CLI-mock-agent")
async def test_an_independent_client_can_talk_to_it(work: Path) -> None:
    client = _Client()
    source = str(Path(__file__).parents[2] / "src")
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": source}
    plan = {"sessionUpdate": "plan", "entries": [{"content": "a", "priority": "low", "status": "pending"}]}
    script = f"say hello\nthink hm\ntool look 0\nask may I\nupdate {json.dumps(plan)}\nflood 200000"
    async with spawn_agent_process(
        cast(acp.Client, client), *COMMAND, env=environ, cwd=work, transport_kwargs={"limit": 1 << 24}
    ) as (agent, _):
        hello = await agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities())
        assert hello.agent_capabilities is not None
        assert hello.agent_capabilities.load_session
        session = await agent.new_session(cwd=str(work), mcp_servers=[])
        assert session.modes is not None
        block = TextContentBlock(type="text", text=script)
        done = await agent.prompt(session_id=session.session_id, prompt=[block])
        assert done.stop_reason == "end_turn"
    kinds = [update.session_update for update in client.updates]
    assert kinds == [
        "agent_message_chunk",
        "agent_thought_chunk",
        "tool_call",
        "tool_call_update",
        "tool_call_update",
        "agent_message_chunk",
        "plan",
        "agent_message_chunk",
    ]
    assert client.updates[5].content.text == "outcome: selected allow_once"

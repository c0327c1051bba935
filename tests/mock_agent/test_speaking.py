"""What the mock agent says: the lines that talk, and lines that are no commands."""

from __future__ import annotations

import json
import time

import pytest

from tests.mock_agent.driver import Peer, PeerError


@pytest.mark.proves("MOCK-say", "CLI-mock-agent")
async def test_say_is_one_message_of_its_own_id(peer: Peer, session: str) -> None:
    result = await peer.prompt(session, "say one\nsay two words").end()
    assert result == {"stopReason": "end_turn"}
    updates = peer.updates(session)
    assert [update["content"] for update in updates] == [
        {"type": "text", "text": "one"},
        {"type": "text", "text": "two words"},
    ]
    assert {update["sessionUpdate"] for update in updates} == {"agent_message_chunk"}
    assert len({update["messageId"] for update in updates}) == 2


@pytest.mark.proves("MOCK-think")
async def test_think_is_one_reasoning_chunk(peer: Peer, session: str) -> None:
    await peer.prompt(session, "think hard").end()
    (update,) = peer.updates(session)
    assert (update["sessionUpdate"], update["content"]["text"]) == ("agent_thought_chunk", "hard")


@pytest.mark.proves("MOCK-echo")
async def test_lines_that_are_no_commands_come_back_one_by_one(peer: Peer, session: str) -> None:
    await peer.prompt(session, "hello there\n\nsleep well\nsilent night\nsay\nupdate {nothing}").end()
    said = ["hello there", "sleep well", "silent night", "say", "update {nothing}"]
    assert peer.messages(session) == said


@pytest.mark.proves("MOCK-echo")
async def test_context_blocks_are_ignored(peer: Peer, session: str) -> None:
    context = "<kandev-context>\nsay not this\n</kandev-context>\n"
    context += '<kandev-message task_id="task_1">\nsay nor this\n</kandev-message>\n'
    blocks = [
        {"type": "text", "text": f"{context}say this\n{context}"},
        {"type": "resource_link", "name": "say no", "uri": "file:///say-no"},
        {"type": "text", "text": "and that"},
    ]
    await peer.call("session/prompt", {"sessionId": session, "prompt": blocks})
    assert peer.messages(session) == ["this", "and that"]


@pytest.mark.proves("MOCK-echo")
async def test_a_prompt_of_nothing_ends_with_nothing_said(peer: Peer, session: str) -> None:
    assert await peer.prompt(session, " \n").end() == {"stopReason": "end_turn"}
    assert peer.updates(session) == []


@pytest.mark.proves("MOCK-stream")
async def test_stream_sends_chunks_of_one_message_with_the_delay_between_them(
    peer: Peer, session: str
) -> None:
    began = time.monotonic()
    await peer.prompt(session, "stream 3 100").end()
    assert time.monotonic() - began >= 0.2
    assert [update["content"]["text"] for update in peer.updates(session)] == [
        "chunk 1 ",
        "chunk 2 ",
        "chunk 3 ",
    ]
    assert peer.messages(session) == ["chunk 1 chunk 2 chunk 3 "]


@pytest.mark.proves("MOCK-stream")
async def test_a_cancel_ends_a_stream_without_delays(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "stream 1000000 0\nsay not this")
    await peer.until(lambda: peer.updates(session))
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}
    assert "not this" not in peer.messages(session)


@pytest.mark.proves("MOCK-flood")
@pytest.mark.parametrize("size", [1_000, 100_000, 20_000_000])
async def test_flood_is_one_message_line_of_that_size(peer: Peer, session: str, size: int) -> None:
    await peer.prompt(session, f"flood {size}").end()
    assert size in peer.line_sizes
    (update,) = peer.updates(session)
    assert set(update["content"]["text"]) == {"x"}


@pytest.mark.proves("MOCK-garbage")
async def test_garbage_is_lines_that_are_not_json_and_the_turn_goes_on(peer: Peer, session: str) -> None:
    await peer.prompt(session, "garbage 6\nsay after").end()
    assert len(peer.not_json) == 6
    assert peer.messages(session) == ["after"]


@pytest.mark.proves("MOCK-update")
@pytest.mark.parametrize(
    "update",
    [
        '{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending"}]}',
        '{"sessionUpdate":"usage_update","used":1,"size":2}',
        '{"sessionUpdate":"nobody_knows","x":[1,null]}',
        '{"neither":"kind"}',
    ],
)
async def test_update_sends_any_update_as_given(peer: Peer, session: str, update: str) -> None:
    await peer.prompt(session, f"update {update}").end()
    frame = next(frame for frame in peer.frames if frame.get("method") == "session/update")
    assert frame["params"] == {"sessionId": session, "update": json.loads(update)}


@pytest.mark.proves("MOCK-fail")
async def test_fail_fails_the_prompt_with_that_error(peer: Peer, session: str) -> None:
    with pytest.raises(PeerError) as failed:
        await peer.prompt(session, "say first\nfail -32603 the model is gone\nsay never").end()
    assert failed.value.error == {"code": -32603, "message": "the model is gone"}
    assert peer.messages(session) == ["first"]
    assert await peer.prompt(session, "say next").end() == {"stopReason": "end_turn"}


@pytest.mark.proves("MOCK-echo-after")
async def test_echo_after_sends_chunks_after_the_turns_end(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "echo-after 3\nsay inside")
    await turn.end()
    await peer.until_said(session, "after 1 after 2 after 3 ")
    kinds = [frame.get("method", "reply") for frame in peer.frames[peer.answered_at(turn) :]]
    assert kinds == ["reply", "session/update", "session/update", "session/update"]


@pytest.mark.proves("MOCK-echo-after")
async def test_echo_after_holds_for_failed_and_cancelled_turns_too(peer: Peer, session: str) -> None:
    with pytest.raises(PeerError):
        await peer.prompt(session, "echo-after 1\nfail 1 no").end()
    await peer.until_said(session, "after 1 ")
    turn = peer.prompt(session, "echo-after 2\nsleep 60")
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}
    await peer.until_said(session, "after 1 after 2 ")


@pytest.mark.proves("MOCK-wake")
async def test_wake_says_its_text_after_the_turns_end(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "wake 0.05 good morning")
    assert await turn.end() == {"stopReason": "end_turn"}
    await peer.until_said(session, "good morning")
    assert len(peer.frames) - 1 > peer.answered_at(turn)


@pytest.mark.proves("MOCK-wake")
async def test_wake_waits_for_the_end_of_a_running_prompt(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "wake 0 good morning\nsleep 60")
    await peer.round_trip(session)
    assert peer.updates(session) == []
    peer.cancel(session)
    await turn.end()
    await peer.until_said(session, "good morning")
    assert len(peer.frames) - 1 > peer.answered_at(turn)

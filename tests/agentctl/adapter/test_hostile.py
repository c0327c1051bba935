"""Nothing that an agent writes kills the connection, and what is good between it arrives."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kandev.agentctl.lines import BadLines, Lines, Skipped, encode, parse
from kandev.agentctl.settings import Settings
from tests.agentctl.adapter.peer import Stage, make_stage

UPDATE = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":'
    '"agent_message_chunk","content":{"type":"text","text":%s}}}}\n'
)


def chunk(text: str) -> bytes:
    return (UPDATE % json.dumps(text, ensure_ascii=False)).encode()


@pytest.mark.proves("ACP-not-json")
@pytest.mark.parametrize(
    "line",
    [
        b"Warning: something",
        b"{",
        b'{"jsonrpc":"2.0"',
        b"[]",
        b'[{"jsonrpc":"2.0","id":1,"method":"x"}]',
        b"null",
        b"42",
        b'"text"',
        b"{}",
        b'{"jsonrpc":"2.0","id":1}',
        b'{"id":{"a":1},"method":"x"}',
        b'{"id":true,"method":"x"}',
        b'{"method":5,"id":1}',
        b"\x00\x01\xff\xfe",
        b"[" * 50_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b'{"method":"x","params":{"a":' + b"[" * 300 + b"]" * 300 + b"}}",
    ],
)
async def test_a_line_that_is_no_message_is_noticed_and_skipped(stage: Stage, line: bytes) -> None:
    stage.agent.bytes(line + b"\n" + chunk("alive"))
    await stage.sink.until("MessageChunk")
    (notice,) = stage.sink.of("Notice")
    assert "no protocol message" in notice["text"]
    assert len(notice["text"]) < 300
    assert stage.sink.texts() == "alive"


@pytest.mark.proves("ACP-not-json")
async def test_a_flood_of_garbage_is_told_as_a_count(stage: Stage) -> None:
    stage.agent.bytes(b"garbage\n" * 10_000 + chunk("alive"))
    await stage.sink.until("MessageChunk")
    await stage.close()
    notices = [notice["text"] for notice in stage.sink.of("Notice")]
    assert len(notices) == 2
    assert notices[1] == "9999 more lines of the agent were no protocol messages."


@pytest.mark.proves("ACP-split-utf8")
async def test_characters_split_between_reads_arrive_whole(stage: Stage) -> None:
    for byte in chunk("é🙂漢"):
        stage.agent.bytes(bytes([byte]))
    await stage.sink.until("MessageChunk")
    assert stage.sink.texts() == "é🙂漢"


@pytest.mark.proves("ACP-split-utf8")
async def test_half_a_character_costs_the_character_not_the_line(stage: Stage) -> None:
    stage.agent.bytes((UPDATE % '"a\\ud83d"').encode() + (UPDATE % '"\\ude42b"').encode())
    stage.agent.bytes((UPDATE % '"x"').encode().replace(b'"x"', b'"\xf0\x9f"'))
    await stage.sink.until("MessageChunk", 3)
    assert stage.sink.texts() == "a\ufffd\ufffdb\ufffd"
    assert stage.sink.of("Notice") == []


@pytest.mark.proves("ACP-huge-line")
async def test_a_line_beyond_the_bound_is_skipped_with_one_notice(stage: Stage) -> None:
    for _ in range(30):
        stage.agent.bytes(b"x" * 10_000)
    await stage.sink.until("Notice")
    stage.agent.bytes(b"tail of it\n" + chunk("alive"))
    await stage.sink.until("MessageChunk")
    assert [n["text"] for n in stage.sink.of("Notice")] == [
        "The agent wrote a line longer than 100000 bytes; it was skipped."
    ]


@pytest.mark.proves("ACP-huge-line")
async def test_sixty_four_mebibytes_are_read_and_one_more_is_not(worktree: Path, settings: Settings) -> None:
    limit = Settings().line_max_bytes
    stage = make_stage(str(worktree), replace(settings, line_max_bytes=limit))
    await stage.open()
    line = chunk("y" * (limit - len(chunk("")) + 1))
    assert len(line) == limit + 1  # with its end
    longer = line.replace(b"yyy", b"yyyy", 1)
    for whole in (line, longer):
        for begin in range(0, len(whole), 1 << 20):
            stage.agent.bytes(whole[begin : begin + (1 << 20)])
    stage.agent.bytes(chunk("alive"))
    async with asyncio.timeout(30):
        while stage.sink.texts()[-5:] != "alive":
            await stage.sink.until("MessageChunk", len(stage.sink.of("MessageChunk")) + 1)
    assert len(stage.sink.of("MessageChunk")) == 2
    assert len(stage.sink.of("Notice")) == 1
    await stage.close()


@pytest.mark.proves("ACP-unknown-request")
@pytest.mark.parametrize("number", ["a", 0, -1, None, 10**40, 1.5, ""])
async def test_an_unknown_request_is_refused_under_its_own_id(stage: Stage, number: Any) -> None:
    answer = await stage.agent.ask("craft/drainMidTurnQueue", {}, number)
    assert answer["error"]["code"] == -32601
    assert "craft/drainMidTurnQueue" in answer["error"]["message"]


@pytest.mark.proves("ACP-unknown-request")
async def test_unknown_notifications_and_unasked_answers_are_ignored(stage: Stage) -> None:
    stage.agent.say({"method": "_session/retrying", "params": {"a": 1}})
    for number in (1, 2, 99, "1", None, 10**30, 1.5, True, [1]):
        stage.agent.say({"id": number, "result": {"sessionId": "stolen", "stopReason": "end_turn"}})
    stage.agent.text("alive")
    await stage.sink.until("MessageChunk")
    request = await stage.prompt()
    assert request["params"]["sessionId"] == "s1"
    assert stage.sink.of("turn_ended") == []


async def test_that_the_agent_could_not_read_us_is_said(stage: Stage) -> None:
    stage.agent.say({"id": None, "error": {"code": -32700, "message": "Parse error"}})
    notice = await stage.sink.until("Notice")
    assert notice["text"] == "The agent could not read a message: Parse error"


async def test_a_last_line_without_an_end_counts(stage: Stage) -> None:
    stage.agent.bytes(chunk("last words").rstrip(b"\n"))
    stage.agent.end()
    await stage.sink.until("closed")
    assert stage.sink.texts() == "last words"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(st.lists(st.dictionaries(st.text(), JSON, min_size=1), max_size=8), st.data())
def test_lines_survive_any_way_of_cutting_them(messages: list[dict[str, Any]], data: st.DataObject) -> None:
    stream = b"".join(encode(message) for message in messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    lines = Lines(len(stream) + 1)
    found: list[bytes | Skipped] = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += lines.feed(stream[begin:end])
    assert [parse(line) for line in found if isinstance(line, bytes)] == messages


@given(st.binary(max_size=200), st.integers(1, 20))
def test_any_bytes_give_lines_within_the_bound(stream: bytes, limit: int) -> None:
    lines = Lines(limit)
    for found in [*lines.feed(stream), *lines.end()]:
        if isinstance(found, bytes):
            assert len(found) <= limit
            parse(found)


def test_bad_lines_are_told_again_after_a_while() -> None:
    bad = BadLines()
    assert bad.note(b"one", 0.0) is not None
    assert bad.note(b"two", 0.1) is None
    assert bad.rest(0.2) is None
    assert bad.rest(5.0) == "1 more lines of the agent were no protocol messages."
    assert bad.rest(5.1) is None

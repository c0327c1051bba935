"""What waits for one client: merged, replaced, bounded."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kandev.core.records import Notification, StreamKind
from kandev.gateway.outbox import News, Outbox

AT = "2026-01-31T09:15:00.123Z"


def news(seq: int, action: str, stream: StreamKind = "session", id: str = "s1", **payload: Any) -> News:
    return News(Notification(stream, id, seq, action, payload, AT))


def text(seq: int, offset: int, append: str, message: str = "m1") -> News:
    return news(seq, "session.message.updated", message_id=message, offset=offset, append=append)


async def drained(outbox: Outbox, count: int) -> list[dict[str, Any]]:
    """The payloads of `count` frames, each with its action; and nothing is left."""
    frames = [msgspec.json.decode((await outbox.next()).encoded()) for _ in range(count)]
    assert outbox._waiting == {}
    assert (outbox._new, outbox._bytes, outbox._by_key, outbox._last) == (0, 0, {}, {})
    return [{"action": f["action"], **f["payload"]} for f in frames]


@pytest.fixture
def outbox() -> Outbox:
    return Outbox(10, 10_000)


@pytest.mark.proves("DOOR-slow-client")
async def test_growing_text_that_waits_is_put_together(outbox: Outbox) -> None:
    for seq, (offset, piece) in enumerate([(0, "ab"), (2, "cdé"), (5, "f")], start=7):
        outbox.tell(text(seq, offset, piece))
    [frame] = await drained(outbox, 1)
    assert (frame["offset"], frame["append"], frame["seq"]) == (0, "abcdéf", 9)


async def test_text_of_another_message_or_behind_something_else_is_not_put_together(outbox: Outbox) -> None:
    outbox.tell(text(1, 0, "ab"))
    outbox.tell(text(2, 0, "xy", message="m2"))
    outbox.tell(text(3, 2, "cd"))
    outbox.tell(news(4, "session.state_changed", old_state="RUNNING", new_state="WAITING_FOR_INPUT"))
    outbox.tell(text(5, 4, "ef"))
    outbox.tell(text(6, 9, "a gap"))
    found = await drained(outbox, 6)
    assert [f["seq"] for f in found] == [1, 2, 3, 4, 5, 6]


async def test_an_update_that_a_newer_one_replaces_is_dropped(outbox: Outbox) -> None:
    outbox.tell(news(1, "session.updated", session={"n": 1}, session_id="s1"))
    outbox.tell(news(2, "session.state_changed", old_state="A", new_state="B"))
    outbox.tell(news(3, "session.updated", session={"n": 2}, session_id="s1"))
    outbox.tell(news(4, "session.updated", session={"n": 9}, session_id="s2"))
    found = await drained(outbox, 3)
    assert [(f["action"], f["seq"]) for f in found] == [
        ("session.state_changed", 2),
        ("session.updated", 3),
        ("session.updated", 4),
    ]


async def test_a_whole_message_replaces_the_text_that_waits_for_it(outbox: Outbox) -> None:
    outbox.tell(text(1, 0, "ab"))
    outbox.tell(news(2, "session.state_changed", old_state="A", new_state="B"))
    outbox.tell(text(3, 2, "cd"))
    outbox.tell(news(4, "session.message.updated", message_id="m1", message={"content": "whole"}))
    found = await drained(outbox, 2)
    assert [f["seq"] for f in found] == [2, 4]


async def test_changes_of_state_are_all_told(outbox: Outbox) -> None:
    for seq in range(1, 6):
        outbox.tell(news(seq, "session.state_changed", old_state="A", new_state="B"))
    assert [f["seq"] for f in await drained(outbox, 5)] == [1, 2, 3, 4, 5]


@pytest.mark.proves("DOOR-slow-client")
async def test_too_far_behind_one_order_to_reload_per_stream_stands_for_all() -> None:
    reloads: list[int] = []
    outbox = Outbox(3, 10_000, lambda: reloads.append(1))
    outbox.answer(b'{"action":"answer","payload":{}}', lambda: None)
    for seq in range(1, 4):
        outbox.tell(news(seq, "session.state_changed"))
    outbox.tell(news(8, "task.created", "workspace", "w1", task={"id": "t"}))
    outbox.tell(news(9, "task.created", "workspace", "w1", task={"id": "u"}))
    found = await drained(outbox, 4)
    assert [f["action"] for f in found] == ["answer", "session.reload", "workspace.reload", "task.created"]
    assert found[1] == {"action": "session.reload", "reload": True, "session_id": "s1", "seq": 3}
    assert found[2] == {"action": "workspace.reload", "reload": True, "workspace_id": "w1", "seq": 8}
    assert reloads == [1]


@pytest.mark.proves("DOOR-slow-client")
async def test_large_updates_are_bounded_by_their_size() -> None:
    outbox = Outbox(1000, 2_000)
    for seq in range(1, 100):
        outbox.tell(text(seq, seq * 100, "x" * 90))
    size = sum(w.size for w in outbox._waiting.values())
    assert size <= 2_000
    outbox.close()


async def test_closing_gives_back_what_answers_hold(outbox: Outbox) -> None:
    given_back: list[str] = []
    outbox.answer(b"{}", lambda: given_back.append("a"))
    outbox.tell(news(1, "session.state_changed"))
    outbox.close()
    assert given_back == ["a"]
    await drained(outbox, 0)

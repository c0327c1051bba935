"""A database that was put back by hand while agentctl knows no later epoch and no later execution."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.kandev import CallFailed, Kandev
from tests.e2e.program import run
from tests.e2e.scenes import add, get, said, turns_over


def _put_back(kandev: Kandev, copy: Path) -> None:
    """As the page on the database says."""
    for suffix in ("-wal", "-shm"):
        (kandev.home / f"kandev.db{suffix}").unlink(missing_ok=True)
    (kandev.home / "kandev.db").write_bytes(copy.read_bytes())


async def _backup(kandev: Kandev) -> Path:
    ran = await run(kandev, "db", "backup")
    assert ran.code == 0, ran
    return Path(ran.out.strip())


@pytest.mark.parametrize("end", ["stop", "kill"])
async def test_a_copy_put_back_by_hand_sends_nothing_again_also_when_nothing_was_started_since(
    kandev: Kandev, end: str
) -> None:
    task_id, session_id = await kandev.session("ask Go on?")
    async with kandev.watching(session_id) as events:
        asked = await events.until("session.permission_requested")
        waiting = await add(kandev, task_id, session_id, "say queued")
        copy = await _backup(kandev)
        option = "allow_once"
        answer = {"session_id": session_id, "request_id": asked["request_id"], "option_id": option}
        await kandev.call("permission.respond", answer)
        await turns_over(events, 2)
    assert (await said(kandev, session_id))[-1] == "queued"
    await (kandev.stop() if end == "stop" else kandev.kill())
    _put_back(kandev, copy)
    await kandev.start()
    session = await get(kandev, session_id)
    assert "restored from a copy" in session.get("parked_reason", ""), session
    async with kandev.watching(session_id) as events:
        await add(kandev, task_id, session_id, "say new")
        await events.until("session.message.added", lambda p: p["message"]["content"] == "queued")
    words = await said(kandev, session_id)
    assert words.index("new") < words.index("queued"), "a person's message comes first"
    assert (await kandev.call("message.status", {"entry_id": waiting["entry_id"]}))["state"] == "delivered"


async def test_a_client_is_told_to_reload_when_a_copy_was_put_back_and_the_stream_goes_on_as_far(
    kandev: Kandev,
) -> None:
    task_id, session_id = await kandev.session("say one")
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    copy = await _backup(kandev)
    async with kandev.watching(session_id) as events:
        await add(kandev, task_id, session_id, "say two")
        await turns_over(events, 2)
        heard = max(frame["payload"]["seq"] for frame in events.seen)
    await kandev.stop()
    _put_back(kandev, copy)
    await kandev.start()
    with suppress(CallFailed):
        await add(kandev, task_id, session_id, "say three")
    async with kandev.watching(session_id) as events:
        await add(kandev, task_id, session_id, "\n".join(f"say {number}" for number in range(30)))
        await events.until("session.message.added", lambda p: p["message"]["content"].endswith("29"))
    async with kandev.events() as events:
        answer = await events.request("session.subscribe", {"session_id": session_id, "since_seq": heard})
    assert answer["payload"]["reload"] is True, (heard, answer["payload"]["seq"])

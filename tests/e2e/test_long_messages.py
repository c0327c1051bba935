"""A message of megabytes that comes in pieces is one message, whatever happens meanwhile."""

import sys
from pathlib import Path

import pytest

from tests.e2e.kandev import Events, Kandev
from tests.e2e.scenes import profile, said, turns_over
from tests.fakes import talkative_agent
from tests.fakes.talkative_agent import whole

COUNT, SIZE = 600, 4000


async def talkative(kandev: Kandev) -> str:
    """The profile of an agent that says a lot."""
    return await profile(kandev, [sys.executable, str(Path(talkative_agent.__file__))])


def followed(events: Events) -> list[str]:
    """The agent's texts as they add up from the notifications."""
    texts: dict[str, str] = {}
    for frame in events.seen:
        payload = frame["payload"]
        if frame["action"] == "session.message.added" and payload["message"]["author_type"] == "agent":
            texts[payload["message"]["id"]] = payload["message"]["content"]
        elif frame["action"] == "session.message.updated" and "append" in payload:
            assert payload["offset"] == len(texts[payload["message_id"]])
            texts[payload["message_id"]] += payload["append"]
    return list(texts.values())


@pytest.mark.proves("SURVIVE-backend-kill", "DOOR-growing-message")
async def test_a_long_message_is_whole_though_the_backend_is_killed_in_its_middle(
    kandev: Kandev, tmp_path: Path
) -> None:
    agent = await talkative(kandev)
    _, session_id = await kandev.session(f"grow {COUNT} {SIZE} {tmp_path}", agent_profile_id=agent)
    async with kandev.watching(session_id) as events:
        await events.until("session.message.updated")
    await kandev.kill()
    (tmp_path / "go").touch()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        half = COUNT * SIZE // 2
        await events.until("session.message.updated", lambda p: p.get("offset", 0) > half)
    await kandev.kill()
    await kandev.start()
    async with kandev.watching(session_id) as events:
        assert (await turns_over(events))["cause"] == "agent"
        await events.state("WAITING_FOR_INPUT")
    text = whole(COUNT, SIZE)
    assert await said(kandev, session_id) == [text]
    assert followed(events) == [text], "who follows the notifications has the same text"

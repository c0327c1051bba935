"""How the lines of a script meet a cancel: at once, late, never, and with a lie."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.mock_agent.driver import Peer, PeerError


@pytest.mark.proves("MOCK-sleep")
async def test_sleep_waits(peer: Peer, session: str) -> None:
    began = time.monotonic()
    assert await peer.prompt(session, "sleep 0.2\nsay awake").end() == {"stopReason": "end_turn"}
    assert time.monotonic() - began >= 0.2
    assert peer.messages(session) == ["awake"]


@pytest.mark.proves("MOCK-sleep")
async def test_sleep_ends_at_once_on_cancel_and_so_does_the_script(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "sleep 60\nsay never")
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}
    assert peer.updates(session) == []


async def test_the_agent_takes_the_next_prompt_after_a_cancel(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "sleep 60")
    peer.cancel(session)
    await turn.end()
    assert await peer.prompt(session, "say next").end() == {"stopReason": "end_turn"}
    assert peer.messages(session) == ["next"]


async def test_a_cancel_without_a_turn_changes_nothing(peer: Peer, session: str) -> None:
    peer.cancel(session)
    peer.cancel("nobody")
    assert await peer.prompt(session, "say here").end() == {"stopReason": "end_turn"}


@pytest.mark.proves("MOCK-deaf")
async def test_deaf_ignores_a_cancel_and_the_script_goes_on(peer: Peer, session: str) -> None:
    began = time.monotonic()
    turn = peer.prompt(session, "deaf 0.3\nsay what")
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "end_turn"}
    assert time.monotonic() - began >= 0.3
    assert peer.messages(session) == ["what"]


@pytest.mark.proves("MOCK-deaf")
async def test_a_cancel_after_the_deaf_time_is_obeyed(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "deaf 0.1\nsay listening\nsleep 60")
    peer.cancel(session)
    await peer.until_said(session, "listening")
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}


@pytest.mark.proves("MOCK-late")
async def test_late_obeys_a_cancel_only_after_its_time(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "late 0.3\nsay never")
    await peer.round_trip(session)
    began = time.monotonic()
    peer.cancel(session)
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}
    assert time.monotonic() - began >= 0.3
    assert peer.updates(session) == []


@pytest.mark.proves("MOCK-lie")
async def test_lie_answers_end_turn_on_cancel(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "lie 60\nsay never")
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "end_turn"}
    assert peer.updates(session) == []


@pytest.mark.proves("MOCK-lie")
async def test_lie_without_a_cancel_goes_on(peer: Peer, session: str) -> None:
    assert await peer.prompt(session, "lie 0.01\nsay on").end() == {"stopReason": "end_turn"}
    assert peer.messages(session) == ["on"]


@pytest.mark.proves("MOCK-lose")
async def test_lose_does_not_see_the_first_cancels(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "lose 2\nsleep 60")
    peer.cancel(session)
    peer.cancel(session)
    await peer.round_trip(session)
    assert not turn.ended
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}


@pytest.mark.proves("MOCK-silent")
async def test_silent_never_answers_the_prompt_and_sends_nothing(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "silent")
    peer.cancel(session)
    await peer.round_trip(session)
    with pytest.raises(PeerError):
        await peer.prompt(session, "say no").end()
    assert not turn.ended
    assert peer.updates(session) == []


async def test_a_second_prompt_in_a_running_turn_is_refused(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "sleep 60")
    with pytest.raises(PeerError) as refused:
        await peer.prompt(session, "say second").end()
    assert refused.value.error == {"code": -32603, "message": "a turn is already running"}
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}


async def test_sessions_run_and_are_cancelled_apart(peer: Peer, session: str, work: Path) -> None:
    other = await peer.new(work)
    first, second = peer.prompt(session, "sleep 60"), peer.prompt(other, "sleep 60")
    peer.cancel(other)
    assert await second.end() == {"stopReason": "cancelled"}
    assert not first.ended
    peer.cancel(session)
    assert await first.end() == {"stopReason": "cancelled"}

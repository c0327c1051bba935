"""Tool calls, child processes and permission requests of the mock agent."""

from __future__ import annotations

import os
import time

import pytest

from tests.mock_agent.driver import Json, Peer, end_process


@pytest.mark.proves("MOCK-tool")
async def test_a_tool_call_runs_for_its_time_and_completes(peer: Peer, session: str) -> None:
    began = time.monotonic()
    await peer.prompt(session, "tool read the file 0.2").end()
    assert time.monotonic() - began >= 0.2
    start, running, done = peer.updates(session)
    assert (start["sessionUpdate"], start["title"], start["status"]) == (
        "tool_call",
        "read the file",
        "pending",
    )
    assert [update["status"] for update in (running, done)] == ["in_progress", "completed"]
    assert {update["toolCallId"] for update in (running, done)} == {start["toolCallId"]}


@pytest.mark.proves("MOCK-tool")
async def test_a_cancelled_tool_call_fails(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "tool build 60")
    await peer.until(lambda: len(peer.updates(session)) == 2)
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}
    assert peer.updates(session)[-1]["status"] == "failed"


@pytest.mark.proves("MOCK-spawn")
async def test_spawn_starts_a_child_in_its_own_session_that_outlives_the_turn(
    peer: Peer, session: str
) -> None:
    await peer.prompt(session, "spawn 60").end()
    (said,) = peer.messages(session)
    word, number = said.split(" ")
    pid = int(number)
    try:
        assert word == "pid"
        assert os.getsid(pid) == pid
        assert os.getsid(peer.process.pid) != pid
        peer.process.terminate()
        assert await peer.exit_code() == 143
        os.kill(pid, 0)
    finally:
        end_process(pid)


@pytest.mark.proves("MOCK-spawn")
async def test_a_child_that_has_ended_leaves_no_zombie(peer: Peer, session: str) -> None:
    await peer.prompt(session, "spawn 0").end()
    pid = int(peer.messages(session)[0].split(" ")[1])
    for _ in range(200):
        await peer.round_trip(session)
        if not _exists(pid):
            return
    pytest.fail(f"the child {pid} has not been reaped")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.proves("MOCK-ask")
@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ({"outcome": "selected", "optionId": "allow_once"}, "outcome: selected allow_once"),
        ({"outcome": "cancelled"}, "outcome: cancelled"),
    ],
)
async def test_ask_requests_permission_and_says_the_outcome(
    peer: Peer, session: str, outcome: Json, said: str
) -> None:
    peer.answer = lambda request: {"outcome": outcome}
    assert await peer.prompt(session, "ask remove it all\nsay on").end() == {"stopReason": "end_turn"}
    assert peer.messages(session) == [said, "on"]
    (request,) = peer.asked
    assert request["method"] == "session/request_permission"
    assert request["params"]["toolCall"]["title"] == "remove it all"
    kinds = [option["kind"] for option in request["params"]["options"]]
    assert kinds == ["allow_always", "allow_once", "reject_once"]


@pytest.mark.proves("MOCK-ask")
async def test_a_cancelled_ask_says_the_clients_answer_and_ends(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "ask may I\nsay never")
    await peer.until(lambda: peer.asked)
    peer.cancel(session)
    await peer.round_trip(session)
    answer = {"outcome": {"outcome": "cancelled"}}
    peer.send({"jsonrpc": "2.0", "id": peer.asked[0]["id"], "result": answer})
    assert await turn.end() == {"stopReason": "cancelled"}
    assert peer.messages(session) == ["outcome: cancelled"]


@pytest.mark.proves("MOCK-ask")
async def test_a_cancelled_ask_does_not_wait_for_a_client_that_never_answers(
    peer: Peer, session: str
) -> None:
    turn = peer.prompt(session, "ask may I")
    await peer.until(lambda: peer.asked)
    peer.cancel(session)
    assert await turn.end() == {"stopReason": "cancelled"}
    assert peer.messages(session) == ["outcome: none"]


@pytest.mark.proves("MOCK-ask")
async def test_an_error_answer_to_an_ask_is_said(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "ask may I")
    await peer.until(lambda: peer.asked)
    error = {"code": -32601, "message": "no"}
    peer.send({"jsonrpc": "2.0", "id": peer.asked[0]["id"], "error": error})
    assert await turn.end() == {"stopReason": "end_turn"}
    assert peer.messages(session) == ["outcome: error -32601 no"]

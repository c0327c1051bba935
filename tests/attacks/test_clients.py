"""Hostile clients of a whole Kandev: memory, its end, and who works beside them."""

import asyncio
import json
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.attacks.scenes import hostile, memory
from tests.e2e.kandev import DEADLINE_S, Kandev
from tests.e2e.scenes import add, agent_spoke, get, turns_over

HEAD = "POST /api/v1/actions/task.list HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
ENDED_S = 15.0
"""In which a backend ends, whoever hangs on it."""


@contextmanager
def connection(kandev: Kandev, *said: str) -> Iterator[socket.socket]:
    """Bytes of a request, and nothing behind them."""
    host, port = kandev.url.removeprefix("http://").split(":")
    with closing(socket.create_connection((host, int(port)))) as opened:
        for words in said:
            opened.sendall(words.encode())
        yield opened


def errors(kandev: Kandev) -> str:
    """What the backend wrote to its stderr."""
    return (kandev.home / "backend.err").read_text()


@pytest.mark.proves("SURVIVE-hostile-client-requests", "CLI-sigterm")
async def test_the_backend_ends_beside_requests_that_never_come_and_answers_that_never_are_there(
    kandev: Kandev,
) -> None:
    kandev.environment["KANDEV_CANCEL_ACKNOWLEDGE_S"] = "60"
    await kandev.stop()
    await kandev.start()
    _, session_id = await kandev.session("say hello\ndeaf 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
    with ExitStack() as open_ones:
        for said in (
            HEAD[:20],
            f"{HEAD}Content-Length: 100\r\n\r\n{{",
            f"{HEAD}Transfer-Encoding: chunked\r\n\r\n",
        ):
            open_ones.enter_context(connection(kandev, said))
        waiting = asyncio.create_task(kandev.post("agent.cancel", {"session_id": session_id}))
        while not (await get(kandev, session_id))["cancellation_pending"]:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(ENDED_S):
            assert await kandev.stop(signal.SIGTERM) == 0
        answer = await waiting
    assert answer.status_code == 500 and "look what became of it" in answer.json()["message"]
    assert answer.json()["details"]["error_id"] in errors(kandev)
    assert "Traceback" not in errors(kandev) and "Exception" not in errors(kandev)


@pytest.mark.proves("SURVIVE-slow-client")
async def test_the_backend_ends_beside_a_client_that_takes_nothing(kandev: Kandev) -> None:
    task_id, session_id = await kandev.session("say hello", agent_profile_id=await hostile(kandev))
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    await add(kandev, task_id, session_id, "long 12000000")
    async with kandev.watching(session_id) as events:
        await turns_over(events, 2)
    async with connect(kandev.url.replace("http", "ws", 1) + "/ws", proxy=None) as deaf:
        deaf.transport.pause_reading()
        ask = {
            "id": "1",
            "type": "request",
            "action": "session.subscribe",
            "payload": {"session_id": session_id},
        }
        await deaf.send(json.dumps(ask))
        await get(kandev, session_id)
        async with asyncio.timeout(ENDED_S):
            assert await kandev.stop(signal.SIGTERM) == 0
        deaf.transport.abort()
    assert "Traceback" not in errors(kandev) and "Cancel" not in errors(kandev)


@pytest.mark.proves("SURVIVE-slow-client")
async def test_a_client_that_takes_nothing_slows_neither_the_agent_nor_who_listens_beside_it(
    kandev: Kandev,
) -> None:
    count, size = 4000, 5000
    task_id, session_id = await kandev.session("say hello", agent_profile_id=await hostile(kandev))
    async with kandev.watching(session_id) as events:
        await turns_over(events)
    assert kandev.process is not None
    async with connect(kandev.url.replace("http", "ws", 1) + "/ws", proxy=None) as deaf:
        ask = {
            "id": "1",
            "type": "request",
            "action": "session.subscribe",
            "payload": {"session_id": session_id},
        }
        await deaf.send(json.dumps(ask))
        await deaf.recv()
        deaf.transport.pause_reading()
        before = memory(kandev.process.pid)
        async with kandev.watching(session_id) as events:
            await add(kandev, task_id, session_id, f"many {count} {size}")
            await turns_over(events, 2)
            heard = {
                e["payload"]["message"]["id"] for e in events.seen if e["action"] == "session.message.added"
            }
        grown = memory(kandev.process.pid) - before
        deaf.transport.abort()
    assert len(heard) >= count, "all of it, while the other one took nothing"
    assert grown < 150 << 20, f"{grown >> 20} MiB"


@pytest.mark.proves("SURVIVE-hostile-client-requests")
async def test_many_bodies_of_32_mebibytes_at_once_cost_little_memory(kandev: Kandev) -> None:
    assert kandev.process is not None
    before = memory(kandev.process.pid)
    body, headers = b" " * (32 << 20), {"Content-Type": "application/json"}
    url = f"{kandev.url}/api/v1/actions/task.list"
    async with httpx.AsyncClient(timeout=DEADLINE_S, trust_env=False) as client:
        answers = await asyncio.gather(*(client.post(url, content=body, headers=headers) for _ in range(10)))
    assert {answer.status_code for answer in answers} == {400}
    grown = memory(kandev.process.pid) - before
    assert grown < 60 << 20, f"{grown >> 20} MiB"


@pytest.mark.proves("SURVIVE-hostile-client-log")
async def test_a_thousand_senseless_connections_are_a_few_lines_in_the_log(kandev: Kandev) -> None:
    for said in (
        "NONSENSE\r\n\r\n",
        "GET /ws HTTP/1.1\r\nHost: evil.test\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    ):
        for _ in range(500):
            with connection(kandev, said) as opened:
                opened.settimeout(DEADLINE_S)
                assert await asyncio.to_thread(opened.recv, 100)
    assert len(errors(kandev).splitlines()) < 10

"""What a connection may cost: requests that do not come, clients that take nothing, endless frames."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.typing import Origin

from kandev.gateway import connections, http
from kandev.gateway.connections import Stall
from kandev.gateway.hub import Hub
from kandev.gateway.room import Room
from kandev.gateway.sparing import EVERY_S, MOST_KINDS, Sparing
from kandev.usecases import workspaces
from tests.gateway.house import WAIT_S, House, dial, open_house, serving

HEAD = "POST /api/v1/actions/workspace.list HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
ASK = f"{HEAD}Content-Length: 2\r\n\r\n{{}}"


@contextlib.asynccontextmanager
async def raw(address: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection whose bytes the test says itself."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def everything(reader: asyncio.StreamReader) -> str:
    """What the server says until it ends the connection."""
    async with asyncio.timeout(WAIT_S):
        return (await reader.read()).decode()


@pytest.fixture
def remarks(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], list[str]]]:
    """What was written to the log, as far as an operator sees it."""
    # A server that ran in this process before may have been told to be quieter, or to spare its words.
    caplog.set_level(logging.WARNING, "uvicorn.error")
    monkeypatch.setattr(logging.getLogger("uvicorn.error"), "filters", [])
    yield lambda: [record.getMessage() for record in caplog.records]


# -- heads ------------------------------------------------------------------------------------------


@pytest.mark.proves("SURVIVE-hostile-client-requests")
async def test_a_head_that_does_not_arrive_is_refused_and_its_connection_ends(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.2)
    async with raw(address) as (reader, writer):
        writer.write(HEAD.encode())
        said = await everything(reader)
    assert said.startswith("HTTP/1.1 400 ") and "BAD_REQUEST" in said and "did not arrive" in said


async def test_a_connection_that_says_nothing_ends(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.2)
    async with raw(address) as (reader, _):
        assert await everything(reader) == ""


@pytest.mark.proves("SURVIVE-hostile-client-requests")
async def test_the_second_head_of_a_connection_has_a_deadline_too(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.2)
    async with raw(address) as (reader, writer):
        writer.write(ASK.encode())
        await reader.readuntil(b'"workspaces":[]}')
        writer.write(b"POST /")
        assert "did not arrive" in await everything(reader)


async def test_a_request_that_takes_its_time_is_not_cut_off_by_the_deadline_of_its_head(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_S", 0.1)
    look = workspaces.list_workspaces

    async def slow(ctx: Any) -> Any:
        await asyncio.sleep(0.4)
        return await look(ctx)

    monkeypatch.setattr(workspaces, "list_workspaces", slow)
    async with raw(address) as (reader, writer):
        writer.write(ASK.encode())
        async with asyncio.timeout(WAIT_S):
            await reader.readuntil(b'"workspaces":[]}')


@pytest.mark.parametrize(
    "said", [b"NONSENSE\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * 50_000 + b"\r\n\r\n"]
)
async def test_what_is_no_request_is_answered_with_an_error_object(address: str, said: bytes) -> None:
    async with raw(address) as (reader, writer):
        writer.write(said)
        answer = await everything(reader)
    assert answer.startswith("HTTP/1.1 400 ") and '"code":"BAD_REQUEST"' in answer


# -- bodies -----------------------------------------------------------------------------------------


@pytest.mark.proves("SURVIVE-hostile-client-requests")
async def test_a_body_of_32_mebibytes_is_refused_by_its_head(address: str) -> None:
    async with raw(address) as (reader, writer):
        writer.write(f"{HEAD}Content-Length: {32 << 20}\r\nExpect: 100-continue\r\n\r\n".encode())
        said = await everything(reader)
    assert said.startswith("HTTP/1.1 400 ") and "The body is too large; 8192 KiB are the limit." in said


@pytest.mark.proves("SURVIVE-hostile-client-requests")
@pytest.mark.parametrize("chunked", [False, True])
async def test_who_sends_32_mebibytes_hears_why_they_are_refused(address: str, chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(32):
            yield b" " * (1 << 20)

    content: Any = pieces() if chunked else b" " * (32 << 20)
    headers = {"Content-Type": "application/json"}
    async with httpx.AsyncClient(timeout=WAIT_S, trust_env=False) as client:
        url = f"http://{address}/api/v1/actions/workspace.list"
        answer = await client.post(url, content=content, headers=headers)
        assert answer.status_code == 400 and "8192 KiB are the limit" in answer.json()["message"]


@pytest.mark.proves("SURVIVE-hostile-client-requests")
async def test_who_goes_on_sending_after_the_refusal_is_cut_off(address: str) -> None:
    async with raw(address) as (_, writer):
        writer.write(f"{HEAD}Content-Length: {1 << 40}\r\n\r\n".encode())
        sent = 0
        with pytest.raises(ConnectionError):
            async with asyncio.timeout(WAIT_S):
                while True:
                    writer.write(b" " * 65536)
                    await writer.drain()
                    sent += 65536
    assert sent < 2 * connections.LINGER_BYTES, "a little is thrown away, and the system's buffers hold some"


@pytest.mark.proves("SURVIVE-hostile-client-requests")
async def test_a_body_that_does_not_arrive_is_refused_and_its_connection_ends(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "BODY_S", 0.2)
    async with raw(address) as (reader, writer):
        writer.write(f"{HEAD}Content-Length: 100\r\n\r\n{{".encode())
        assert "The body did not arrive" in await everything(reader)


async def test_a_body_that_breaks_off_in_mid_chunk_leaves_no_trace_in_the_log(
    address: str, remarks: Callable[[], list[str]]
) -> None:
    async with raw(address) as (reader, writer):
        writer.write(f"{HEAD}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n".encode())
        assert (await everything(reader)).startswith("HTTP/1.1 400 ")
    assert remarks() == ["Invalid HTTP request received."]


# -- answers ----------------------------------------------------------------------------------------


class Pipe:
    """A transport with so much in its buffer, and a loop whose time the test moves."""

    def __init__(self) -> None:
        self.waits, self.aborted = 0, False
        self.timers: list[Callable[[], None]] = []

    def get_write_buffer_size(self) -> int:
        return self.waits

    def abort(self) -> None:
        self.aborted = True

    def call_later(self, seconds: float, call: Callable[[], None]) -> Pipe:
        self.timers.append(call)
        return self

    def cancel(self) -> None:
        self.timers.clear()

    def time_passes(self) -> None:
        due, self.timers = self.timers, []
        for call in due:
            call()


@pytest.mark.proves("SURVIVE-slow-client")
def test_who_takes_nothing_is_given_up_and_who_takes_little_is_not() -> None:
    pipe = Pipe()
    stall = Stall(pipe, pipe)  # type: ignore[arg-type]
    pipe.waits = 1000
    stall.watch()
    for left in (900, 899, 1):
        pipe.waits = left
        pipe.time_passes()
    assert not pipe.aborted
    pipe.time_passes()
    assert pipe.aborted


def test_who_took_all_is_not_watched_any_more() -> None:
    pipe = Pipe()
    stall = Stall(pipe, pipe)  # type: ignore[arg-type]
    pipe.waits = 1000
    stall.watch()
    stall.rest()
    assert pipe.timers == []
    stall.watch()
    pipe.waits = 0
    pipe.time_passes()
    assert pipe.timers == [] and not pipe.aborted


@pytest.mark.proves("SURVIVE-slow-client")
async def test_an_answer_that_nobody_takes_is_given_up(
    house: House, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "TAKE_S", 0.2)
    await large_board(house)
    async with raw(address) as (_, writer):
        writer.write(ASK.replace("workspace.list", "task.list").encode())
        await house.ok("health.check")
        async with asyncio.timeout(WAIT_S):
            with pytest.raises(ConnectionError):
                while True:  # nothing is read; that the other side is gone shows when something is sent
                    writer.write(b"\r\n")
                    await asyncio.sleep(0.01)
                    await writer.drain()


@pytest.mark.proves("SURVIVE-slow-client")
async def test_a_client_that_reads_nothing_costs_one_large_answer_and_is_given_up(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = Hub()
    async with open_house(tmp_path, hub=hub) as house, serving(house.app) as address:
        workspace = await large_board(house)
        async with dial(address, compression=None) as deaf, dial(address) as quick:
            deaf.connection.transport.pause_reading()
            for _ in range(50):
                await deaf.request("workspace.subscribe", {"workspace_id": workspace})
                await deaf.request("task.list", {"workspace_id": workspace})
            most = 0
            for _ in range(20):
                await quick.ok("task.list", workspace_id=workspace)
                most = max(most, hub.waits)
            assert LARGE // 2 < most < 2 * LARGE
            monkeypatch.setattr(connections, "TAKE_S", 0.2)
            await deaf.request("health.check")
            deaf.connection.transport.resume_reading()  # it takes some of it, and then nothing again
            await deaf.frame()
            deaf.connection.transport.pause_reading()
            async with asyncio.timeout(WAIT_S):
                while len(hub._clients) > 1:
                    await quick.ok("health.check")
            assert hub.waits < LARGE // 10


LARGE = 40 * 200_000


async def large_board(house: House) -> str:
    """A workspace whose tasks are `LARGE` bytes."""
    workspace, workflow = await house.board()
    for number in range(40):
        await house.ok(
            "task.create",
            workspace_id=workspace,
            workflow_id=workflow,
            title=str(number),
            description="x" * 200_000,
        )
    return workspace


# -- frames -----------------------------------------------------------------------------------------


@pytest.mark.proves("SURVIVE-hostile-client-frames")
@pytest.mark.parametrize("pieces", [1, 64])
async def test_a_message_of_32_mebibytes_ends_the_connection_with_the_reason(
    address: str, pieces: int
) -> None:
    piece = "x" * ((32 << 20) // pieces)
    async with connect(f"ws://{address}/ws", compression=None, proxy=None) as client:
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(WAIT_S):
                await client.send(piece if pieces == 1 else [piece] * pieces)
                await client.recv()
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


@pytest.mark.proves("SURVIVE-hostile-client-frames")
async def test_a_message_in_endless_pieces_ends_the_connection(address: str) -> None:
    async with connect(f"ws://{address}/ws", compression=None, proxy=None) as client:
        with pytest.raises(ConnectionClosed) as closed:
            async with asyncio.timeout(WAIT_S):
                await client.send(["x"] * 100_000)
                await client.recv()
    assert closed.value.rcvd is not None and "fragments" in closed.value.rcvd.reason


@pytest.mark.proves("SURVIVE-hostile-client-frames")
async def test_pings_of_a_client_that_takes_nothing_are_not_answered_without_end(
    house: House, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    pong = connections.BoundedWebSocket.handle_ping

    def watched(self: connections.BoundedWebSocket) -> None:
        pong(self)
        sizes.append(self.transport.get_write_buffer_size())

    monkeypatch.setattr(connections.BoundedWebSocket, "handle_ping", watched)
    host, port = address.split(":")
    narrow = socket.socket()
    narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    narrow.connect((host, int(port)))
    async with connect(f"ws://{address}/ws", compression=None, sock=narrow) as client:
        client.transport.pause_reading()
        for number in range(100_000):
            await client.ping(f"{number:0125}")
        async with asyncio.timeout(WAIT_S):
            while len(sizes) < 100_000:
                await asyncio.sleep(0.01)
        client.transport.abort()
    # The pings of one read (asyncio's are 256 KiB) are answered together: so much may come on top.
    assert 0 < max(sizes) < 2 * connections.PONGS_BYTES + (256 << 10)


async def test_requests_whose_content_is_large_wait_for_those_before_them() -> None:
    room, inside = Room(10, 100), list[int]()

    async def come(n: int, size: int) -> None:
        await room.enter(size)
        inside.append(n)

    coming = [asyncio.create_task(come(n, size)) for n, size in enumerate((60, 60, 1))]
    for _ in range(5):
        await asyncio.sleep(0)
    assert inside == [0, 1]
    room.leave(60)
    await asyncio.gather(*coming)
    assert inside == [0, 1, 2]


# -- the log ----------------------------------------------------------------------------------------


@pytest.mark.proves("SURVIVE-hostile-client-log")
async def test_a_refused_websocket_leaves_nothing_in_the_log(
    address: str, remarks: Callable[[], list[str]]
) -> None:
    for _ in range(3):
        with pytest.raises(InvalidStatus):
            async with connect(f"ws://{address}/ws", origin=Origin("http://foreign.test"), proxy=None):
                pass
    async with dial(address) as client:
        await client.ok("health.check")
    assert remarks() == []


@pytest.mark.proves("SURVIVE-hostile-client-log")
def test_of_remarks_about_clients_one_of_a_kind_is_written_in_a_while() -> None:
    now = 0.0
    sparing = Sparing(lambda: now)

    def written(text: str, level: int = logging.WARNING, *filled: object) -> str | None:
        record = logging.LogRecord("uvicorn.error", level, "", 0, text, filled, None)
        return record.getMessage() if sparing.filter(record) else None

    assert written("Invalid %s", logging.WARNING, "this") == "Invalid this"
    assert [written("Invalid %s", logging.WARNING, n) for n in range(1000)] == [None] * 1000
    assert written("Something else") == "Something else"
    assert [written("an error", logging.ERROR) for _ in range(3)] == ["an error"] * 3
    now = EVERY_S
    assert (
        written("Invalid %s", logging.WARNING, "that") == "Invalid that (1000 more of these in the last 60 s)"
    )
    for number in range(3 * MOST_KINDS):
        written(f"kind {number}")
    assert len(sparing._kinds) <= MOST_KINDS

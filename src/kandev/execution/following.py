"""The event stream of one execution, as reports in order; acknowledges what is committed.

Not here: what a frame means (`frames`), reconnecting (the caller asks again with the position it has
committed).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from urllib.parse import urlencode

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus

from kandev.core import inputs
from kandev.execution.client import Client, Said, refuse
from kandev.execution.frames import to_input
from kandev.ports.execution import UnknownExecution, Unreachable
from kandev.wire import agentctl as wire

FRAME_MAX_BYTES = 256 * 1024 * 1024
"""An agent's longest line (64 MiB), JSON escapes and all."""
ACKNOWLEDGE_EVERY_S = 0.05
"""How often the committed position is looked at while something waits for it and no frame comes: a commit
gives no signal of its own."""


async def follow(
    client: Client, execution: str, journal: str, after: int, committed: Callable[[], int], open_s: float
) -> AsyncIterator[inputs.Frame]:
    """See `ports.execution.Agents.follow`. `open_s` bounds the opening, in seconds."""
    try:
        connection = await open_stream(client, execution, {"after": after, "journal_id": journal}, open_s)
    except Said as said:
        raise Unreachable(f"agentctl refused the stream of {execution!r}: {said}") from said
    acknowledged = given = after
    try:
        while True:
            if (position := committed()) > acknowledged:
                acknowledged = position
                await connection.send(msgspec.json.encode(wire.Acknowledge(seq=position)), text=True)
            # A stream that owes no acknowledgement has nothing to wake up for: there are hundreds of them.
            line = await _next(connection, ACKNOWLEDGE_EVERY_S if acknowledged < given else None)
            if line is None:
                continue
            frame = _read(line)
            given = frame.seq
            if frame.journal_id != journal:
                raise UnknownExecution(f"The journal of {execution!r} is another one now.")
            yield to_input(frame, len(line))
            if isinstance(frame, wire.ProcessExited):
                await _acknowledge_last(connection, committed)
                return
    except ConnectionClosed as closed:
        if closed.rcvd is not None and closed.rcvd.code == wire.STREAM_DROPPED:
            raise UnknownExecution(f"The execution {execution!r} was deleted.") from closed
        raise Unreachable(f"The stream of {execution!r} broke: {closed}") from closed
    finally:
        # A transport that is gone needs no handshake, and a consumer that goes away must not wait for one.
        connection.transport.abort()


async def open_stream(
    client: Client, execution: str, query: Mapping[str, object], open_s: float
) -> ClientConnection:
    """Raises Said, UnknownExecution, Unreachable."""
    path = f"/instances/{execution}/api/v1/acp/stream?{urlencode(query)}"
    address = client.url.replace("http", "ws", 1) + path
    try:
        return await connect(
            address,
            additional_headers=client.headers(),
            max_size=FRAME_MAX_BYTES,
            # Each can be that large; small ones come many at a time in any case.
            max_queue=1,
            open_timeout=open_s,
            proxy=None,
            # The other end is on this machine: compressing costs more than all the rest of a frame's way.
            compression=None,
        )
    except InvalidStatus as error:
        try:
            refuse(bytes(error.response.body or b""))
        except msgspec.DecodeError as said:
            raise Unreachable(f"agentctl refused the stream of {execution!r}: {said}") from error
        raise Unreachable(f"agentctl refused the stream of {execution!r}.") from error
    except (InvalidHandshake, OSError, TimeoutError, EOFError) as error:
        raise Unreachable(f"The stream of {execution!r} could not be opened: {error}") from error


async def _next(connection: ClientConnection, seconds: float | None) -> bytes | None:
    """None: none came in time to look at what is committed."""
    try:
        async with asyncio.timeout(seconds):
            return await connection.recv(decode=False)
    except TimeoutError:
        return None


def _read(line: bytes) -> wire.AnyFrame:
    try:
        return wire.read_frame(line)
    except msgspec.DecodeError as error:
        raise Unreachable(f"agentctl sent a frame that cannot be read: {error}.") from error


async def _acknowledge_last(connection: ClientConnection, committed: Callable[[], int]) -> None:
    await connection.send(msgspec.json.encode(wire.Acknowledge(seq=committed())), text=True)

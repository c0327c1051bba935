"""A client of the WebSocket door that notes when each frame came.

It reads as fast as it can: what is heard goes to one ear per session, synchronously. Not here: what is
measured.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

DEADLINE_S = 120.0

Payload = dict[str, Any]
Ear = Callable[[float, str, Payload], None]
"""Called with the time (`time.monotonic`), the action and the payload of a notification."""


class Refused(Exception):
    """An action was answered with an error."""


class Client:
    """One connection."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._names = itertools.count(1)
        self._answers: dict[str, asyncio.Future[tuple[float, Payload]]] = {}
        self._ears: dict[str, Ear] = {}
        self.kept: list[str] | None = None
        """The notifications' text, where somebody wants it."""

    async def read(self) -> None:
        """Until the connection ends."""
        try:
            async for text in self._socket:
                self._take(time.monotonic(), str(text))
        except ConnectionClosed:
            pass
        finally:
            for waiter in self._answers.values():
                if not waiter.done():
                    waiter.set_exception(Refused("the connection ended"))
                    waiter.exception()

    def _take(self, at: float, text: str) -> None:
        frame = msgspec.json.decode(text)
        if frame["type"] == "notification":
            if self.kept is not None:
                self.kept.append(text)
            ear = self._ears.get(frame["payload"].get("session_id", ""))
            if ear is not None:
                ear(at, frame["action"], frame["payload"])
            return
        waiter = self._answers.pop(frame["id"], None)
        if waiter is None or waiter.done():
            return
        if frame["type"] == "error":
            waiter.set_exception(Refused(f"{frame['action']}: {frame['payload']['message']}"))
        else:
            waiter.set_result((at, frame["payload"]))

    async def timed(self, action: str, **payload: Any) -> tuple[float, Payload]:
        """When the answer came, and what it says. Raises Refused."""
        name = str(next(self._names))
        waiter: asyncio.Future[tuple[float, Payload]] = asyncio.get_running_loop().create_future()
        self._answers[name] = waiter
        frame = {"id": name, "type": "request", "action": action, "payload": payload}
        await self._socket.send(msgspec.json.encode(frame).decode())
        async with asyncio.timeout(DEADLINE_S):
            return await waiter

    async def ask(self, action: str, **payload: Any) -> Payload:
        """The answer. Raises Refused."""
        return (await self.timed(action, **payload))[1]

    def hear(self, session_id: str, ear: Ear) -> None:
        """From now on `ear` hears what comes of the session."""
        self._ears[session_id] = ear

    async def follow(self, session_id: str, ear: Ear, since_seq: int | None = None) -> Payload:
        """Subscribe, and hear."""
        self.hear(session_id, ear)
        since = {} if since_seq is None else {"since_seq": since_seq}
        return await self.ask("session.subscribe", session_id=session_id, **since)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Client]:
    """A client, while the block runs."""
    address = url.replace("http", "ws", 1) + "/ws"
    async with connect(address, proxy=None, max_size=None, compression=None) as socket:
        client = Client(socket)
        reading = asyncio.create_task(client.read())
        try:
            yield client
        finally:
            await socket.close()
            reading.cancel()
            await asyncio.wait([reading])


@dataclass(frozen=True)
class Heard:
    """One notification."""

    at: float
    action: str
    payload: Payload


class Notes:
    """An ear that keeps what it heard, to be waited for."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self._news = asyncio.Event()

    def __call__(self, at: float, action: str, payload: Payload) -> None:
        self.heard.append(Heard(at, action, payload))
        self._news.set()

    def forget(self) -> None:
        """Only what comes from now on is of interest."""
        self.heard.clear()

    async def until(self, wanted: Callable[[Heard], bool]) -> Heard:
        """The first that is wanted, heard already or not."""
        seen = 0
        async with asyncio.timeout(DEADLINE_S):
            while True:
                for heard in self.heard[seen:]:
                    if wanted(heard):
                        return heard
                seen = len(self.heard)
                self._news.clear()
                await self._news.wait()

    async def output(self) -> Heard:
        """The agent's first words."""
        return await self.until(
            lambda heard: (
                heard.action == "session.message.added" and heard.payload["message"]["author_type"] == "agent"
            )
        )

    async def state(self, state: str) -> Heard:
        """The session's state has become this."""
        return await self.until(
            lambda heard: heard.action == "session.state_changed" and heard.payload["new_state"] == state
        )

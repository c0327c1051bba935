"""A client that follows one session's stream through every restart, and remembers what it was told."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.torture.house import House

RETRY_S = 0.1


@dataclass
class Heard:
    """One connection's account: subscribed behind `since`; `answer` is the subscription's payload."""

    session_id: str
    since: int
    answer: dict[str, Any] | None = None
    frames: list[tuple[int, str]] = field(default_factory=list)
    """`(seq, action)` in the order of arrival."""


class Watcher:
    """Runs until it is closed, or its session is gone."""

    def __init__(self, house: House, session_id: str) -> None:
        self.heard: list[Heard] = []
        self._house, self._session_id = house, session_id
        self._last = 0
        self._rejoin = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"watcher of {session_id}")

    def rejoin(self) -> None:
        """Hang up and connect again."""
        self._rejoin.set()

    async def close(self) -> None:
        """No more."""
        self._task.cancel()
        await asyncio.wait({self._task})

    async def _run(self) -> None:
        while True:
            await self._house.up.wait()
            heard = Heard(self._session_id, self._last)
            self.heard.append(heard)
            with suppress(OSError, WebSocketException, TimeoutError):
                if not await self._follow(heard):
                    return
            await asyncio.sleep(RETRY_S)

    async def _follow(self, heard: Heard) -> bool:
        """False when there is no such session any more."""
        address = self._house.url.replace("http", "ws", 1) + "/ws"
        async with connect(address, proxy=None, max_size=None) as socket:
            asked = {"session_id": self._session_id, "since_seq": heard.since}
            await socket.send(
                json.dumps({"id": "1", "type": "request", "action": "session.subscribe", "payload": asked})
            )
            self._rejoin.clear()
            leaving = asyncio.create_task(self._rejoin.wait())
            reading = asyncio.create_task(self._read(socket, heard))
            try:
                await asyncio.wait({leaving, reading}, return_when=asyncio.FIRST_COMPLETED)
                return reading.result() if reading.done() else True
            finally:
                for task in (leaving, reading):
                    task.cancel()
                await asyncio.gather(leaving, reading, return_exceptions=True)

    async def _read(self, socket: Any, heard: Heard) -> bool:
        async for text in socket:
            frame = json.loads(text)
            if frame["type"] == "error":
                return bool(frame["payload"]["code"] != "NOT_FOUND")
            if frame["type"] == "response":
                heard.answer = frame["payload"]
                if heard.answer.get("reload"):
                    self._last = heard.answer["seq"]
                continue
            heard.frames.append((frame["payload"]["seq"], frame["action"]))
            self._house.heard(frame["action"])
            self._last = max(self._last, frame["payload"]["seq"])
        return True

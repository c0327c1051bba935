"""The live stream of one session over the WebSocket, across lost connections and restarts of the backend.

Each frame is given out once: after a loss the stream goes on behind the last sequence number that was seen.
Not here: what frames mean (`watch`).
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, InvalidStatus, WebSocketException

from kandev import config
from kandev.cli.backend import Finder, Place
from kandev.cli.failures import Failed, Refused, Unreachable

RECONNECT_S = 60.0
"""A backend that restarts is back much sooner; one that does not come back is said."""
PAUSES_S = (0.1, 0.2, 0.5, 1.0, 2.0)
"""Between attempts; the last one repeats."""
FRAME_MAX = 256 * 1024 * 1024
"""Bytes. An agent's longest line is a quarter of it."""
SUBSCRIBE = "session.subscribe"


@dataclass(frozen=True)
class Event:
    """`snapshot`, a notification by its action, or `lost` and `back` for the connection."""

    action: str
    payload: dict[str, Any]


class Stream:
    """`timeout` bounds connecting and subscribing, `reconnect` looking for a lost backend; in seconds."""

    def __init__(
        self, finder: Finder, session_id: str, timeout: float, *, reconnect: float = RECONNECT_S
    ) -> None:
        self._finder = finder
        self._session_id = session_id
        self._timeout = timeout
        self._reconnect = reconnect
        self._seen: int | None = None
        self._connected = False

    async def events(self) -> AsyncGenerator[Event, None]:
        """Endless. Raises Unreachable (not there, not back in time), Refused (no such session)."""
        lost: float | None = None
        attempt = 0
        while True:
            try:
                place = self._finder.find()
                async with _connected(place, self._timeout) as socket:
                    async for event in self._one_connection(socket):
                        if lost is not None:
                            yield Event("back", {})
                            lost, attempt = None, 0
                        yield event
            except InvalidStatus as error:
                self._refuse(error)
            except (OSError, TimeoutError, WebSocketException, Unreachable) as error:
                if not self._connected:
                    raise _not_there(error) from None
            if lost is None:
                lost = time.monotonic()
                yield Event("lost", {})
            if time.monotonic() - lost > self._reconnect:
                raise Unreachable(f"The backend did not come back within {self._reconnect:g} s.")
            await asyncio.sleep(PAUSES_S[min(attempt, len(PAUSES_S) - 1)])
            attempt += 1

    async def _one_connection(self, socket: ClientConnection) -> AsyncGenerator[Event, None]:
        """Subscribes and gives out what comes, until the connection ends."""
        await self._subscribe(socket)
        async with asyncio.timeout(self._timeout):
            answer = await self._answer(socket)
        self._connected = True
        yield self._opened(answer)
        async for text in socket:
            frame = json.loads(text)
            action, payload = str(frame.get("action")), frame.get("payload") or {}
            if frame.get("type") == "response" and action == SUBSCRIBE:
                yield self._opened(payload)
            elif frame.get("type") == "notification" and payload.get("session_id") == self._session_id:
                if action == "session.reload":
                    self._seen = None
                    await self._subscribe(socket)
                elif self._is_new(payload.get("seq")):
                    yield Event(action, payload)

    async def _subscribe(self, socket: ClientConnection) -> None:
        payload: dict[str, Any] = {"session_id": self._session_id}
        if self._seen is not None:
            payload["since_seq"] = self._seen
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        frame = {"id": "1", "type": "request", "action": SUBSCRIBE, "payload": payload, "timestamp": now}
        await socket.send(json.dumps(frame))

    async def _answer(self, socket: ClientConnection) -> dict[str, Any]:
        while True:
            frame = json.loads(await socket.recv())
            payload = frame.get("payload") or {}
            if frame.get("type") == "error":
                raise Refused(payload)
            if frame.get("type") == "response":
                return dict(payload)

    def _opened(self, answer: dict[str, Any]) -> Event:
        """A snapshot counts as everything up to its `seq`; without one the missed frames follow."""
        if "session" not in answer:
            return Event("resumed", answer)
        self._seen = answer.get("seq", self._seen)
        return Event("snapshot", answer)

    def _is_new(self, seq: object) -> bool:
        if not isinstance(seq, int):
            return True
        if self._seen is not None and seq <= self._seen:
            return False
        self._seen = seq
        return True

    def _refuse(self, error: InvalidStatus) -> None:
        """Raises when waiting cannot help."""
        status = error.response.status_code
        if status in (401, 403):
            raise Failed("The backend wants its access token; give it as KANDEV_TOKEN.") from None
        if not self._connected:
            raise Failed(f"The backend refused the live stream (HTTP {status}).") from None


def _connected(place: Place, timeout: float) -> connect:
    parts = urlsplit(place.url)
    scheme = "wss" if parts.scheme == "https" else "ws"
    beyond = not config.is_loopback(parts.hostname or "")
    return connect(
        f"{scheme}://{parts.netloc}{parts.path}/ws",
        additional_headers=place.headers,
        open_timeout=timeout,
        max_size=FRAME_MAX,
        proxy=True if beyond else None,
    )


def _not_there(error: Exception) -> Failed:
    if isinstance(error, Unreachable):
        return error
    if isinstance(error, InvalidHandshake):
        return Failed(f"What answers there is no Kandev backend ({error}).")
    return Unreachable(
        f"The backend does not answer ({str(error) or type(error).__name__}); start it with `kandev serve`."
    )

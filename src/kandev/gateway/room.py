"""How much of one connection may be under way at a time. Not here: what it is (`websocket`)."""

import asyncio


class Room:
    """Lets in while fewer than `most` are inside and these hold fewer than `most_bytes`; the last one that
    comes in may be of any size."""

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes = most, most_bytes
        self._inside, self._bytes = 0, 0
        self._left = asyncio.Event()

    async def enter(self, size: int) -> None:
        """Waits until somebody leaves."""
        while self._inside >= self._most or self._bytes >= self._most_bytes:
            self._left.clear()
            await self._left.wait()
        self._inside += 1
        self._bytes += size

    def leave(self, size: int) -> None:
        """Of the size with which it came in."""
        self._inside -= 1
        self._bytes -= size
        self._left.set()

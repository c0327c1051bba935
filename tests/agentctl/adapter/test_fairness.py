"""An agent that never stops talking keeps nobody else from being served."""

import asyncio
from typing import Any

import pytest

from kandev.agentctl.rpc import Call, Peer

MESSAGE = b'{"jsonrpc":"2.0","method":"session/update","params":{}}\n'
CHUNKS = 50


class Talker:
    """What it says next is always there already: reading it never waits."""

    def __init__(self, chunk: bytes) -> None:
        self._chunk = chunk
        self.left = CHUNKS

    async def read(self) -> bytes:
        self.left -= 1
        return self._chunk if self.left >= 0 else b""

    async def write(self, data: bytes) -> None:
        raise AssertionError("nothing is to be written")

    async def close_input(self) -> None:
        raise AssertionError("nothing is to be closed")


class Listener:
    """Counts what was heard, without waiting."""

    def __init__(self) -> None:
        self.heard = 0

    async def notification(self, method: str, params: dict[str, Any]) -> None:
        self.heard += 1

    async def request(self, call: Call) -> None:
        raise AssertionError("nothing was asked")

    async def notice(self, text: str) -> None:
        """Bad lines are told."""


async def _turns_of_others(chunk: bytes) -> tuple[int, int]:
    """How often somebody else came to his turn while all was read, and how many messages were heard."""
    listener = Listener()
    reading = asyncio.create_task(Peer(Talker(chunk), listener, line_max=1 << 20).run())
    turns = 0
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    await reading
    return turns, listener.heard


@pytest.mark.parametrize("together", [1, 20])
async def test_others_have_their_turn_between_any_two_messages(together: int) -> None:
    turns, heard = await _turns_of_others(MESSAGE * together)
    assert heard == CHUNKS * together
    assert turns >= heard


@pytest.mark.parametrize("nonsense", [b"x" * 100, b"\n" * 100, b"no message\n" * 20, b'{"method":'])
async def test_others_have_their_turn_while_nonsense_is_read(nonsense: bytes) -> None:
    turns, heard = await _turns_of_others(nonsense)
    assert heard == 0
    assert turns >= CHUNKS

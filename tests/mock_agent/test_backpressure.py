"""A client that does not read: nothing is lost, a cancel is seen, and a signal still ends the agent."""

from __future__ import annotations

import array
import asyncio
import fcntl
import json
import os
import termios
from pathlib import Path
from typing import IO

import pytest

from tests.mock_agent.driver import COMMAND, DEADLINE_S, Json

NEARLY_FULL = 60_000  # bytes; a pipe of Linux holds 65,536


def _waiting(pipe: IO[bytes]) -> int:
    """How many bytes lie in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def _new(work: Path) -> bytes:
    new = {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": str(work), "mcpServers": []}}
    return json.dumps(new).encode() + b"\n"


def _line(method: str, session_id: str) -> bytes:
    frame: Json = {"jsonrpc": "2.0", "method": method, "params": {"sessionId": session_id}}
    if method == "session/prompt":
        frame["id"] = 2
        frame["params"]["prompt"] = [{"type": "text", "text": "stream 1000000 0"}]
    return json.dumps(frame).encode() + b"\n"


@pytest.mark.parametrize("way", ["cancel", "terminate"])
async def test_a_client_that_does_not_read_holds_the_agent_up_and_nothing_more(work: Path, way: str) -> None:
    out, into = os.pipe()
    source = str(Path(__file__).parents[2] / "src")
    process = await asyncio.create_subprocess_exec(
        *COMMAND, stdin=asyncio.subprocess.PIPE, stdout=into, env={"PYTHONPATH": source}, cwd=work
    )
    os.close(into)
    assert process.stdin is not None
    with os.fdopen(out, "rb", buffering=0) as pipe:
        process.stdin.write(_new(work))
        session_id = json.loads(await asyncio.to_thread(_read_line, pipe))["result"]["sessionId"]
        process.stdin.write(_line("session/prompt", session_id))
        async with asyncio.timeout(DEADLINE_S):
            while _waiting(pipe) < NEARLY_FULL:
                await asyncio.sleep(0.01)
        if way == "terminate":
            process.terminate()
            assert await asyncio.wait_for(process.wait(), DEADLINE_S) == 143
            return
        process.stdin.write(_line("session/cancel", session_id))
        lines = await asyncio.to_thread(_read_until_answered, pipe)
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), DEADLINE_S) == 0
    texts = [line["params"]["update"]["content"]["text"] for line in lines if "method" in line]
    assert texts == [f"chunk {number} " for number in range(1, len(texts) + 1)]
    assert lines[-1]["result"] == {"stopReason": "cancelled"}


def _read_line(pipe: IO[bytes]) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        line += pipe.read(1)
    return line


def _read_until_answered(pipe: IO[bytes]) -> list[Json]:
    """Every frame until the prompt's answer; fails when a line is torn."""
    lines: list[Json] = []
    rest = b""
    while part := pipe.read(1 << 16):
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            lines.append(json.loads(line))
            if lines[-1].get("id") == 2:
                return lines
    raise AssertionError("the agent has closed its stdout before it answered")

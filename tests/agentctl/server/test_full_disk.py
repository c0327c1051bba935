"""A disk that takes nothing: the agent waits, nothing is lost, and every request has an answer."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from websockets.asyncio.client import ClientConnection

from kandev.wire import agentctl as wire
from tests.agentctl.server.hosts import Host, acknowledge, eventually, host_in, receive


async def until(stream: ClientConnection, last: type[wire.Frame]) -> AsyncIterator[Any]:
    """Frames up to one of this kind, each acknowledged."""
    while True:
        (frame,) = await receive(stream, 1)
        await acknowledge(stream, frame.seq)
        yield frame
        if isinstance(frame, last):
            return


class Disk:
    """Takes what is appended, or nothing."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False

        def write(descriptor: int, content: bytes) -> int:
            if self.full:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return os.write(descriptor, content)

        monkeypatch.setattr("kandev.agentctl.segments.os", SimpleNamespace(**{**vars(os), "write": write}))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr("kandev.agentctl.journal.TAIL_BYTES", 300)
    monkeypatch.setattr("kandev.agentctl.journal.AGAIN_S", 0.05)
    return Disk(monkeypatch)


@pytest.mark.proves("SURVIVE-full-disk")
async def test_a_full_disk_holds_the_agent_up_and_says_so_and_nothing_is_lost(host: Host, disk: Disk) -> None:
    await host.create()
    await host.prompt(1)
    await host.agent().says("0")
    disk.full = True
    said: list[int] = []

    async def talk() -> None:
        for number in range(1, 40):
            await host.agent().says(str(number))
            said.append(number)
        await host.agent().ends()

    talking = asyncio.create_task(talk())
    journal = host.instances.get("e1").journal
    await eventually(lambda: journal.waiting_bytes > 300)
    held = len(said)
    async with host.stream() as stream:
        frames = [frame async for frame in until(stream, wire.Notice)]
        assert "No space left" in frames[-1].text
        disk.full = False
        frames += [frame async for frame in until(stream, wire.TurnEnded)]
    await talking
    assert held < 39, "the agent had to wait"
    assert [f.seq for f in frames] == list(range(1, len(frames) + 1))
    assert [f.text for f in frames if isinstance(f, wire.MessageChunk)] == [str(n) for n in range(40)]
    assert (await host.prompt(2)).status == 202
    await eventually(lambda: journal.trouble is None)


@pytest.mark.proves("SURVIVE-full-disk", "SURVIVE-hostile-agent-memory")
async def test_a_stop_works_although_the_disk_is_full_and_the_end_is_told(host: Host, disk: Disk) -> None:
    await host.create()
    await host.prompt(1)
    disk.full = True

    async def talk() -> None:
        for _ in range(1000):
            await host.agent().says("x" * 10_000)
            await host.agent().sink.event(wire.Notice, text="look", data={"x": "x" * 10_000})

    talking = asyncio.create_task(talk())
    journal = host.instances.get("e1").journal
    await eventually(lambda: journal.waiting_bytes > 300)
    assert (await host.stop()).status == 200
    await talking
    assert journal.waiting_bytes < 9_000_000
    last = msgspec.json.decode(journal.read_from(journal.last_seq)[0][1], type=wire.AnyFrame)
    before = msgspec.json.decode(journal.read_from(journal.last_seq - 1)[0][1], type=wire.AnyFrame)
    assert isinstance(last, wire.ProcessExited)
    assert isinstance(before, wire.Notice)
    assert "could not be kept" in before.text


@pytest.mark.proves("SURVIVE-full-disk")
async def test_a_prompt_that_cannot_be_recorded_is_refused_before_the_agent_sees_it(
    host: Host, disk: Disk
) -> None:
    await host.create()
    disk.full = True
    answer = await host.prompt(1)
    assert (answer.status, answer.reason) == (409, "not_recorded")
    assert "No space left" in answer.body["message"]
    assert host.agent().prompts == []
    disk.full = False
    assert (await host.prompt(2)).status == 202
    assert host.agent().prompts == ["go"]


@pytest.mark.proves("SURVIVE-full-disk")
async def test_a_fence_that_the_disk_does_not_take_is_in_force_and_asked_for_again(
    tmp_path: Path, disk: Disk
) -> None:
    async with host_in(tmp_path) as host:
        await host.create("e0")
        disk.full = True
        answer = await host.ask("DELETE", "/api/v1/instances/e1")
        assert answer.status == 503
        assert "No space left" in answer.body["message"]
        assert (await host.create()).reason == "tombstone"
        higher = {wire.EPOCH_HEADER: "7"}
        assert (await host.of("e1", "POST", "stop", {}, **higher)).status == 503
        disk.full = False
        assert (await host.of("e1", "POST", "stop", {}, **higher)).status == 404
    async with host_in(tmp_path) as host:
        host.epoch = 7
        assert (await host.create()).reason == "tombstone"

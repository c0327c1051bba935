"""The stream: window, replacement, back-pressure, a full disk, loneliness."""

import asyncio
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from kandev.agentctl import orphaned
from kandev.agentctl.activity import Activity
from kandev.wire import agentctl as wire
from tests.agentctl.server.hosts import QUICK, Host, acknowledge, eventually, host_in, receive


async def more_comes(stream: ClientConnection) -> bool:
    """Within a moment."""
    try:
        async with asyncio.timeout(0.1):
            await stream.recv()
    except TimeoutError:
        return False
    return True


@pytest.mark.proves("CTL-fence-window")
async def test_a_bounded_number_of_frames_is_sent_unacknowledged(tmp_path: Path) -> None:
    async with host_in(tmp_path, dataclasses.replace(QUICK, window_frames=4)) as host:
        await host.create()
        await host.prompt(1)
        for number in range(10):
            await host.agent().says(str(number))
        async with host.stream() as stream:
            await receive(stream, 4)
            assert not await more_comes(stream)
            await acknowledge(stream, 3)
            assert [frame.seq for frame in await receive(stream, 3)] == [5, 6, 7]


SAID: tuple[tuple[type[wire.Frame], dict[str, Any]], ...] = (
    (wire.MessageChunk, {"text": "hello", "message_id": "m1"}),
    (wire.ReasoningChunk, {"text": "hm"}),
    (wire.ToolCall, {"tool_call_id": "t1", "title": "Run", "status": "in_progress"}),
    (wire.ToolUpdate, {"tool_call_id": "t1", "status": "completed"}),
    (wire.Plan, {"entries": [{"content": "one", "status": "pending"}]}),
    (wire.Usage, {"usage": {"used": 1}}),
    (wire.Mode, {"mode": "ask"}),
    (wire.Commands, {"commands": [{"name": "init"}]}),
    (wire.Notice, {"text": "look"}),
)


@pytest.mark.proves("CTL-events")
async def test_every_kind_of_event_comes_with_its_execution_and_generation(host: Host) -> None:
    await host.create()
    await host.prompt(1)
    for kind, members in SAID:
        await host.agent().sink.event(kind, **members)
    await host.agent().asks("p1")
    await host.agent().ends()
    host.agent().exit(3)
    kinds = ["session_started", "prompt_accepted", *(wire_tag(kind) for kind, _ in SAID)]
    kinds += ["permission_request", "permission_resolved", "turn_ended", "process_exited"]
    async with host.stream() as stream:
        frames = await receive(stream, len(kinds))
    assert [wire_tag(type(frame)) for frame in frames] == kinds
    assert [frame.seq for frame in frames] == list(range(1, len(kinds) + 1))
    assert {frame.execution_id for frame in frames} == {"e1"}
    assert [frame.prompt_generation for frame in frames[1:-1]] == [1] * (len(kinds) - 2)
    for frame, (_, members) in zip(frames[2:], SAID, strict=False):
        assert {name: getattr(frame, name) for name in members} == members


def wire_tag(kind: type[wire.Frame]) -> str:
    return str(kind.__struct_config__.tag)


@pytest.mark.proves("CTL-stream")
async def test_a_newer_stream_closes_the_older_one(host: Host) -> None:
    await host.create()
    async with host.stream() as older, host.stream() as newer:
        with pytest.raises(ConnectionClosed):
            while True:
                await older.recv()
        assert older.close_code == wire.STREAM_REPLACED
        await receive(newer, 1)


async def test_a_deleted_instance_closes_its_stream(host: Host) -> None:
    await host.create()
    async with host.stream() as stream:
        await receive(stream, 1)
        await host.ask("DELETE", "/api/v1/instances/e1")
        with pytest.raises(ConnectionClosed):
            while True:
                await stream.recv()
        assert stream.close_code == wire.STREAM_DROPPED


async def test_words_that_are_no_acknowledgement_close_the_stream(host: Host) -> None:
    await host.create()
    async with host.stream() as stream:
        await stream.send("hello")
        with pytest.raises(ConnectionClosed):
            while True:
                await stream.recv()
    assert (await host.create()).body["state"] == "ready"


@pytest.mark.parametrize(("execution", "epoch", "status"), [("nobody", 1, 404), ("e1", 0, 412)])
async def test_a_stream_is_refused_in_words(host: Host, execution: str, epoch: int, status: int) -> None:
    await host.create()
    host.epoch = epoch
    with pytest.raises(InvalidStatus) as refused:
        async with host.stream(execution=execution):
            pass
    assert refused.value.response.status_code == status


@pytest.mark.proves("CTL-fence-window", "SURVIVE-hostile-agent-memory")
async def test_a_bounded_number_of_bytes_is_sent_unacknowledged_and_a_longer_frame_alone(
    tmp_path: Path,
) -> None:
    async with host_in(tmp_path, dataclasses.replace(QUICK, window_bytes=3000)) as host:
        await host.create()
        await host.prompt(1)
        for size in (10_000, 10_000, 100, 100):
            await host.agent().says("x" * size)
        async with host.stream(after=2) as stream:
            (first,) = await receive(stream, 1)
            assert not await more_comes(stream)
            await acknowledge(stream, first.seq)
            (second,) = await receive(stream, 1)
            assert not await more_comes(stream)
            await acknowledge(stream, second.seq)
            assert [frame.seq for frame in await receive(stream, 2)] == [5, 6]


@pytest.mark.proves("CTL-fence-window")
async def test_a_full_journal_holds_the_agent_up_and_an_acknowledgement_lets_it_go_on(tmp_path: Path) -> None:
    async with host_in(tmp_path, dataclasses.replace(QUICK, journal_max_bytes=4000)) as host:
        await host.create()
        await host.prompt(1)
        journal = host.instances.get("e1").journal

        async def talk() -> None:
            for number in range(40):
                await host.agent().says(f"{number} " + "x" * 300)

        talking = asyncio.create_task(talk())
        await eventually(lambda: journal.unacknowledged_bytes >= 4000)
        assert not talking.done()
        async with host.stream() as stream:
            for number in range(1, 43):
                await receive(stream, 1)
                await acknowledge(stream, number)
            await asyncio.wait_for(talking, 2)


@pytest.mark.proves("CTL-cancel")
async def test_a_cancel_is_acknowledged_although_the_journal_is_full(tmp_path: Path) -> None:
    async with host_in(tmp_path, dataclasses.replace(QUICK, journal_max_bytes=8000)) as host:
        await host.create()
        await host.prompt(1)
        journal = host.instances.get("e1").journal

        async def talk() -> None:
            for _ in range(200):
                await host.agent().says("x" * 300)

        talking = asyncio.create_task(talk())
        await eventually(lambda: journal.unacknowledged_bytes >= 8000)
        answer = await host.cancel(1)
        assert answer.body["outcome"] == "acknowledged"
        assert not talking.done() and journal.unacknowledged_bytes < 2 * 8000, "it is bounded all the same"
        await host.stop()
        await talking


@pytest.mark.proves("CTL-stop")
async def test_a_stop_works_although_the_journal_is_full(tmp_path: Path) -> None:
    async with host_in(tmp_path, dataclasses.replace(QUICK, journal_max_bytes=2000)) as host:
        await host.create()
        await host.prompt(1)

        async def talk() -> None:
            for _ in range(20):
                await host.agent().says("x" * 300)

        talking = asyncio.create_task(talk())
        journal = host.instances.get("e1").journal
        await eventually(lambda: journal.unacknowledged_bytes >= 2000)
        assert (await host.stop()).status == 200
        await talking
        assert journal.last_seq >= 23


async def test_journals_are_read_on_from_an_earlier_agentctl(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        await host.create()
        await host.prompt(1)
        await host.agent().says("hello")
    async with host_in(tmp_path) as host:
        assert host.kinds()[-1] == "process_exited"
        assert host.kinds().count("process_exited") == 1
        assert (await host.create()).body["state"] == "ended"
        assert (await host.of("e1", "GET", "acp/dispatch/d1?prompt_generation=1")).body == {"accepted": True}
        assert (await host.prompt(1)).body == {"accepted": True, "duplicate": True}
        assert (await host.prompt(2)).reason == "ended"


async def test_journals_of_an_earlier_boot_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with host_in(tmp_path) as host:
        await host.create()
    monkeypatch.setattr("kandev.agentctl.instances.boot_id", lambda: "another boot")
    async with host_in(tmp_path) as host:
        assert (await host.ask("GET", "/api/v1/instances/e1")).status == 404


@pytest.mark.proves("CTL-orphan")
@pytest.mark.field("D27")
async def test_without_a_backend_idle_agents_are_ended_and_a_turn_goes_on(host: Host) -> None:
    await host.create("idle")
    await host.create("busy")
    await host.prompt(1, execution="busy")
    end = asyncio.Event()
    watching = asyncio.create_task(orphaned.watch(host.instances, host.activity, 0.05, end.set))
    await host.instances.get("idle").ended.wait()
    assert host.instances.get("busy").state == "ready"
    assert not end.is_set()
    await host.agent("busy").ends()
    async with asyncio.timeout(2):
        await end.wait()
        await watching
    assert host.instances.get("busy").state == "ended"
    assert host.kinds("busy")[-2:] == ["turn_ended", "process_exited"]


class Lonely(Activity):
    """Silent for three looks; `at_the_third` happens behind the last of them, before anything else."""

    def __init__(self, at_the_third: Callable[[], object]) -> None:
        super().__init__()
        self.looked = 0
        self._at_the_third = at_the_third

    def silent_for(self) -> float:
        self.looked += 1
        if self.looked == 3:
            asyncio.get_running_loop().call_soon(self._at_the_third)
        return 1.0 if self.looked <= 3 else 0.0


@pytest.mark.field("B45", "D23")
async def test_an_agent_that_gets_work_in_the_last_moment_is_not_ended_for_loneliness(host: Host) -> None:
    await host.create()
    instance = host.instances.get("e1")
    lonely = Lonely(lambda: instance.turns.begin(1, "d1"))
    watching = asyncio.create_task(orphaned.watch(host.instances, lonely, 0.01, lambda: None))
    await eventually(lambda: lonely.looked > 6)
    assert instance.works and instance.state == "ready" and host.agent().forces == []
    watching.cancel()
    await asyncio.wait({watching})


@pytest.mark.proves("CTL-orphan")
async def test_an_open_stream_is_a_backend(host: Host) -> None:
    await host.create()
    async with host.stream():
        await eventually(lambda: host.activity.silent_for() == 0)
        await asyncio.sleep(0.05)
        assert host.activity.silent_for() == 0

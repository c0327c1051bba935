"""Programs without a descriptor left: a request is refused in a sentence or waits, and nothing is ended."""

import asyncio
import errno
import logging
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kandev.agentctl import exhaustion as agentctls
from kandev.agentctl import looking
from kandev.agentctl.adapters.base import StartFailed
from kandev.agentctl.process import spawn
from kandev.agentctl.settings import Settings
from kandev.execution.sidecar import Sidecar, environment_for
from kandev.gateway import exhaustion as backends
from kandev.ports.execution import Unreachable
from kandev.wire import agentctl as wire
from tests.agentctl.server.hosts import eventually, host_in
from tests.e2e.conftest import kandev
from tests.e2e.kandev import Kandev
from tests.e2e.scenes import agent_spoke, get, marked, said, turns_over, until_holds
from tests.host.test_full_disk import stream

__all__ = ["kandev"]
pytestmark = pytest.mark.proves("SURVIVE-descriptors")

BUSY_SHARE = 0.5
"""Of one processor, for a program that waits: far from spinning."""
NONE_LEFT = OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def open_ones(pid: int) -> list[int]:
    folder = Path(f"/proc/{pid}/fd")
    # Of ourselves the list has one more, by which it was read.
    return sorted(int(path.name) for path in list(folder.iterdir()) if path.is_symlink())


@contextmanager
def without_descriptors(pid: int, left: int = 0) -> Iterator[None]:
    """The process has what it has, and may open so many more."""
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    taken = set(open_ones(pid))
    free = [number for number in range(max(taken) + left + 2) if number not in taken]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free[left], before[1]))
    try:
        yield
    finally:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)


def processor_s(pid: int) -> float:
    """What it has used so far."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


# -- the backend -----------------------------------------------------------------------------------


async def test_clients_of_a_backend_without_descriptors_wait_and_are_served_when_it_has_some(
    kandev: Kandev,
) -> None:
    assert kandev.process is not None
    pid, loop = kandev.process.pid, asyncio.get_running_loop()
    _, session_id = await kandev.session("say one\nsleep 600")
    async with kandev.watching(session_id) as events:
        await agent_spoke(events)
        with without_descriptors(pid):
            begun, used = loop.time(), processor_s(pid)
            late = [asyncio.create_task(_asked(kandev)) for _ in range(3)]
            log = kandev.errors
            await until_holds(lambda: _holds("connections wait" in log.read_text()), "the log says so")
            for _ in range(50):
                # Whoever is connected is served meanwhile.
                answer = await events.request("session.explain", {"session_id": session_id})
                assert answer["type"] == "response"
                await asyncio.sleep(0.05)
            share = (processor_s(pid) - used) / (loop.time() - begun)
            assert not any(task.done() for task in late)
        assert await asyncio.gather(*late) == [200, 200, 200]
        assert (await kandev.call("agent.cancel", {"session_id": session_id}))["success"]
    assert share < BUSY_SHARE
    assert log.read_text().count("connections wait") == 1 and "Traceback" not in log.read_text()


async def _holds(condition: bool) -> bool:
    return condition


async def _asked(kandev: Kandev) -> int:
    """By a client of its own, which needs a connection of its own."""
    another = Kandev.guest(kandev)
    try:
        return (await another.get("/health")).status_code
    finally:
        await another._http.aclose()


async def test_a_launch_by_a_backend_without_descriptors_is_refused_or_waits_and_works_later(
    kandev: Kandev,
) -> None:
    assert kandev.process is not None
    _, first = await kandev.session("say one")
    async with kandev.watching(first) as events:
        await turns_over(events)
        with without_descriptors(kandev.process.pid):
            _, second = await kandev.session("say two")
            await until_holds(lambda: _waits_or_failed(kandev, second), "it is told")
        if (await get(kandev, second))["state"] == "FAILED":
            await kandev.call("session.recover", {"session_id": second})
        await until_holds(lambda: _said(kandev, second, ["two"]), "it works later")
    assert len(marked(second)) == 1


async def _waits_or_failed(kandev: Kandev, session_id: str) -> bool:
    explained = await kandev.call("session.explain", {"session_id": session_id})
    told = [explained.get("error", ""), *(work.get("trouble", "") for work in explained["under_way"])]
    return any("Too many open files" in text for text in told) or explained["state"] == "WAITING_FOR_INPUT"


async def _said(kandev: Kandev, session_id: str, texts: list[str]) -> bool:
    return await said(kandev, session_id) == texts


def test_an_agentctl_that_cannot_be_looked_at_is_not_taken_for_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(path: Path) -> bytes:
        raise NONE_LEFT

    (tmp_path / "agentctl.json").write_text("{}")
    sidecar = Sidecar(tmp_path, environment_for(tmp_path))
    monkeypatch.setattr(Path, "read_bytes", none_left)
    with pytest.raises(Unreachable, match="cannot be looked for: Too many open files"):
        sidecar.find()


# -- agentctl --------------------------------------------------------------------------------------


async def test_a_turn_goes_on_under_an_agentctl_without_descriptors_and_a_launch_works_later(
    kandev: Kandev,
) -> None:
    _, first = await kandev.session("say one\nstream 1500 1\nsay end")
    async with kandev.watching(first) as events:
        await agent_spoke(events)
        with without_descriptors(kandev.agentctl_pid()):
            _, second = await kandev.session("say two")
            assert (await turns_over(events))["cause"] == "agent"
            used, loop = processor_s(kandev.agentctl_pid()), asyncio.get_running_loop()
            begun = loop.time()
            await until_holds(lambda: _waits_or_failed(kandev, second), "the launch is refused")
            share = (processor_s(kandev.agentctl_pid()) - used) / max(loop.time() - begun, 1)
        if (await get(kandev, second))["state"] == "FAILED":
            await kandev.call("session.recover", {"session_id": second})
        await until_holds(lambda: _said(kandev, second, ["two"]), "the launch works later")
    assert share < BUSY_SHARE
    assert "".join(await said(kandev, first)) == f"one{stream(1500)}end"


@pytest.mark.parametrize("left", range(6))
async def test_a_launch_without_descriptors_says_so_and_leaks_none(left: int, tmp_path: Path) -> None:
    before = open_ones(os.getpid())
    with without_descriptors(os.getpid(), left), pytest.raises(StartFailed, match="Too many open files"):
        await spawn("e.1", ["true"], str(tmp_path), {"KANDEV_HOME": str(tmp_path)}, Settings())
    assert open_ones(os.getpid()) == before


@pytest.mark.field("D19")
async def test_a_process_is_not_called_gone_because_nobody_could_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {"PATH": os.environ["PATH"], "KANDEV_HOME": str(tmp_path)}
    process = await spawn("e.1", ["sleep", "300"], str(tmp_path), environment, Settings())

    def none_left(path: str) -> bytes:
        raise NONE_LEFT

    try:
        with monkeypatch.context() as patch, pytest.raises(OSError, match="Too many open files"):
            patch.setattr(looking, "read_file", none_left)
            process.look()
    finally:
        assert await process.end(force=True) == []


async def test_a_turn_begins_and_ends_although_nobody_can_look_at_processes(tmp_path: Path) -> None:
    def none_left() -> list[wire.Process]:
        raise NONE_LEFT

    async with host_in(tmp_path) as host:
        await host.create()
        agent = host.agent()
        agent.look = none_left  # type: ignore[method-assign]
        assert (await host.prompt(1)).status == 202
        await agent.says("one")
        await agent.ends()
        assert host.kinds()[-1] == "turn_ended"
        assert (await host.prompt(2)).status == 202


async def test_an_agent_whose_reader_broke_is_at_its_end(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        await host.create()
        await host.prompt(1)
        agent = host.agent()

        async def broken(*_: Any, **__: Any) -> None:
            raise NONE_LEFT

        agent.exited = broken  # type: ignore[method-assign]
        agent.exit(None)
        await eventually(lambda: host.instances.get("e1").state == "ended")
        assert host.kinds()[-1] == "process_exited"


async def test_a_journal_that_finds_no_descriptor_waits_for_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: Any) -> int:
        raise NONE_LEFT

    monkeypatch.setattr("kandev.agentctl.journal.AGAIN_S", 0.02)
    async with host_in(tmp_path) as host:
        await host.create()
        journal = host.instances.get("e1").journal
        with monkeypatch.context() as patch:
            patch.setattr("kandev.agentctl.journal.SEGMENT_BYTES", 1)
            patch.setattr("kandev.agentctl.segments.os", SimpleNamespace(**{**vars(os), "open": none_left}))
            journal._segment_bytes = 1
            assert (await host.prompt(1)).reason == "not_recorded"
            await host.agent().says("one")
            assert journal.trouble is not None
        await eventually(lambda: journal.trouble is None)
        assert (await host.prompt(2)).status == 202
        await host.agent().says("two")
        kept = [line for path in sorted((tmp_path / "agentctl").rglob("*.jsonl")) for line in path.open()]
        assert len(kept) == journal.last_seq


# -- the log ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tell", [backends.tell_exhaustion, agentctls.tell_exhaustion])
async def test_many_connections_that_wait_are_one_line_and_other_mistakes_are_told(
    tell: Callable[[asyncio.AbstractEventLoop], None], caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    loop = asyncio.get_running_loop()
    tell(loop)
    try:
        with caplog.at_level(logging.ERROR):
            for _ in range(100):
                context = {"message": "socket.accept() out of system resource", "socket": None}
                loop.call_exception_handler({**context, "exception": NONE_LEFT})
            loop.call_exception_handler({"message": "something else", "exception": ValueError("x")})
    finally:
        loop.set_exception_handler(None)
    said_by_both = caplog.text + capsys.readouterr().out
    assert said_by_both.count("connections wait") == 1
    assert said_by_both.count("something else") == 1

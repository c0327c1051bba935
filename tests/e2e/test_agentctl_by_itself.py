"""`kandev agentctl` as a program of its own: ready line, lock, end, and the backend that finds it."""

import asyncio
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.kandev import DEADLINE_S, Kandev
from tests.e2e.program import run
from tests.e2e.scenes import marked, said, turns_over, until_true


@asynccontextmanager
async def agentctl(home: Path, *arguments: str, **environment: str) -> AsyncIterator[dict[str, Any]]:
    """Its ready line; ended behind the block."""
    home.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "kandev", "agentctl", "--home", str(home), *arguments]
    env = {**Kandev(home).env(), **environment}
    process = subprocess.Popen(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(DEADLINE_S):
            yield json.loads(await asyncio.to_thread(process.stdout.readline))
    finally:
        process.terminate()
        code = await asyncio.to_thread(process.wait, DEADLINE_S)
        process.stdout.close()
    assert code == 0


@pytest.mark.proves("CLI-agentctl")
async def test_it_says_where_it_is_and_lets_nobody_in_without_its_token(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with agentctl(home, "--port", "0") as ready:
        assert (ready["event"], ready["home"]) == ("ready", str(home))
        path = home / "agentctl.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        known = json.loads(path.read_text())
        assert (known["pid"], known["url"]) == (ready["pid"], ready["url"])
        async with httpx.AsyncClient(trust_env=False, timeout=DEADLINE_S) as http:
            health = (await http.get(ready["url"] + "/health")).json()
            assert {"version", "instances", "uptime_s"} <= health.keys()
            assert (await http.get(ready["url"] + "/api/v1/instances")).status_code == 401
        again = await run(Kandev(home), "agentctl", "--home", str(home), "--port", "0")
        told = json.loads(again.out)
        assert (again.code, told["event"]) == (1, "failed")
        assert str(home) in told["error"] and told["error"] in again.err and "Traceback" not in again.err
    assert not path.exists()


async def test_a_port_in_use_and_an_unusable_home_are_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    ran = await run(Kandev(file), "agentctl", "--home", str(file), "--port", "0")
    assert ran.code == 1 and str(file) in ran.err and "Traceback" not in ran.err
    home = tmp_path / "home"
    async with agentctl(home) as ready:
        port = ready["url"].rpartition(":")[2]
        elsewhere = Kandev(tmp_path / "other")
        other = await run(elsewhere, "agentctl", "--home", str(elsewhere.home), "--port", port)
        assert other.code == 1 and port in other.err and "Traceback" not in other.err


async def test_the_backend_uses_the_one_that_runs_already(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with agentctl(home) as ready:
        kandev = Kandev(home)
        await kandev.start()
        try:
            _, session_id = await kandev.session("say hello")
            async with kandev.watching(session_id) as events:
                await turns_over(events)
            assert await said(kandev, session_id) == ["hello"]
            assert kandev.agentctl_pid() == ready["pid"]
        finally:
            await kandev.end()


@pytest.mark.proves("CTL-orphan")
async def test_without_a_backend_it_ends_its_idle_agents_and_then_itself(tmp_path: Path) -> None:
    kandev = Kandev(tmp_path / "home", {"KANDEV_ORPHAN_S": "0.5"})
    await kandev.start()
    try:
        _, idle = await kandev.session("say hello")
        _, busy = await kandev.session("say hello\nstream 100 20")
        async with kandev.watching(idle) as events, kandev.watching(busy) as others:
            await events.state("WAITING_FOR_INPUT")
            await others.until("session.message.added", lambda p: p["message"]["content"] == "hello")
        pid = kandev.agentctl_pid()
        descriptor = os.pidfd_open(pid)
        await kandev.kill()
        await until_true(lambda: not marked(idle), "the idle agent is ended")
        assert marked(busy), "a running turn is never ended by loneliness"
        await until_true(lambda: not marked(busy), "it ends when its turn is over")
        loop = asyncio.get_running_loop()
        gone = asyncio.Event()
        loop.add_reader(descriptor, gone.set)
        async with asyncio.timeout(DEADLINE_S):
            await gone.wait()
        loop.remove_reader(descriptor)
        os.close(descriptor)
        await kandev.start()
        async with kandev.watching(busy) as events:
            await turns_over(events)
        assert (await said(kandev, busy))[-1] == "".join(f"chunk {n} " for n in range(1, 101))
    finally:
        await kandev.end()


async def test_sigterm_ends_its_agents_with_it(tmp_path: Path) -> None:
    async with Kandev(tmp_path / "home") as kandev:
        _, session_id = await kandev.session("spawn 600\nstubborn\nsay hello\nsleep 600")
        async with kandev.watching(session_id) as events:
            await events.until("session.message.added", lambda p: p["message"]["content"] == "hello")
            assert len(marked(session_id)) == 2
            os.kill(kandev.agentctl_pid(), signal.SIGTERM)
            await turns_over(events)
            await until_true(lambda: not marked(session_id), "nothing of it is left")
            await events.state("WAITING_FOR_INPUT")

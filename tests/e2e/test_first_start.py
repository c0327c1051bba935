"""Starts of the backend: a new home, wrong settings, things in the way; each is one sentence."""

import http.client
import json
import os
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.e2e.kandev import Kandev
from tests.e2e.program import Ran, run


async def start(home: Path, *arguments: str, **environment: str) -> Ran:
    """A start that must not succeed."""
    return await run(Kandev(home), "serve", "--no-browser", *arguments, **environment)


def one_sentence(ran: Ran, *named: str) -> None:
    """The start was refused as a person can understand it."""
    assert ran.code != 0 and ran.out == "", ran
    lines = ran.err.strip().splitlines()
    assert len(lines) == 1, ran.err
    assert "Traceback" not in ran.err
    for word in named:
        assert word in lines[0]


@pytest.mark.proves("CLI-first-start", "ACT-workspace.list", "ACT-workflow.list", "ACT-agent.profile.list")
async def test_a_new_home_begins_with_a_workspace_a_board_and_the_agents_found(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "gemini").write_text("#!/bin/sh\nexit 0\n")
    (tools / "gemini").chmod(0o755)
    async with Kandev(tmp_path / "home", {"PATH": f"{tools}:{os.environ['PATH']}"}) as kandev:
        (workspace,) = (await kandev.call("workspace.list"))["workspaces"]
        assert workspace["name"] == "Default"
        of = {"workspace_id": workspace["id"]}
        (board,) = (await kandev.call("workflow.list", of))["workflows"]
        assert (board["name"], board["style"]) == ("Kanban", "kanban")
        assert [s["name"] for s in board["steps"]] == ["Backlog", "In Progress", "Review", "Done"]
        assert [s["position"] for s in board["steps"]] == [0, 1, 2, 3]
        async with kandev.events() as events:
            await events.request("workspace.subscribe", {**of, "since_seq": 0})
            await events.until("agent.profile.changed", lambda p: p["profile"].get("agent") == "gemini")
        profiles = (await kandev.call("agent.profile.list"))["profiles"]
        assert profiles[0]["name"] == "Mock agent"
        found = next(a for a in (await kandev.call("agent.list"))["agents"] if a["name"] == "gemini")
        assert found["found"] is True
        await kandev.call("agent.profile.delete", {"id": profiles[-1]["id"]})
        await kandev.stop()
        await kandev.start()
        again = (await kandev.call("agent.profile.list"))["profiles"]
        assert [p["id"] for p in again] == [p["id"] for p in profiles[:-1]], "what was deleted stays away"
        assert len((await kandev.call("workspace.list"))["workspaces"]) == 1


@pytest.mark.proves("CLI-one-backend")
async def test_a_second_backend_on_one_home_is_refused_and_disturbs_nothing(kandev: Kandev) -> None:
    announced = (kandev.home / "backend.json").read_bytes()
    one_sentence(await start(kandev.home, "--port", "0"), str(kandev.home), "--home")
    assert (kandev.home / "backend.json").read_bytes() == announced
    assert (await kandev.call("health.check"))["status"] == "ok"


@pytest.mark.proves("BAD-port-in-use")
async def test_a_port_in_use_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        one_sentence(await start(tmp_path / "home", "--port", port), port, "--port")
    assert not (tmp_path / "home" / "backend.json").exists()


@pytest.mark.proves("BAD-home-unwritable")
async def test_a_home_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    one_sentence(await start(file, "--port", "0"), str(file), "--home")
    one_sentence(await start(file / "below", "--port", "0"), str(file / "below"), "--home")
    assert file.read_text() == "mine"
    one_sentence(await start(Path("/proc/nobody"), "--port", "0"), "/proc/nobody", "--home")


@pytest.mark.proves("CLI-postgresql", "CLI-wrong-setting", "CLI-settings-order")
async def test_a_wrong_setting_is_named_with_the_place_where_it_was_given(tmp_path: Path) -> None:
    home = tmp_path / "home"
    url = "postgresql://me:passw0rd@db/kandev"
    refused = await start(home, "--database-url", url)
    one_sentence(refused, "PostgreSQL", "--database-url")
    assert "passw0rd" not in refused.err
    one_sentence(await start(home, KANDEV_DATABASE_URL=url), "PostgreSQL", "KANDEV_DATABASE_URL")
    one_sentence(await start(home, KANDEV_PORT="high"), "KANDEV_PORT", "high")
    one_sentence(await start(home, KANDEV_LAUNCH_S="soon"), "KANDEV_LAUNCH_S")
    (home / "config.toml").write_text("prot = 1\n")
    one_sentence(await start(home), "config.toml", "prot", "port")
    (home / "config.toml").write_text("port = [\n")
    one_sentence(await start(home), "config.toml")
    (home / "config.toml").write_text('queue_max_per_session = 1\nport = "nowhere"\n')
    async with Kandev(home, {"KANDEV_QUEUE_MAX_PER_SESSION": "2"}) as kandev:
        _, session_id = await kandev.session("say x")
        queue = await kandev.call("message.queue.get", {"session_id": session_id})
        assert queue["max"] == 2, "the environment stands above the file, the command line above both"


@pytest.mark.proves("BAD-newer-database")
async def test_a_database_of_a_newer_program_stays_as_it_is(kandev: Kandev) -> None:
    await kandev.stop()
    file = kandev.home / "kandev.db"
    versions = alembic_version(file, "9999")
    before = file.read_bytes()
    one_sentence(await start(kandev.home, "--port", "0"), "newer", str(file))
    assert file.read_bytes() == before
    assert alembic_version(file, versions) == "9999"


def alembic_version(file: Path, fresh: str) -> str:
    """Write it; the one before."""
    with closing(sqlite3.connect(file)) as database:
        (before,) = database.execute("SELECT version_num FROM alembic_version").fetchone()
        database.execute("UPDATE alembic_version SET version_num = ?", (fresh,))
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return str(before)


async def test_a_file_that_is_no_database_stays_as_it_is(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "kandev.db").write_bytes(b"my shopping list\n" * 400)
    ran = await start(home, "--port", "0")
    one_sentence(ran, str(home / "kandev.db"))
    assert (home / "kandev.db").read_bytes() == b"my shopping list\n" * 400


def asked(url: str, **headers: str) -> int:
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    try:
        given = {"Content-Type": "application/json", **headers}
        connection.request("POST", "/api/v1/actions/health.check", b"{}", given)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.proves("CLI-token")
async def test_listening_beyond_loopback_demands_the_token_at_both_doors(tmp_path: Path) -> None:
    kandev = Kandev(tmp_path / "home")
    await kandev.start("--host", "0.0.0.0")
    try:
        token = json.loads((kandev.home / "backend.json").read_text())["token"]
        shown = (kandev.home / "backend.err").read_text()
        assert f"the access token is {token}" in shown, "generated, and shown once"
        assert asked(kandev.url) == 401
        assert asked(kandev.url, Authorization="Bearer wrong") == 401
        assert asked(kandev.url, Authorization=f"Bearer {token}") == 200
        address = kandev.url.replace("http", "ws", 1) + "/ws"
        with pytest.raises(InvalidStatus) as refused:
            async with connect(address, proxy=None):
                pass
        assert refused.value.response.status_code == 401
        kandev.token = token
        assert (await kandev.call("health.check"))["status"] == "ok"
        async with kandev.events() as events:
            assert (await events.request("health.check", {}))["type"] == "response"
        ran = await run(kandev, "call", "health.check")
        assert ran.data["status"] == "ok", "the command line finds the token in the home"
    finally:
        await kandev.end()

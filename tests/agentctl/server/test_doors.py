"""Who may come in, and what bad input gets."""

import asyncio
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from kandev.agentctl import fences, home
from kandev.agentctl.refusals import Refused
from kandev.wire.agentctl import EPOCH_HEADER, Process
from tests.agentctl.server.hosts import QUICK, TOKEN, Host, eventually, host_in


@pytest.mark.proves("CTL-health")
async def test_health_needs_no_token_and_tells_version_instances_and_uptime(host: Host) -> None:
    await host.create()
    answer = await host.ask("GET", "/health", Authorization="")
    assert answer.status == 200
    assert (answer.body["version"], answer.body["instances"]) == ("1.2.3", 1)
    assert answer.body["uptime_s"] >= 0


@pytest.mark.proves("CTL-token")
@pytest.mark.parametrize("token", ["", "Bearer wrong", "Basic token-of-the-test"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/api/v1/instances"),
        ("POST", "/api/v1/instances"),
        ("GET", "/api/v1/instances/e1"),
        ("DELETE", "/api/v1/instances/e1"),
        ("POST", "/instances/e1/api/v1/acp/prompt"),
        ("POST", "/instances/e1/api/v1/acp/cancel"),
        ("GET", "/instances/e1/api/v1/acp/dispatch/d1?prompt_generation=1"),
        ("POST", "/instances/e1/api/v1/acp/permissions/p1"),
        ("POST", "/instances/e1/api/v1/stop"),
    ],
)
async def test_everything_else_needs_the_token(host: Host, method: str, path: str, token: str) -> None:
    answer = await host.ask(method, path, {}, Authorization=token)
    assert (answer.status, answer.reason) == (401, "unauthorized")


async def test_a_foreign_host_name_is_refused(host: Host) -> None:
    for name in ("evil.example", "127.0.0.1.evil.example", ""):
        answer = await host.http.get("/health", headers={"Host": name})
        assert answer.status_code in (400, 403)
    for name in ("localhost", "127.0.0.1:1", "agentctl.test:80", "[::1]:5"):
        assert (await host.http.get("/health", headers={"Host": name})).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"\xff", 400), (b"[]", 422), (b'{"dispatch_id":1}', 422), (b'{"dispatch_id":"d"}', 422)],
)
async def test_a_body_that_is_wrong_is_refused_with_a_sentence(host: Host, body: bytes, status: int) -> None:
    await host.create()
    answer = await host.of("e1", "POST", "acp/prompt", body)
    assert (answer.status, answer.reason) == (status, "invalid")
    assert answer.body["message"]
    assert (await host.prompt(1)).status == 202


async def test_a_client_that_goes_away_in_mid_request_is_no_mistake_of_ours(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    await host.create()
    address = urlsplit(host.url)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    head = (
        "POST /instances/e1/api/v1/acp/prompt HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"
        f"Authorization: Bearer {TOKEN}\r\nKandev-Epoch: {host.epoch}\r\n\r\n"
    )
    writer.write(head.encode() + b'{"dispatch_id": "d1", ')
    await writer.drain()
    await eventually(lambda: not host.activity.silent_for())
    writer.transport.abort()
    await eventually(host.activity.silent_for)
    assert (await host.prompt(1)).status == 202
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


async def test_a_body_that_is_too_long_is_refused(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kandev.agentctl.guarding.BODY_MAX_BYTES", 1000)
    await host.create()
    assert (await host.prompt(1, "x" * 2000)).status == 413
    assert (await host.prompt(1)).status == 202


@pytest.mark.proves("CTL-instances")
async def test_an_unknown_instance_is_404_everywhere(host: Host) -> None:
    for method, path, body in (
        ("GET", "/api/v1/instances/nobody", None),
        ("POST", "/instances/nobody/api/v1/acp/cancel", {"prompt_generation": 1}),
        ("POST", "/instances/nobody/api/v1/acp/permissions/p1", {"cancelled": True}),
        ("GET", "/instances/nobody/api/v1/acp/dispatch/d1?prompt_generation=1", None),
        ("POST", "/instances/nobody/api/v1/stop", {}),
        ("DELETE", "/api/v1/instances/nobody", None),
    ):
        answer = await host.ask(method, path, body)
        assert (answer.status, answer.reason) == (404, "unknown_instance"), path
    assert (await host.ask("GET", "/elsewhere")).status == 404
    assert (await host.ask("PUT", "/api/v1/instances", {})).status == 405


@pytest.mark.parametrize("execution", ["", "../up", "a/b", ".hidden", "x" * 200, "a b"])
async def test_an_execution_id_that_is_no_folder_name_is_refused(host: Host, execution: str) -> None:
    answer = await host.create(execution)
    assert (answer.status, answer.reason) == (422, "invalid")


async def test_a_command_that_cannot_be_started_is_told_in_one_sentence(host: Host) -> None:
    answer = await host.create(command=["missing"])
    assert (answer.status, answer.reason) == (409, "launch_failed")
    assert answer.body["message"] == "There is no program 'missing'."
    assert (await host.create(command=["missing"])).reason == "launch_failed"


@pytest.mark.field("A31", "D49")
async def test_a_launch_that_fails_is_torn_down_before_it_is_answered(host: Host) -> None:
    host.stage.start_failure = "Please log in first."
    answer = await host.create()
    assert answer.body["message"] == "Please log in first."
    assert answer.body["stderr_tail"] == ["a last line"]
    assert answer.body["exit_code"] == -15
    assert host.agent().forces


@pytest.mark.proves("CTL-fence-epoch")
async def test_the_highest_epoch_outlives_agentctl(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        host.epoch = 7
        await host.create()
        low = await host.ask("GET", "/api/v1/instances", **{EPOCH_HEADER: "6"})
        assert (low.status, low.reason) == (412, "old_epoch")
    async with host_in(tmp_path) as host:
        host.epoch = 6
        assert (await host.create("e2")).reason == "old_epoch"
        host.epoch = 7
        assert (await host.create("e2")).status == 201


@pytest.mark.proves("CTL-fence-epoch")
async def test_an_acting_request_without_epoch_is_refused_once_one_was_seen(host: Host) -> None:
    await host.create()
    assert (await host.of("e1", "POST", "stop", {}, **{EPOCH_HEADER: ""})).status == 412
    assert (await host.ask("GET", "/api/v1/instances", **{EPOCH_HEADER: ""})).status == 200
    assert (await host.ask("GET", "/api/v1/instances", **{EPOCH_HEADER: "many"})).status == 400


@pytest.mark.proves("CTL-fence-instance-id")
async def test_a_tombstone_outlives_agentctl(tmp_path: Path) -> None:
    async with host_in(tmp_path) as host:
        assert (await host.ask("DELETE", "/api/v1/instances/e1")).status == 404
    async with host_in(tmp_path) as host:
        answer = await host.create()
        assert (answer.status, answer.reason) == (409, "tombstone")


def test_only_the_newest_tombstones_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (home, fences):
        monkeypatch.setattr(module, "KEPT_TOMBSTONES", 3)
    with closing(home.Home(tmp_path)) as place:
        fence = fences.Fences(place)
        for number in range(8):
            fence.bury(f"e{number}")
        fence.check_buried("e0")
        for number in (4, 5, 6, 7):
            with pytest.raises(Refused):
                fence.check_buried(f"e{number}")
    assert (tmp_path / "agentctl" / "tombstones").read_text().split() == ["e4", "e5", "e6", "e7"]


@pytest.mark.field("A31", "B27")
async def test_a_stop_while_starting_gives_the_launch_up(host: Host) -> None:
    host.stage.delay_starts = True
    creating = asyncio.create_task(host.create())
    await eventually(lambda: "e1" in host.stage.agents)
    assert (await host.stop()).status == 200
    answer = await creating
    assert (answer.status, answer.reason) == (409, "launch_failed")
    assert "stopped" in answer.body["message"]


@pytest.mark.field("D07")
async def test_a_launch_has_a_deadline(tmp_path: Path) -> None:
    import dataclasses

    async with host_in(tmp_path, dataclasses.replace(QUICK, launch_s=0.05)) as host:
        host.stage.delay_starts = True
        answer = await host.create()
    assert answer.reason == "launch_failed"
    assert "0.05 s" in answer.body["message"]


async def test_an_exit_while_starting_is_told_with_its_code(host: Host) -> None:
    host.stage.delay_starts = True
    creating = asyncio.create_task(host.create())
    await eventually(lambda: "e1" in host.stage.agents)
    host.agent().exit(3)
    answer = await creating
    assert answer.body["exit_code"] == 3
    assert "code 3" in answer.body["message"]


@pytest.mark.field("D07")
async def test_a_launch_goes_on_when_its_client_goes_away(host: Host) -> None:
    host.stage.delay_starts = True
    with pytest.raises(httpx.ReadTimeout):
        await host.http.post(
            "/api/v1/instances",
            json={
                "execution_id": "e1",
                "session_id": "s",
                "task_id": "t",
                "protocol": "acp",
                "command": ["agent"],
                "cwd": "/",
            },
            headers={"Authorization": "Bearer token-of-the-test", EPOCH_HEADER: "1"},
            timeout=0.1,
        )
    host.agent().may_start.set()
    assert (await host.create()).body["state"] == "ready"


@pytest.mark.proves("CTL-delete-survivors")
@pytest.mark.field("E05")
async def test_what_a_delete_could_not_end_stays_on_record_and_is_tried_again_until_it_is_gone(
    host: Host,
) -> None:
    await host.create()
    agent = host.agent()
    agent.survivors = [Process(pid=7, start_time=1, command="sleep 1000")]
    left = {"pid": 7, "start_time": 1, "command": "sleep 1000"}
    for _ in range(2):
        answer = await host.ask("DELETE", "/api/v1/instances/e1")
        assert answer.body["survivors"] == [left]
    tried = len(agent.forces)
    await eventually(lambda: len(agent.forces) > tried + 1)
    assert (await host.ask("GET", "/api/v1/instances/e1")).body["survivors"] == [left]
    assert (await host.create()).reason == "tombstone"
    agent.survivors = []
    await eventually(lambda: not (host.home.journals / "e1").exists())
    assert (await host.ask("GET", "/api/v1/instances/e1")).status == 404

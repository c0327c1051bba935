"""The mock agent's process: how it starts, how a script or the outside ends it, and what it outlives."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.mock_agent.driver import COMMAND, DEADLINE_S, Peer, PeerError


@pytest.mark.proves("MOCK-exit")
async def test_exit_ends_the_process_in_the_middle_of_a_turn(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "say last words\nexit 7\nsay never")
    assert await peer.exit_code() == 7
    await peer.until_said(session, "last words")
    with pytest.raises(ConnectionError):
        await turn.end()


@pytest.mark.proves("MOCK-crash")
async def test_crash_kills_the_process_in_the_middle_of_a_turn(peer: Peer, session: str) -> None:
    turn = peer.prompt(session, "say last words\ncrash")
    assert await peer.exit_code() == -signal.SIGKILL
    await peer.until_said(session, "last words")
    with pytest.raises(ConnectionError):
        await turn.end()


@pytest.mark.parametrize("line", ["sleep 60", "deaf 60", "silent", "stream 1000000 0", "ask me"])
async def test_a_closed_stdin_ends_it_in_the_middle_of_a_turn(peer: Peer, session: str, line: str) -> None:
    peer.prompt(session, line)
    await peer.round_trip(session)
    peer.close_stdin()
    assert await peer.exit_code() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_a_signal_ends_it_in_the_middle_of_a_turn(
    peer: Peer, session: str, number: signal.Signals, code: int
) -> None:
    peer.prompt(session, "deaf 60")
    await peer.round_trip(session)
    peer.process.send_signal(number)
    assert await peer.exit_code() == code


@pytest.mark.proves("MOCK-stubborn")
async def test_stubborn_outlives_a_closed_stdin_and_sigterm(peer: Peer, session: str) -> None:
    await peer.prompt(session, "stubborn\nwake 0.3 still here").end()
    peer.close_stdin()
    peer.process.terminate()
    await peer.until_said(session, "still here")
    assert peer.process.returncode is None
    peer.process.kill()
    assert await peer.exit_code() == -signal.SIGKILL


@pytest.mark.proves("MOCK-login")
async def test_after_login_a_new_session_demands_authentication(peer: Peer, session: str, work: Path) -> None:
    await peer.prompt(session, "login").end()
    with pytest.raises(PeerError) as demanded:
        await peer.new(work)
    assert demanded.value.error["code"] == -32000
    (method,) = demanded.value.error["data"]["authMethods"]
    assert await peer.prompt(session, "say goes on").end() == {"stopReason": "end_turn"}
    with pytest.raises(PeerError):
        await peer.call("authenticate", {"methodId": "another"})
    await peer.call("authenticate", {"methodId": method["id"]})
    assert await peer.new(work)


@pytest.mark.proves("MOCK-login")
async def test_a_fresh_agent_can_demand_authentication(work: Path) -> None:
    async with Peer.start(work, {"MOCK_AGENT_LOGIN": "1"}) as peer:
        methods = (await peer.initialize())["authMethods"]
        with pytest.raises(PeerError) as demanded:
            await peer.new(work)
        assert demanded.value.error["data"] == {"authMethods": methods}


async def test_it_can_answer_nothing_but_the_version(work: Path) -> None:
    async with Peer.start(work, {"MOCK_AGENT_START": "bare"}) as peer:
        assert await peer.initialize() == {"protocolVersion": 1}
        assert await peer.new(work)


async def test_it_can_leave_out_load_and_http_servers(work: Path) -> None:
    async with Peer.start(work, {"MOCK_AGENT_START": "noload, nohttp"}) as peer:
        capabilities = (await peer.initialize())["agentCapabilities"]
        assert capabilities["loadSession"] is False
        assert capabilities["mcpCapabilities"] == {"http": False, "sse": False}
        with pytest.raises(PeerError) as unknown:
            await peer.load(await peer.new(work), work)
        assert unknown.value.error["code"] == -32601


async def test_it_can_begin_with_garbage(work: Path) -> None:
    async with Peer.start(work, {"MOCK_AGENT_START": "garbage"}) as peer:
        assert (await peer.initialize())["protocolVersion"] == 1
        assert len(peer.not_json) == 4


async def test_it_can_be_silent_from_the_start(work: Path) -> None:
    async with Peer.start(work, {"MOCK_AGENT_START": "silent"}) as peer:
        reply = peer.request("initialize", {"protocolVersion": 1})
        peer.send_raw(b"not JSON\n")
        await peer.until(lambda: peer.frames)
        assert not reply.done()
        assert [frame["error"]["code"] for frame in peer.frames] == [-32700]


async def test_it_can_be_slow_to_start(work: Path) -> None:
    async with Peer.start(work, {"MOCK_AGENT_START": "slow 0.2"}) as peer:
        reply = peer.request("initialize", {"protocolVersion": 1})
        await peer.new(work)
        assert not reply.done()
        assert (await asyncio.wait_for(reply, DEADLINE_S))["protocolVersion"] == 1


async def test_what_goes_over_the_wire_can_be_logged(work: Path, tmp_path: Path) -> None:
    log = tmp_path / "wire.jsonl"
    async with Peer.start(work, {"MOCK_AGENT_LOG": str(log)}) as peer:
        await peer.initialize()
        session = await peer.new(work)
        turn = peer.prompt(session, "sleep 60")
        peer.cancel(session)
        await turn.end()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    received = [json.loads(line["line"]) for line in lines if line["dir"] == "<"]
    cancel = {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}
    assert received[-1] == cancel
    assert [frame.get("method") for frame in received][:2] == ["initialize", "session/new"]


@pytest.mark.parametrize(
    ("arguments", "start", "code", "said"),
    [
        (["--protocol", "codex"], "", 2, "The mock agent speaks ACP only: leave --protocol codex out."),
        (["--protocol=telnet"], "", 2, "The mock agent does not know the protocol 'telnet'"),
        (["now"], "", 2, "The mock agent does not know the arguments 'now'."),
        ([], "sideways", 2, "MOCK_AGENT_START does not know 'sideways'"),
        ([], "exit 3", 3, ""),
        (["--protocol", "acp"], "", 0, ""),
    ],
)
def test_its_command_line_and_variables_are_checked(
    work: Path, arguments: list[str], start: str, code: int, said: str
) -> None:
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [*COMMAND, *arguments],
        env={"PYTHONPATH": source, "MOCK_AGENT_START": start},
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == (1 if said else 0)


def test_a_regular_file_can_be_its_stdin_and_stdout(work: Path) -> None:
    source = str(Path(__file__).parents[2] / "src")
    frames = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}]
    script, output = work / "in", work / "out"
    script.write_text("".join(json.dumps(frame) for frame in frames))
    with script.open("rb") as stdin, output.open("wb") as stdout:
        subprocess.run(
            COMMAND, env={"PYTHONPATH": source}, stdin=stdin, stdout=stdout, timeout=10, check=True
        )
    (line,) = output.read_text().splitlines()
    assert json.loads(line)["id"] == 1

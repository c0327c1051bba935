"""An agent's process: its pipes, its exit, its environment, and starts that fail."""

import asyncio
import os
from pathlib import Path

import pytest

from kandev.agentctl.adapters.base import StartFailed, WriteFailed
from kandev.agentctl.process import agent_environment, past_proxies, spawn
from kandev.agentctl.settings import Settings
from tests.agentctl.process.conftest import Spawn


async def read_all(process: object) -> bytes:
    data = b""
    while chunk := await process.read():  # type: ignore[attr-defined]
        data += chunk
    return data


async def test_what_is_written_to_an_agent_comes_back_whole(start: Spawn) -> None:
    process = await start("cat")
    sent = b"x" * 300_000
    reading = asyncio.create_task(read_all(process))
    await process.write(sent)
    await process.close_input()
    assert await reading == sent
    assert await process.exited() == 0


@pytest.mark.proves("CTL-process-exited")
async def test_an_exit_is_told_with_its_code_and_the_end_of_stderr(start: Spawn) -> None:
    process = await start("for i in 1 2 3 4 5 6 7 8 9; do echo line $i >&2; done; printf last >&2; exit 7")
    assert await process.exited() == 7
    assert await process.exited() == 7
    assert process.stderr_tail() == ["line 6", "line 7", "line 8", "line 9", "last"]


@pytest.mark.field("E07")
async def test_a_signal_is_told_as_a_negative_code(start: Spawn) -> None:
    process = await start("kill -9 $$")
    assert await process.exited() == -9


async def test_output_that_was_not_read_before_the_end_can_be_read_after_it(start: Spawn) -> None:
    process = await start("echo early; cat; echo late")
    assert await process.read() == b"early\n"
    assert await process.end(force=False) == []
    assert await read_all(process) == b"late\n"


async def test_a_grandchild_that_holds_the_pipes_hides_neither_exit_nor_end_of_output(
    start: Spawn, settings: Settings
) -> None:
    process = await start("setsid sleep 600 & echo bye; exit 4")
    async with asyncio.timeout(5):
        assert await read_all(process) == b"bye\n"
        assert await process.exited() == 4


async def test_an_agent_that_floods_stderr_is_not_blocked(start: Spawn) -> None:
    process = await start("yes complaint | head -c 5000000 >&2; echo done")
    async with asyncio.timeout(20):
        assert await read_all(process) == b"done\n"
    assert set(process.stderr_tail()[-5:]) <= {"complaint", "compl", "complaint"[: 5000000 % 10]}


async def test_an_agent_that_does_not_read_fails_the_write_at_its_deadline(start: Spawn) -> None:
    process = await start("exec sleep 600")
    with pytest.raises(WriteFailed, match="did not read"):
        await process.write(b"x" * 1_000_000)
    with pytest.raises(WriteFailed):
        await process.write(b"more")


async def test_a_closed_stdin_fails_the_write_with_a_sentence(start: Spawn) -> None:
    process = await start("exec <&-; echo closed; exec sleep 600")
    assert await process.read() == b"closed\n"
    with pytest.raises(WriteFailed, match="closed"):
        await process.write(b"hello")


async def test_a_caller_that_is_cancelled_does_not_tear_its_message(start: Spawn) -> None:
    process = await start("read line; sleep 0.1; printf '%s\\n' \"$line\"; cat")
    first = asyncio.create_task(process.write(b"go\n" + b"y" * 200_000 + b"\n"))
    await asyncio.sleep(0)
    first.cancel()
    reading = asyncio.create_task(read_all(process))
    await process.write(b"second\n")
    await process.close_input()
    assert await reading == b"go\n" + b"y" * 200_000 + b"\nsecond\n"


@pytest.mark.proves("BAD-command-missing")
@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["no-such-command"], "The command no-such-command was not found."),
        ([], "The command is empty."),
    ],
)
async def test_a_command_that_cannot_be_started_is_named_in_one_sentence(
    command: list[str], sentence: str, settings: Settings, tmp_path: Path
) -> None:
    with pytest.raises(StartFailed) as failure:
        await spawn("e", command, str(tmp_path), {"PATH": os.environ["PATH"]}, settings)
    assert str(failure.value) == sentence


async def test_a_working_directory_that_is_missing_is_named(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(StartFailed, match=r"working directory .*gone does not exist"):
        await spawn("e", ["true"], str(tmp_path / "gone"), {"PATH": os.environ["PATH"]}, settings)


async def test_a_file_that_is_not_executable_is_named(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("hello")
    with pytest.raises(StartFailed, match=r"The command /.*/notes is not executable"):
        await spawn("e", [str(tmp_path / "notes")], str(tmp_path), {}, settings)


async def test_a_file_that_is_no_program_is_refused(settings: Settings, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x00\x01\x02")
    program.chmod(0o755)
    with pytest.raises(StartFailed, match="could not be started: Exec format error"):
        await spawn("e", [str(program)], str(tmp_path), {}, settings)


@pytest.mark.proves("CLI-agent-environment")
async def test_an_agent_inherits_the_named_variables_its_profile_and_the_marks_only() -> None:
    inherited = {
        "PATH": "/bin",
        "HOME": "/h",
        "LANG": "C",
        "LC_ALL": "C",
        "TERM": "dumb",
        "TMPDIR": "/t",
        "https_proxy": "http://127.0.0.1:1",
        "NO_PROXY": "localhost",
        "SSL_CERT_FILE": "/c",
        "KANDEV_TOKEN": "secret",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "LCD": "no",
        "PYTHONPATH": "/no",
    }
    environment = agent_environment(inherited, {"API_KEY": "profile", "PATH": "/mine"})
    assert "secret" not in environment.values()
    assert set(inherited) - set(environment) == {"KANDEV_TOKEN", "AWS_SECRET_ACCESS_KEY", "LCD", "PYTHONPATH"}
    assert environment["PATH"] == "/mine"
    assert environment["API_KEY"] == "profile"


async def test_an_agent_gets_exactly_that_environment_and_the_execution_mark(start: Spawn) -> None:
    process = await start("exec cat /proc/self/environ", execution_id="execution-9", OWN="1")
    names = {entry.partition(b"=")[0] for entry in (await read_all(process)).split(b"\0")}
    assert {b"KANDEV_EXECUTION", b"KANDEV_HOME", b"KANDEV_INCARNATION", b"OWN"} <= names
    assert process.environment["KANDEV_EXECUTION"] == "execution-9"
    assert b"KANDEV_TOKEN" not in names
    assert b"PYTEST_CURRENT_TEST" not in names


async def test_an_agent_has_no_terminal_to_ask_at(start: Spawn) -> None:
    process = await start("if (exec </dev/tty) 2>/dev/null; then echo tty; else echo none; fi")
    assert await read_all(process) == b"none\n"


@pytest.mark.parametrize("spared", [{}, {"no_proxy": "a.example, 127.0.0.1"}, {"NO_PROXY": "a.example"}])
def test_an_agent_behind_a_proxy_asks_this_machine_itself(spared: dict[str, str]) -> None:
    """Its tools are served there."""
    environment = past_proxies({"https_proxy": "http://proxy.example", **spared})
    for name in ("no_proxy", "NO_PROXY"):
        assert {"127.0.0.1", "localhost"} <= set(environment[name].split(","))
        assert ("a.example" in environment[name]) == bool(spared)
    assert environment["https_proxy"] == "http://proxy.example"


def test_an_agent_without_a_proxy_hears_of_none() -> None:
    assert past_proxies({"PATH": "/bin", "HTTP_PROXY": ""}) == {"PATH": "/bin", "HTTP_PROXY": ""}

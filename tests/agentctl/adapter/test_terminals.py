"""`terminal/*`: commands that the agent has us run."""

import asyncio
from pathlib import Path

import pytest

from kandev.agentctl.adapters.acp.terminals import Kept
from kandev.agentctl.looking import read_stat
from tests.agentctl.adapter.peer import DEADLINE_S, MakeStage, Message, Stage


async def create(stage: Stage, command: str, *args: str, **more: object) -> str:
    params = {"sessionId": "s1", "command": command, "args": list(args), **more}
    return str((await stage.agent.ask("terminal/create", params))["result"]["terminalId"])


async def ask(stage: Stage, method: str, terminal: str) -> Message:
    return await stage.agent.ask(f"terminal/{method}", {"sessionId": "s1", "terminalId": terminal})


async def finish(stage: Stage, terminal: str) -> tuple[Message, Message]:
    exit_status = (await ask(stage, "wait_for_exit", terminal))["result"]
    return exit_status, (await ask(stage, "output", terminal))["result"]


@pytest.mark.proves("ACP-terminal")
async def test_a_command_runs_in_the_worktree_and_its_output_and_exit_are_told(
    stage: Stage, worktree: Path
) -> None:
    terminal = await create(
        stage, "sh", "-c", "pwd; echo $X >&2; exit 3", env=[{"name": "X", "value": "err"}]
    )
    exit_status, output = await finish(stage, terminal)
    assert exit_status == {"exitCode": 3, "signal": None}
    assert output == {"output": f"{worktree}\nerr\n", "truncated": False, "exitStatus": exit_status}
    assert (await ask(stage, "release", terminal))["result"] == {}
    assert (await ask(stage, "output", terminal))["error"]["code"] == -32602


@pytest.mark.proves("ACP-terminal")
async def test_a_running_command_has_no_exit_status_and_can_be_killed(stage: Stage) -> None:
    terminal = await create(stage, "sh", "-c", "echo up; setsid sleep 600 & sleep 600")
    async with asyncio.timeout(DEADLINE_S):
        while not (answer := (await ask(stage, "output", terminal))["result"])["output"]:
            await asyncio.sleep(0)
    assert answer == {"output": "up\n", "truncated": False}
    assert (await ask(stage, "kill", terminal))["result"] == {}
    exit_status, output = await finish(stage, terminal)
    assert exit_status == {"exitCode": None, "signal": "SIGTERM"}
    assert output["output"] == "up\n"


@pytest.mark.proves("ACP-terminal")
async def test_waiting_for_an_exit_holds_up_nothing_else(stage: Stage) -> None:
    terminal = await create(stage, "sleep", "600")
    waiting = {"sessionId": "s1", "terminalId": terminal}
    stage.agent.say({"id": "wait", "method": "terminal/wait_for_exit", "params": waiting})
    stage.agent.text("meanwhile")
    await stage.sink.until("MessageChunk")
    stage.agent.say({"id": "kill", "method": "terminal/kill", "params": waiting})
    answers = {(await stage.agent.next())["id"] for _ in range(2)}
    assert answers == {"wait", "kill"}


@pytest.mark.proves("ACP-terminal")
async def test_a_whole_shell_line_as_the_command_is_run_by_a_shell(stage: Stage) -> None:
    terminal = await create(stage, "echo one && echo two | tr a-z A-Z")
    assert (await finish(stage, terminal))[1]["output"] == "one\nTWO\n"


@pytest.mark.proves("ACP-terminal")
async def test_output_beyond_the_limit_is_cut_at_the_front_between_characters(stage: Stage) -> None:
    terminal = await create(stage, "printf", "ééééé", outputByteLimit=5)
    output = (await finish(stage, terminal))[1]
    assert (output["output"], output["truncated"]) == ("éé", True)


@pytest.mark.proves("ACP-terminal")
@pytest.mark.field("E13")
async def test_terminals_carry_the_marks_and_die_with_the_agent(stages: MakeStage) -> None:
    stage = stages()
    await stage.open()
    env = [{"name": "KANDEV_EXECUTION", "value": "forged"}]
    terminal = await create(stage, "sh", "-c", "env | grep ^KANDEV_E; echo $$; exec sleep 600", env=env)
    async with asyncio.timeout(DEADLINE_S):
        while (output := (await ask(stage, "output", terminal))["result"]["output"]).count("\n") < 2:
            await asyncio.sleep(0)
    mark, pid = output.splitlines()
    assert mark == "KANDEV_EXECUTION=e1"
    await stage.close()
    async with asyncio.timeout(DEADLINE_S):
        while (stat := read_stat(int(pid))) is not None and stat.alive:
            await asyncio.sleep(0)


@pytest.mark.parametrize(
    "params",
    [
        {"command": ""},
        {"command": None},
        {"command": "true", "args": "x"},
        {"command": "true", "args": [1]},
        {"command": "no-such-command"},
        {"command": "true", "cwd": "/"},
        {"command": "true", "cwd": "relative"},
        {"command": "true", "outputByteLimit": -1},
        {"command": "true", "outputByteLimit": "x"},
    ],
    ids=str,
)
async def test_a_terminal_that_cannot_be_is_refused_with_a_sentence(stage: Stage, params: Message) -> None:
    answer = await stage.agent.ask("terminal/create", params)
    assert answer["error"]["message"].endswith(".")


async def test_there_is_a_bound_on_terminals(stage: Stage) -> None:
    answers = [await stage.agent.ask("terminal/create", {"command": "true"}) for _ in range(65)]
    assert "64 terminals already" in answers[-1]["error"]["message"]


@pytest.mark.parametrize("method", ["output", "wait_for_exit", "kill", "release"])
async def test_an_unknown_terminal_is_refused(stage: Stage, method: str) -> None:
    assert "There is no terminal 'x'" in (await ask(stage, method, "x"))["error"]["message"]


@pytest.mark.field("E03")
def test_kept_output_never_grows_beyond_its_limit() -> None:
    kept = Kept(10)
    for piece in ("abc", "🙂🙂", "defghijkl", "é" * 30):
        kept.add(piece.encode())
        assert len(kept.text().encode()) <= 10
    assert (kept.text(), kept.truncated) == ("é" * 5, True)

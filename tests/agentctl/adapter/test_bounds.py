"""What an agent can make agentctl keep is bounded, whatever it sends and however long it goes on."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kandev.agentctl.adapters.acp.calls import MOST_OPTIONS, REMEMBERED, Permissions, ToolCalls
from kandev.agentctl.adapters.acp.documents import LONGEST_WORD, SENTENCE_MAX, kept_id
from kandev.agentctl.adapters.acp.serving import MOST, REFUSALS, TOO_MUCH
from kandev.agentctl.adapters.acp.terminals import OUTPUTS_BYTES, Terminals
from kandev.agentctl.adapters.acp.updates import ABOUT_BYTES, SETTINGS_KEPT, Updates
from kandev.agentctl.attribution import REMEMBERED as IDS
from kandev.agentctl.attribution import Attribution, Identity
from kandev.agentctl.rpc import Call
from kandev.agentctl.settings import Settings
from kandev.agentctl.tasks import Few, Tasks
from kandev.wire import agentctl as wire
from tests.agentctl.adapter.peer import DEADLINE_S, MakeStage, Stage, make_stage

LONG = "x" * 1_000_000
pytestmark = pytest.mark.proves("SURVIVE-hostile-agent-memory")


def test_a_long_id_is_kept_short_and_tells_itself_from_others() -> None:
    assert kept_id("short") == "short"
    assert len(kept_id(LONG)) < 2 * LONGEST_WORD
    assert kept_id(LONG) == kept_id(LONG) != kept_id(LONG + "y")


def test_of_the_ids_of_a_turn_the_newest_are_known_after_its_end() -> None:
    attribution = Attribution(late_s=1)
    attribution.started(Identity(1))
    for n in range(IDS + 10):
        attribution.of_output(wire.ToolCall, {"tool_call_id": str(n)}, 0)
    attribution.ended(0)
    late = {n: attribution.of_output(wire.ToolCall, {"tool_call_id": str(n)}, 5) for n in (0, IDS)}
    assert late == {0: None, IDS: Identity(1)}
    for n in range(2 * IDS):
        attribution.of_output(wire.ToolCall, {"tool_call_id": f"late-{n}"}, 0.5)
    assert attribution.of_output(wire.ToolCall, {"tool_call_id": str(IDS)}, 5) is None


def test_tool_calls_that_never_finish_are_known_up_to_a_bound() -> None:
    calls = ToolCalls()
    for n in range(3 * REMEMBERED):
        calls.seen({"toolCallId": f"{n}{LONG[:5000]}", "title": LONG[:5000], "status": "in_progress"})
    running = calls.take_running()
    assert len(running) == REMEMBERED
    assert sum(len(call_id) + len(calls.get(call_id).title) for call_id in running) < REMEMBERED * 3000


def test_a_call_that_runs_is_known_longer_than_those_that_are_done() -> None:
    calls = ToolCalls()
    calls.seen({"toolCallId": "long", "title": "Long", "status": "in_progress"})
    for n in range(3 * REMEMBERED):
        calls.seen({"toolCallId": str(n), "status": "completed"})
    assert calls.take_running() == ["long"] and calls.get("long").title == "Long"


def test_a_permission_request_keeps_nothing_of_what_was_sent_along_but_its_options() -> None:
    permissions, options = Permissions(), [{"optionId": str(n), "name": LONG} for n in range(500)]
    params = {"toolCall": {"toolCallId": LONG, "title": LONG, "rawInput": LONG}, "options": options}
    call = Call(None, 1, "session/request_permission", params)  # type: ignore[arg-type]
    asked = permissions.ask(call, ToolCalls())
    assert len(asked.options) == MOST_OPTIONS
    assert all(len(option.name) < SENTENCE_MAX + 50 for option in asked.options)
    assert len(asked.title) < SENTENCE_MAX + 50 and len(asked.tool_call_id or "") < 2 * LONGEST_WORD
    assert [one.call.params for one in permissions._open.values()] == [{}]


def test_an_option_whose_id_is_endless_is_not_offered() -> None:
    options = [{"optionId": LONG}, {"optionId": "ok"}]
    call = Call(None, 1, "session/request_permission", {"options": options})  # type: ignore[arg-type]
    assert [option.option_id for option in Permissions().ask(call, ToolCalls()).options] == ["ok"]


def test_what_an_agent_says_of_itself_is_kept_within_a_bound() -> None:
    updates = Updates()
    commands = [{"name": f"c{n}", "description": "d" * 1000} for n in range(500)]
    ((_, said),) = updates.frames(
        {"sessionUpdate": "available_commands_update", "availableCommands": commands}
    )
    assert said["commands"] == commands[: len(said["commands"])]
    assert len(said["commands"]) * 1000 <= ABOUT_BYTES < len(said["commands"]) * 1100
    assert updates.frames({"sessionUpdate": "usage_update", "used": LONG}) == []
    ((_, said),) = updates.frames({"sessionUpdate": "current_mode_update", "currentModeId": LONG})
    assert len(said["mode"]) == LONGEST_WORD


def test_settings_that_an_agent_makes_up_are_kept_and_told_up_to_a_bound() -> None:
    updates = Updates()
    options: list[Any] = [{"id": f"{n}{LONG}", "name": LONG, "currentValue": LONG} for n in range(150)]
    said = updates.frames({"sessionUpdate": "config_option_update", "configOptions": options})
    assert len(said) == SETTINGS_KEPT
    assert all(len(members["text"]) < 2 * SENTENCE_MAX for _, members in said)
    assert len(str(updates._settings)) < SETTINGS_KEPT * 2 * SENTENCE_MAX
    assert updates.frames({"sessionUpdate": "config_option_update", "configOptions": options}) == []


def test_names_of_the_agents_making_are_cut_in_notices() -> None:
    for update in (
        {"sessionUpdate": LONG},
        {"sessionUpdate": [LONG]},
        {"sessionUpdate": "session_info_update", "title": LONG},
    ):
        ((_, members),) = Updates().frames(update)
        assert len(members["text"]) < 2 * SENTENCE_MAX


async def test_a_request_with_an_endless_id_is_no_message(stages: MakeStage) -> None:
    stage = stages()
    await stage.open()
    stage.agent.say({"id": LONG[:50_000], "method": "terminal/wait_for_exit", "params": {}})
    assert "no protocol message" in (await stage.sink.until("Notice"))["text"]


# -- requests ---------------------------------------------------------------------------------------


@pytest.mark.proves("SURVIVE-hostile-agent-requests")
async def test_requests_beyond_the_bound_are_refused_at_once_and_it_is_said_once(stage: Stage) -> None:
    created = await stage.agent.ask("terminal/create", {"command": "sleep", "args": ["600"]}, "t")
    waiting = {"terminalId": created["result"]["terminalId"]}
    for number in range(MOST + 300):
        stage.agent.say({"id": number, "method": "terminal/wait_for_exit", "params": waiting})
    refused = [await stage.agent.next() for _ in range(300)]
    assert {answer["error"]["code"] for answer in refused} == {TOO_MUCH}
    assert sorted(answer["id"] for answer in refused) == list(range(MOST, MOST + 300))
    stage.agent.text("alive")
    await stage.sink.until("MessageChunk")
    (notice,) = stage.sink.of("Notice")
    assert "asks too much at once" in notice["text"]


@pytest.mark.proves("SURVIVE-hostile-agent-requests")
async def test_requests_that_hold_too_much_data_are_refused(stages: MakeStage, worktree: Path) -> None:
    stage = stages()
    await stage.open()
    created = await stage.agent.ask("terminal/create", {"command": "sleep", "args": ["600"]}, "t")
    waiting = {"terminalId": created["result"]["terminalId"], "filler": "x" * 90_000}
    for number in range(4):
        stage.agent.say({"id": number, "method": "terminal/wait_for_exit", "params": waiting})
    refused = [await stage.agent.next() for _ in range(2)]
    assert [answer["id"] for answer in refused] == [2, 3], "two of the longest lines are held"


@pytest.mark.proves("SURVIVE-hostile-agent-requests")
async def test_an_agent_that_takes_no_refusals_is_not_read_on_until_its_input_is_given_up(
    worktree: Path, settings: Settings
) -> None:
    stage = make_stage(str(worktree), replace(settings, write_s=0.5))
    await stage.open()
    agent, full = stage.agent, asyncio.Event()
    begun = 0

    async def never(data: bytes) -> None:
        nonlocal begun
        begun += 1
        full.set()
        await asyncio.Event().wait()

    agent.write = never  # type: ignore[method-assign]
    for number in range(10_000):
        agent.say({"id": number, "method": "nonsense", "params": {}})
    stage.agent.text("behind them")
    await asyncio.wait_for(full.wait(), DEADLINE_S)
    for _ in range(20_000):  # far more turns of the loop than there are messages
        await asyncio.sleep(0)
    assert begun == MOST + REFUSALS and stage.sink.texts() == ""
    stage.running.cancel()
    await asyncio.wait([stage.running])


async def test_the_terminals_of_one_agent_keep_a_bounded_output_together(
    worktree: Path, settings: Settings
) -> None:
    class Anywhere:
        def inside(self, path: object) -> Path:
            return worktree

    terminals = Terminals(Anywhere(), str(worktree), {"PATH": "/usr/bin:/bin"}, settings)  # type: ignore[arg-type]
    for _ in range(20):
        await terminals.create({"command": "true", "outputByteLimit": 1 << 40})
    assert sum(terminal.limit for terminal in terminals._open.values()) <= OUTPUTS_BYTES + 20 * 64 * 1024
    await terminals.close()


async def test_work_beside_its_caller_holds_the_caller_up_when_too_much_is_under_way() -> None:
    tasks, gate, begun = Tasks(), asyncio.Event(), list[int]()
    few = Few(tasks, 2)

    async def work(n: int) -> None:
        begun.append(n)
        await gate.wait()

    await few.start(work(1), "one")
    await few.start(work(2), "two")
    third = asyncio.create_task(few.start(work(3), "three"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert begun == [1, 2] and not third.done()
    gate.set()
    await third
    await tasks.close()
    fourth = asyncio.create_task(few.start(work(4), "four"))
    await fourth
    await tasks.close()

"""What an instance does around a turn, with an agent that the test plays."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kandev.agentctl.permissions import ANSWERED_KEPT, MOST_OPEN
from kandev.wire import agentctl as wire
from tests.agentctl.server.hosts import QUICK, SOON, Host, eventually, host_in


@pytest.mark.proves("TURN-latched")
@pytest.mark.field("A17", "A35")
async def test_a_cancel_waits_until_the_prompt_is_written(host: Host) -> None:
    await host.create()
    agent = host.agent()
    agent.may_write.clear()
    prompting = asyncio.create_task(host.prompt(1))
    await eventually(lambda: host.instances.get("e1").works)
    cancelling = asyncio.create_task(host.cancel(1))
    turn = host.instances.get("e1").turns.current
    assert turn is not None
    await eventually(lambda: turn.cancelling)
    assert agent.cancels == []
    agent.may_write.set()
    assert (await prompting).status == 202
    assert (await cancelling).body == {"success": True, "outcome": "acknowledged", "error": None}
    assert agent.cancels[0] >= agent.prompted_at


@pytest.mark.proves("TURN-repeated", "HOLE-17")
@pytest.mark.field("B07", "B23")
async def test_a_cancel_is_repeated_until_the_end_and_never_after_it(host: Host) -> None:
    await host.create()
    agent = host.agent()
    agent.heeds_cancel = False
    await host.prompt(1)
    cancelling = asyncio.create_task(host.cancel(1))
    joined = asyncio.create_task(host.cancel(1))
    await eventually(lambda: len(agent.cancels) == 3)
    await agent.ends("cancelled")
    assert (await cancelling).body["outcome"] == (await joined).body["outcome"] == "acknowledged"
    written = len(agent.cancels)
    assert (await host.prompt(2)).status == 202
    await agent.ends()
    assert len(agent.cancels) == written


@pytest.mark.proves("HOLE-17")
async def test_a_cancel_that_is_about_to_be_written_at_the_turns_end_is_not(host: Host) -> None:
    await host.create()
    agent, instance = host.agent(), host.instances.get("e1")
    await host.prompt(1)
    turn = instance.turns.current
    assert turn is not None
    await agent.ends()
    await instance._cancelling._write(turn)
    assert agent.cancels == []


@pytest.mark.proves("HOLE-17")
@pytest.mark.field("B07", "B21")
async def test_a_prompt_keeps_a_settle_gap_behind_a_written_cancel(host: Host) -> None:
    await host.create()
    agent = host.agent()
    await host.prompt(1)
    await host.cancel(1)
    await host.prompt(2)
    assert agent.prompted_at - agent.cancels[-1] >= QUICK.cancel_settle_s - 0.01


@pytest.mark.field("B21")
async def test_a_prompt_waits_for_a_cancel_that_is_still_being_written(host: Host) -> None:
    await host.create()
    agent = host.agent()
    agent.heeds_cancel = False
    await host.prompt(1)
    agent.may_hear_cancel.clear()
    cancelling = asyncio.create_task(host.cancel(1))
    await eventually(lambda: agent.cancelling)
    await agent.ends()
    prompting = asyncio.create_task(host.prompt(2))
    await eventually(lambda: host.instances.get("e1").works)
    await asyncio.sleep(QUICK.cancel_settle_s * 2)  # the gap alone would be over
    agent.may_hear_cancel.set()
    assert (await prompting).status == 202
    assert (await cancelling).body["outcome"] == "acknowledged"
    assert agent.prompted_at - agent.cancels[-1] >= QUICK.cancel_settle_s - 0.01


@pytest.mark.proves("CTL-cancel")
@pytest.mark.field("A19")
async def test_a_deaf_agent_is_not_acknowledging_within_its_time(host: Host) -> None:
    await host.create(cancel_acknowledge_s=0.2)
    host.agent().heeds_cancel = False
    await host.prompt(1)
    answer = await host.cancel(1)
    assert (answer.status, answer.body["success"], answer.body["outcome"]) == (200, False, "not_acknowledged")
    assert "0.2 s" in answer.body["error"]
    assert (await host.prompt(2)).reason == "busy"


async def test_a_write_that_fails_is_neither_yes_nor_no_and_ends_the_process(host: Host) -> None:
    await host.create()
    host.agent().write_failure = "The agent does not read."
    answer = await host.prompt(1)
    assert answer.status == 503
    assert "reason" not in answer.body
    state = await host.of("e1", "GET", "acp/dispatch/d1?prompt_generation=1")
    assert state.body == {"accepted": None}
    await host.instances.get("e1").ended.wait()
    assert host.kinds()[-1] == "process_exited"
    assert "prompt_accepted" not in host.kinds()


async def test_a_prompt_in_the_settle_gap_of_an_ending_process_is_refused_for_certain(host: Host) -> None:
    await host.create()
    agent = host.agent()
    await host.prompt(1)
    await host.cancel(1)
    prompting = asyncio.create_task(host.prompt(2))
    await eventually(lambda: host.instances.get("e1").works)
    agent.exit(1)
    assert (await prompting).reason == "ended"
    assert agent.prompts == ["go"]
    state = await host.of("e1", "GET", "acp/dispatch/d2?prompt_generation=2")
    assert state.body == {"accepted": False}


async def test_the_turns_end_names_processes_that_outlive_it(host: Host) -> None:
    await host.create()
    agent = host.agent()
    helper = wire.Process(pid=5, start_time=1, command="helper")
    server = wire.Process(pid=6, start_time=2, command="npm start")
    agent.living = [helper]
    await host.prompt(1)
    agent.living = [helper, server]
    await agent.ends()
    ended = (await host.frames())[-1]
    assert isinstance(ended, wire.TurnEnded)
    assert ended.outlived == [server]


@pytest.mark.proves("CTL-fence-own-permissions")
@pytest.mark.field("A13", "B37")
async def test_a_turns_end_closes_its_permission_and_a_later_answer_is_told_so(host: Host) -> None:
    await host.create()
    agent = host.agent()
    await host.prompt(1)
    await agent.asks("p1")
    assert (await host.ask("GET", "/api/v1/instances/e1")).body["open_permissions"] == ["p1"]
    await agent.ends()
    late = await host.of("e1", "POST", "acp/permissions/p1", {"option_id": "yes"})
    assert (late.status, late.reason) == (409, "already_answered")
    await eventually(lambda: agent.answers == [("p1", "cancelled")])
    assert host.kinds()[-2:] == ["permission_resolved", "turn_ended"]


@pytest.mark.proves("HOLE-18", "CTL-fence-own-permissions")
async def test_a_permission_asked_behind_its_turns_end_is_cancelled_at_once(host: Host) -> None:
    await host.create()
    agent = host.agent()
    await host.prompt(1)
    await agent.ends()
    await agent.asks("p1")
    assert host.kinds()[-3:] == ["turn_ended", "permission_request", "permission_resolved"]
    await eventually(lambda: agent.answers == [("p1", "cancelled")])
    assert (await host.prompt(2)).status == 202


@pytest.mark.field("B35")
async def test_a_polite_end_answers_what_the_agent_waits_for(tmp_path: Path) -> None:
    async with host_in(tmp_path, replace(QUICK, teardown_protocol_s=SOON)) as host:
        await host.create()
        agent = host.agent()
        agent.heeds_cancel = False
        await host.prompt(1)
        await agent.asks("p1")
        ending = asyncio.create_task(host.stop())
        await eventually(lambda: agent.answers == [("p1", "cancelled")])
        assert agent.forces == [], "it was told before its process was ended"
        await agent.asks("p2")
        await eventually(lambda: ("p2", "cancelled") in agent.answers)
        await agent.ends("cancelled")
        assert (await ending).status == 200
        resolved = [f for f in await host.frames() if isinstance(f, wire.PermissionResolved)]
    assert [(one.request_id, one.outcome, one.by) for one in resolved] == [
        ("p1", "cancelled", "cancel"),
        ("p2", "cancelled", "cancel"),
    ]


@pytest.mark.proves("CTL-permission")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"option_id": "maybe"},
        {"option_id": "yes", "cancelled": True},
        {"cancelled": True, "rejected": True},
    ],
)
async def test_an_answer_that_is_none_is_refused_and_the_request_stays_open(
    host: Host, body: dict[str, object]
) -> None:
    await host.create()
    await host.prompt(1)
    await host.agent().asks("p1")
    assert (await host.of("e1", "POST", "acp/permissions/p1", body)).status == 422
    assert (
        await host.of("e1", "POST", "acp/permissions/p2", {"cancelled": True})
    ).reason == "unknown_request"
    assert (await host.of("e1", "POST", "acp/permissions/p1", {"option_id": "yes"})).status == 200
    assert host.agent().answers == [("p1", "yes")]


@pytest.mark.proves("SURVIVE-hostile-agent-requests")
async def test_permission_requests_beyond_the_bound_are_cancelled_at_once_and_it_is_said_once(
    host: Host,
) -> None:
    await host.create()
    await host.prompt(1)
    for number in range(MOST_OPEN + 50):
        await host.agent().asks(f"p{number}")
    await eventually(lambda: len(host.agent().answers) == 50)
    beyond = [(f"p{number}", "cancelled") for number in range(MOST_OPEN, MOST_OPEN + 50)]
    assert host.agent().answers == beyond
    instance = (await host.ask("GET", "/api/v1/instances/e1")).body
    assert len(instance["open_permissions"]) == MOST_OPEN
    assert host.kinds().count("permission_request") == MOST_OPEN and host.kinds().count("notice") == 1
    await host.of("e1", "POST", "acp/permissions/p0", {"option_id": "yes"})
    await host.agent().asks("again")
    await host.agent().asks("beyond")
    assert host.kinds().count("permission_request") == MOST_OPEN + 1 and host.kinds().count("notice") == 2
    await host.agent().ends()
    await eventually(lambda: len(host.agent().answers) == 50 + 1 + MOST_OPEN + 1)


async def test_of_the_answered_permission_requests_the_newest_are_known(host: Host) -> None:
    await host.create(auto_approve=True)
    await host.prompt(1)
    for number in range(ANSWERED_KEPT + 10):
        await host.agent().asks(f"p{number}")
    answers = [
        (await host.of("e1", "POST", f"acp/permissions/p{number}", {"cancelled": True})).reason
        for number in (0, ANSWERED_KEPT)
    ]
    assert answers == ["unknown_request", "already_answered"]


@pytest.mark.field("A13")
async def test_a_permission_outside_a_turn_opens_one_that_waits_for_it(host: Host) -> None:
    await host.create()
    agent = host.agent()
    await agent.asks("p1")
    own = (await host.ask("GET", "/api/v1/instances/e1")).body["own_turn_id"]
    await asyncio.sleep(QUICK.own_turn_silent_s * 2)  # longer than the silence that would end it
    assert host.kinds() == ["session_started", "turn_started", "permission_request"]
    await host.of("e1", "POST", "acp/permissions/p1", {"option_id": "yes"})
    await eventually(lambda: host.kinds()[-1] == "turn_ended")
    ended = (await host.frames())[-1]
    assert isinstance(ended, wire.TurnEnded)
    assert (ended.prompt_generation, ended.own_turn_id, ended.stop_reason) == (0, own, "idle")


@pytest.mark.field("D47")
@pytest.mark.parametrize(
    ("proven", "says", "doubted"), [(False, "", True), (False, "yes", False), (True, "", False)]
)
async def test_a_conversation_that_was_taken_up_and_does_nothing_is_doubted_once(
    host: Host, proven: bool, says: str, doubted: bool
) -> None:
    host.stage.proven = proven
    await host.create(resume_token="old")
    agent = host.agent()
    for generation in (1, 2):
        await host.prompt(generation)
        await agent.sink.event(wire.Usage, usage={"input": 1})
        if says:
            await agent.says(says)
        await agent.ends()
    notices = [frame for frame in await host.frames() if isinstance(frame, wire.Notice)]
    assert [(n.prompt_generation, "may not know" in n.text) for n in notices] == [(1, True)] * doubted


async def test_reports_that_are_no_work_never_open_a_turn(host: Host) -> None:
    await host.create()
    sink = host.agent().sink
    await sink.event(wire.Usage, usage={"input": 1})
    await sink.event(wire.Mode, mode="plan")
    await sink.event(wire.Commands, commands=[])
    await sink.event(wire.Notice, text="A line was skipped.")
    assert not host.instances.get("e1").works
    assert all(frame.prompt_generation == 0 and frame.own_turn_id is None for frame in await host.frames())


@pytest.mark.parametrize("body", [{}, {"prompt_generation": 1, "own_turn_id": "x"}])
async def test_a_cancel_names_exactly_one_turn(host: Host, body: dict[str, object]) -> None:
    await host.create()
    assert (await host.of("e1", "POST", "acp/cancel", body)).status == 422


@pytest.mark.proves("CTL-process-exited")
@pytest.mark.field("B41")
async def test_an_exit_answers_all_who_wait_and_is_the_last_frame(host: Host) -> None:
    await host.create()
    agent = host.agent()
    agent.heeds_cancel = False
    await host.prompt(1)
    await agent.asks("p1")
    cancelling = asyncio.create_task(host.cancel(1))
    await eventually(lambda: bool(agent.cancels))
    agent.exit(9)
    assert (await cancelling).body["success"]
    await host.instances.get("e1").ended.wait()
    last = (await host.frames())[-1]
    assert isinstance(last, wire.ProcessExited)
    assert (last.exit_code, last.stderr_tail) == (9, ["a last line"])
    assert (await host.prompt(2)).reason == "ended"

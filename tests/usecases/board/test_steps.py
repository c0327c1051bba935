"""What a step does with a task that enters it, works in it and leaves it: real actors, a real store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from kandev.core.board import OwedEnter
from kandev.core.inputs import Draft, Interrupt, Send
from kandev.core.session import Entry, TurnRef
from kandev.ports.store import Tx
from kandev.usecases import task_state
from kandev.usecases.move_task import request_move
from kandev.usecases.owed_steps import do_owed
from tests.gateway.house import House
from tests.usecases.board.cards import NEXT, PLAN_AND_BUILD, allow, card, settled, start


async def test_a_started_task_is_in_progress_a_finished_turn_in_review_and_a_new_prompt_back(
    house: House,
) -> None:
    it = await card(house, start_agent=True, description="sleep 30")
    await it.until("In Progress", "IN_PROGRESS")
    await house.ok("agent.cancel", session_id=it.session)
    await house.until(it.session, "WAITING_FOR_INPUT")
    assert await it.where() == ("In Progress", "REVIEW"), "a person's cancel is no finished turn"
    await it.say("say done")
    await it.until("Review", "REVIEW")
    await it.say("sleep 30")
    await it.until("In Progress", "IN_PROGRESS")
    await house.ok("session.stop", session_id=it.session)
    assert await it.where() == ("In Progress", "REVIEW"), "a stop moves no card"
    assert [new for _, new in it.changes()] == ["SCHEDULING", *["IN_PROGRESS", "REVIEW"] * 3]


async def test_done_is_final_and_left_alone_by_turns(house: House) -> None:
    it = await card(house)
    await it.launch("say hello")
    await it.until("Review", "REVIEW")
    assert (await it.move("Done"))["state"] == "COMPLETED"
    await house.until(it.session, "COMPLETED")
    await it.say("sleep 30")
    await house.until(it.session, "RUNNING")
    assert await it.where() == ("Done", "COMPLETED")
    assert (await it.row()).owed_enter is None


async def test_creating_without_a_start_runs_no_action(house: House) -> None:
    it = await card(house, {"name": "Plan", "events": start("say plan")})
    assert (await it.row()).owed_enter is None
    assert (await house.ok("task.session.list", task_id=it.id))["sessions"] == []


async def test_a_card_that_a_person_moves_starts_an_agent_with_the_steps_prompt(house: House) -> None:
    it = await card(house, {"name": "Plan"}, {"name": "Build", "events": start("say {title}: {description}")})
    await it.move("Build")
    await it.until("Build", "REVIEW")
    (session,) = (await house.ok("task.session.list", task_id=it.id))["sessions"]
    assert await it.sent(session["id"]) == ["say Fix it: say fixed"]
    assert (await it.row()).owed_enter is None
    assert (await it.row()).automatic == 1


async def test_the_steps_prompt_is_the_next_turn_ahead_of_what_waits(house: House) -> None:
    it = await card(house, *PLAN_AND_BUILD)
    await it.launch("ask Go on?")
    await house.until(it.session, "RUNNING")
    assert (await it.say("say later"))["status"] == "queued"
    await allow(house, it.session)
    await it.told("ask Go on?", "sleep 0.2", "say later")
    await it.until("Build", "REVIEW")
    turns = await house.ctx.store.read(lambda tx: tx.turns.of_session(it.session))
    assert [turn.entered for turn in turns] == [0, 1, 1]


@pytest.mark.proves("RACE-I5")
async def test_an_interrupt_of_a_turn_that_ended_spares_the_turn_that_the_step_began(house: House) -> None:
    it = await card(house, *PLAN_AND_BUILD)
    await it.launch("ask Go on?")
    await house.until(it.session, "RUNNING")
    ended = TurnRef(f"{it.session}.1", 1)
    await allow(house, it.session)
    await it.told("ask Go on?", "sleep 0.2")
    draft = Draft("say instead", "message_late")
    reply = await house.ctx.sessions.ask(
        it.session,
        lambda ask: Send(ask, Entry("entry_late", "peer"), draft, interrupt=Interrupt(ended)),
    )
    assert reply.status == "queued"
    await it.told("ask Go on?", "sleep 0.2", "say instead")
    turns = await house.ctx.store.read(lambda tx: tx.turns.of_session(it.session))
    assert turns[1].cause == "agent", "it ended by itself"


async def test_a_final_step_completes_the_session_with_its_turns_end_and_the_others_behind_it(
    house: House,
) -> None:
    it = await card(
        house,
        {"name": "Build", "events": {"on_turn_complete": [NEXT]}},
        {"name": "Done", "final": True},
    )
    other = await it.launch("sleep 30")
    await house.until(other, "RUNNING")
    await it.launch("ask Go on?")
    await house.until(it.session, "RUNNING")
    await it.say("say never")
    await allow(house, it.session)
    await house.until(it.session, "COMPLETED")
    await house.until(other, "COMPLETED")
    assert await it.where() == ("Done", "COMPLETED")
    assert await it.sent() == ["ask Go on?"], "what waited is parked, and not begun and stopped"
    session = await house.ok("session.get", session_id=it.session)
    assert (session["queue"]["count"], session["queue"]["auto_run"]) == (1, False)
    await settled(it)


@pytest.mark.parametrize("owes", ["prompt", "completes", "parks"])
async def test_what_a_crash_left_owed_is_done_once(house: House, owes: str) -> None:
    it = await card(house, {"name": "Build", "events": start("say built")})
    await it.launch("say hello")
    await it.until("Build", "REVIEW")
    due = {
        "prompt": OwedEnter(7, it.steps["Build"], "say built"),
        "completes": OwedEnter(7, it.steps["Build"], completes=True),
        "parks": OwedEnter(7, it.steps["Build"], parks="why"),
    }[owes]

    def crashed(tx: Tx) -> None:
        row = tx.tasks.get(it.id)
        assert row is not None
        state = "COMPLETED" if owes == "completes" else row.state
        tx.tasks.update(replace(row, entered=7, owed_enter=due, state=state))

    await house.ctx.store.write(crashed)
    await asyncio.gather(*(do_owed(house.ctx, it.id) for _ in range(3)), return_exceptions=True)
    await do_owed(house.ctx, it.id)
    assert (await it.row()).owed_enter is None
    if owes == "prompt":
        await it.told("say hello", "say built")
        await house.ctx.store.write(crashed)
        await do_owed(house.ctx, it.id)
        assert await it.sent() == ["say hello", "say built"], "the entering has had its prompt"
        assert (await it.row()).owed_enter is None
    if owes == "completes":
        assert (await house.ok("session.get", session_id=it.session))["state"] == "COMPLETED"


async def test_a_prompt_that_no_agent_can_take_is_told_on_the_card(house: House) -> None:
    it = await card(house, {"name": "Plan"}, {"name": "Build", "events": start("go")})
    for profile in (await house.ok("agent.profile.list"))["profiles"]:
        await house.ok("agent.profile.delete", id=profile["id"])
    await it.move("Build")
    await settled(it)
    error = (await house.ok("task.get", id=it.id))["error"]
    assert error == "There is no agent profile: create one first."


async def test_a_tools_move_waits_for_the_turns_end_is_shown_and_applied_once(house: House) -> None:
    it = await card(
        house,
        {"name": "Plan", "events": {"on_turn_complete": [{"type": "move_to_step", "step_name": "Build"}]}},
        {"name": "Build", "events": start("say built")},
        {"name": "Ship", "events": start("say shipped")},
    )
    ship = it.steps["Ship"]
    await it.launch("ask Go on?")
    await house.until(it.session, "RUNNING")
    for _ in range(2):
        asked = await request_move(house.ctx, task_id=it.id, step_id=ship, by="session")
        assert (asked.moved, asked.pending) == (False, True)
    shown = await house.ok("task.get", id=it.id)
    assert shown["pending_move"] == {"workflow_step_id": ship, "by": "session"}
    assert (await it.where())[0] == "Plan"
    await allow(house, it.session)
    await it.told("ask Go on?", "say shipped")
    await it.until("Ship", "REVIEW")
    assert "pending_move" not in await house.ok("task.get", id=it.id)
    now = await request_move(house.ctx, task_id=it.id, step_id=it.steps["Plan"], by="session")
    assert (now.moved, now.pending) == (True, False)
    assert (await it.where())[0] == "Plan"


async def test_a_person_moves_at_once_and_withdraws_a_move_that_waits(house: House) -> None:
    it = await card(house, {"name": "Plan"}, {"name": "Build"}, {"name": "Ship"})
    await it.launch("ask Go on?")
    await house.until(it.session, "RUNNING")
    await request_move(house.ctx, task_id=it.id, step_id=it.steps["Ship"], by="session")
    assert "pending_move" not in await it.move("Build")
    await allow(house, it.session)
    await it.until("Build", "REVIEW")


async def test_a_move_that_waits_outlives_a_stop_and_is_applied_by_the_next_turn(house: House) -> None:
    it = await card(house, {"name": "Plan"}, {"name": "Ship"})
    await it.launch("sleep 30")
    await house.until(it.session, "RUNNING")
    await request_move(house.ctx, task_id=it.id, step_id=it.steps["Ship"], by="session")
    await house.ok("session.stop", session_id=it.session)
    assert (await it.where())[0] == "Plan"
    assert "pending_move" in await house.ok("task.get", id=it.id)
    await it.launch("say on")
    await it.until("Ship", "REVIEW")


async def test_leaving_a_step_parks_what_waits_where_the_step_says_so(house: House) -> None:
    it = await card(
        house, {"name": "Plan", "events": {"on_exit": [{"type": "park_queue"}]}}, {"name": "Build"}
    )
    await it.launch("ask Go on?")
    await house.until(it.session, "RUNNING")
    await it.say("say later")
    await it.move("Build")
    await settled(it)
    session = await house.ok("session.get", session_id=it.session)
    assert session["parked_reason"] == "the task left the step 'Plan'"
    await allow(house, it.session)
    await it.until("Build", "REVIEW")
    assert await it.sent() == ["ask Go on?"]


async def test_archiving_forgets_what_waits_and_what_is_owed(house: House) -> None:
    it = await card(house, {"name": "Plan"}, {"name": "Ship"})
    await it.launch("sleep 30")
    await house.until(it.session, "RUNNING")
    await request_move(house.ctx, task_id=it.id, step_id=it.steps["Ship"], by="session")
    archived = await house.ok("task.archive", id=it.id)
    assert "pending_move" not in archived


async def test_steps_that_start_each_other_come_to_rest_with_the_reason_on_the_card(house: House) -> None:
    around = {"on_turn_complete": [{"type": "move_to_next"}]}
    back = {"on_turn_complete": [{"type": "move_to_previous"}]}
    it = await card(
        house,
        {"name": "Build", "events": {**start("say b"), **around}},
        {"name": "Check", "events": {**start("say c"), **back}},
    )
    await it.launch("say hello")

    async def error() -> bool:
        return (await it.row()).error is not None

    await it.wait(error, True)
    prompts = await it.sent()
    assert len(prompts) == 1 + 20
    assert (await it.where())[1] == "REVIEW"
    await it.say("say go on")

    async def more() -> bool:
        return len(await it.sent()) >= 1 + 20 + 1 + 20

    await it.wait(more, True)


async def test_the_end_of_sessions_of_a_task_that_a_person_completed_is_owed_until_it_is_done(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    it = await card(house)
    await it.launch("sleep 30")
    await house.until(it.session, "RUNNING")

    async def dies(*_: object, **__: object) -> None:
        raise RuntimeError("the backend died here")

    monkeypatch.setattr(task_state, "complete_sessions", dies)
    status, _ = await house.post("task.state", {"id": it.id, "state": "COMPLETED"})
    assert status == 500
    due = (await it.row()).owed_enter
    assert due is not None and due.completes
    assert await do_owed(house.ctx, it.id)
    await house.until(it.session, "COMPLETED")
    assert (await it.row()).owed_enter is None


async def test_what_is_only_counted_tells_nobody(house: House) -> None:
    it = await card(house, {"name": "Plan"}, {"name": "Build", "events": start("say built")})
    await it.move("Build")
    await it.until("Build", "REVIEW")
    (session,) = (await house.ok("task.session.list", task_id=it.id))["sessions"]
    it.session = session["id"]
    await settled(it)
    house.heard.all.clear()
    await it.say("say more")
    await it.told("say built", "say more")
    await house.until(it.session, "WAITING_FOR_INPUT")
    assert (await it.row()).automatic == 0
    states = [n.payload["task"]["state"] for n in house.heard.all if n.action == "task.updated"]
    assert states == ["IN_PROGRESS", "REVIEW"]


async def test_two_sessions_that_complete_in_one_step_move_the_card_once_and_start_one_agent(
    house: House,
) -> None:
    it = await card(house, *PLAN_AND_BUILD, {"name": "Ship"})
    first, second = await it.launch("ask A?"), await it.launch("ask B?")
    for session_id in (first, second):
        await house.until(session_id, "RUNNING")
    await asyncio.gather(allow(house, first), allow(house, second))
    await it.until("Build", "REVIEW")
    sent = [*await it.sent(first), *await it.sent(second)]
    assert sorted(sent) == ["ask A?", "ask B?", "sleep 0.2"]
    assert (await it.row()).entered == 1


async def test_a_cancel_moves_the_card_where_the_step_says_so_and_starts_no_agent(house: House) -> None:
    it = await card(
        house,
        {"name": "Plan", "events": {"on_turn_complete": [{**NEXT, "on_cancel": True}]}},
        {"name": "Build", "events": start("say built")},
    )
    await it.launch("sleep 30")
    await house.until(it.session, "RUNNING")
    await house.ok("agent.cancel", session_id=it.session)
    await it.until("Build", "REVIEW")
    await house.until(it.session, "WAITING_FOR_INPUT")
    assert await it.sent() == ["sleep 30"]
    assert (await it.row()).owed_enter is None


async def test_a_turn_that_a_message_replaces_moves_no_card_and_leaves_a_move_waiting(house: House) -> None:
    it = await card(house, *PLAN_AND_BUILD, {"name": "Ship"})
    await it.launch("sleep 30")
    await house.until(it.session, "RUNNING")
    await request_move(house.ctx, task_id=it.id, step_id=it.steps["Ship"], by="session")
    noted = Interrupt(TurnRef(f"{it.session}.1", 1))
    draft = Draft("ask Instead?", "message_instead")
    reply = await house.ctx.sessions.ask(
        it.session, lambda ask: Send(ask, Entry("entry_instead", "peer"), draft, interrupt=noted)
    )
    assert reply.status == "sent"
    turns = await house.ctx.store.read(lambda tx: tx.turns.of_session(it.session))
    assert [turn.cause for turn in turns] == ["interrupted", None]
    assert await it.where() == ("Plan", "IN_PROGRESS")
    assert (await it.row()).pending_move is not None
    assert "REVIEW" not in [new for _, new in it.changes()]
    await allow(house, it.session)
    await it.until("Ship", "REVIEW")

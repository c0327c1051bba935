"""Launching, resuming, dying: the process side of a session."""

from dataclasses import replace

import pytest

from kandev.core import decide, machines, views
from kandev.core.effects import (
    CancelTurn,
    ExecutionOver,
    Follow,
    LaunchOver,
    Line,
    Prompt,
    Review,
    Start,
    Teardown,
    Timer,
    Told,
    TurnClosed,
    TurnOpened,
)
from kandev.core.inputs import (
    CancelFailed,
    Ended,
    Exited,
    Expired,
    Gone,
    Interrupt,
    LaunchFailed,
    Output,
    OwnTurn,
    Ready,
    Refused,
    Remembered,
    Resume,
    Said,
    Stop,
    Taken,
)
from kandev.core.session import Launch, Outcome, Phase, TurnRef
from kandev.core.transcript import Notice
from tests.core.sidecar import CHUNK
from tests.core.story import (
    OWN,
    Story,
    asleep,
    busy_by_itself,
    dispatching,
    frame,
    message,
    parked,
    permission,
    running,
    starting,
    up,
    waiting,
)


@pytest.mark.proves("STATE-launch-with-prompt")
def test_a_launch_with_a_prompt_goes_straight_to_running() -> None:
    s = starting()(up())
    assert s.wire == "RUNNING" and s.s.phase is Phase.DISPATCHING and s.has(TurnOpened)
    assert s.owed == (Follow("s.1"), Prompt(TurnRef("s.1", 1), ("M",), introduces=True))


@pytest.mark.field("A31")
def test_a_first_launch_that_fails_holds_its_message_and_a_resume_tries_again_with_it() -> None:
    s = starting()(LaunchFailed("s.1", "no such file: agnt"))
    assert s.wire == "FAILED" and s.queued == ("M",) and s.s.parked is None
    assert s.lines == ["The agent did not start: no such file: agnt"] and s.has(LaunchOver)
    s(Gone("s.1"))
    assert not s.owed, "nothing tries again by itself"
    s(Resume("r"))(up("s.2"))
    assert s.saying == ("M",)


@pytest.mark.field("C09")
def test_a_relaunch_that_fails_parks_the_entries_with_the_reason() -> None:
    s = asleep()(message("A"))(LaunchFailed("s.2", "no disk"))
    assert s.said["A"] == "queued" and s.wire == "WAITING_FOR_INPUT"
    assert s.s.parked == "the agent did not start: no disk" and s.owes(Teardown)


@pytest.mark.field("A31", "D07")
def test_a_launch_that_gives_no_answer_has_failed_and_is_rolled_back() -> None:
    s = starting()(Expired(Timer("start", "s.1")))
    assert s.wire == "FAILED" and s.owed == (Teardown("s.1", None),)
    s.ignores(up())


def test_a_process_that_exits_while_it_starts_has_not_started() -> None:
    s = starting()(Exited("s.1", 1, ("boom",)))
    assert s.wire == "FAILED" and s.lines[0].startswith("The agent did not start")


def test_a_launch_with_nothing_to_say_ends_waiting() -> None:
    s = Story(Resume("r"), up())
    assert s.said["r"] == "resuming" and s.wire == "WAITING_FOR_INPUT"
    assert s.notes == (LaunchOver(None),)


def test_a_resume_of_what_runs_is_a_conflict() -> None:
    for s in (starting(), running(), waiting()):
        s.refuses(Resume("r"), "conflict")


@pytest.mark.field("D19")
def test_a_resume_waits_for_the_end_of_the_old_process() -> None:
    s = waiting()(Exited("s.1"))(Resume("r"))
    assert s.wire == "STARTING" and s.owed == (Teardown("s.1", None),)
    assert s(Gone("s.1")).owed == (Start("s.2"),)


def test_an_agent_without_memory_of_the_conversation_says_so() -> None:
    s = asleep()(message("A"))(Ready("s.2", "j", None, memory=False))
    assert s.lines == ["The agent starts without memory of the earlier conversation."]


def test_the_token_of_the_conversation_is_kept_and_renewed() -> None:
    s = waiting()
    assert s.s.conversation == "conversation"
    s(frame(9, Remembered("s.1", "newer")))
    assert s.s.conversation == "newer" and s.s.seen == 9
    s(frame(10, Remembered("s.1", None)))
    assert s.s.conversation == "newer"


# -- the end of a process ---------------------------------------------------------------------------


@pytest.mark.field("B41")
def test_a_process_that_dies_in_a_turn_ends_it_and_says_how() -> None:
    s = running()(message("D"))(frame(2, Exited("s.1", 7, ("Traceback", "boom"))))
    assert s.lines == ["The agent's process ended (exit code 7).\nTraceback\nboom"]
    assert s.wire == "RUNNING" and s.owed == (Teardown("s.1", None),)
    s(Gone("s.1", None, (), 7))
    assert s.closed == [
        TurnClosed(TurnRef("s.1", 1), "process_ended", "process", "the agent's process ended (exit code 7)")
    ]
    assert s.wire == "WAITING_FOR_INPUT" and s.queued == ("D",) and s.s.parked and s.has(Review)


@pytest.mark.proves("HOLE-15")
def test_what_the_journal_still_said_counts_before_the_end() -> None:
    s = running()(Exited("s.1"))
    s(frame(2, Output(s.ref, CHUNK)))
    assert s.has(Told)
    s(frame(3, Ended(s.ref)))
    assert s.closed[0].cause == "agent", "a turn that was completed is not booked as died"
    s(Gone("s.1"))
    assert not s.closed and s.has(ExecutionOver)


def test_a_process_that_dies_idle_is_replaced_by_the_next_message() -> None:
    s = waiting()(Exited("s.1"))
    assert not s.lines and s.wire == "WAITING_FOR_INPUT"
    s(message("A"))
    assert s.wire == "STARTING" and not s.owes(Start)
    assert s(Gone("s.1")).owed == (Start("s.2"),)


def test_an_end_comes_once() -> None:
    s = asleep()
    for late in (Exited("s.1"), Gone("s.1"), up(), LaunchFailed("s.1", "no")):
        s.ignores(late)


@pytest.mark.field("B05", "B45", "D13")
def test_reports_of_an_earlier_execution_are_history() -> None:
    s = asleep()(message("A"))(up("s.2"))
    for late in (Exited("s.1"), Gone("s.1"), up(), Remembered("s.1", "old"), Said("s.1", Notice("x"))):
        s.ignores(late)
    s.ignores(frame(99, Exited("s.1"), "s.1"))


@pytest.mark.proves("HOLE-12")
def test_frames_are_followed_only_once_the_process_is_up() -> None:
    s = starting()
    s.ignores(frame(7, Said("s.1", Notice("x"))))
    assert s.s.seen == 0


def test_each_journal_is_read_from_its_beginning() -> None:
    s = waiting()
    s(frame(9, Said("s.1", Notice("x"))))(Exited("s.1"))(Gone("s.1"))(message("A"))(up("s.2"))
    assert s.s.seen == 0 and s.s.journal == "journal of s.2"


# -- the end of a turn ------------------------------------------------------------------------------


@pytest.mark.proves("MESSAGE-failed-turn-parks", "RACE-I19", "HOLE-6")
def test_a_failed_turn_parks_the_queue_with_the_reason() -> None:
    s = running()(message("A"))(message("B"))
    s(Ended(s.ref, "error", "429 too many requests"))
    assert s.queued == ("A", "B") and s.s.parked == "the last turn failed: 429 too many requests"
    assert s.lines == ["The turn failed: 429 too many requests"] and not s.s.turn


@pytest.mark.field("B39")
def test_an_agent_that_interrupts_its_own_turn_parks_nothing() -> None:
    s = running()(message("A"))
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("A",) and s.lines == ["The agent interrupted its own turn."]


@pytest.mark.proves("HOLE-2")
@pytest.mark.field("C55")
def test_an_end_implies_that_the_prompt_was_taken() -> None:
    s = dispatching()
    s(Ended(s.ref))
    assert s.fates == {"M": "delivered"} and not s.s.turn


@pytest.mark.proves("HOLE-2")
@pytest.mark.field("C55")
def test_output_implies_that_the_prompt_was_taken() -> None:
    s = dispatching()
    s(Output(s.ref, CHUNK))
    assert s.fates == {"M": "delivered"} and s.s.phase is Phase.RUNNING


@pytest.mark.proves("HOLE-2")
def test_acceptance_told_twice_is_told_once() -> None:
    s = running()
    s(Taken(s.ref))
    assert s.notes == ()


@pytest.mark.proves("INV-3")
@pytest.mark.field("B05", "B25")
def test_a_late_end_of_an_earlier_turn_does_not_touch_the_present_one() -> None:
    s = running()(message("P"))
    old = s.ref
    s(Ended(old))
    s.ignores(Ended(old))
    assert s.saying == ("P",)


@pytest.mark.proves("RACE-I18")
def test_after_a_cancel_a_new_message_runs_at_once_and_the_parked_follow_at_its_end() -> None:
    s = parked()(message("H"))
    assert s.saying == ("H",) and s.queued == ("D",)
    s(Taken(s.ref))(Ended(s.ref))
    assert s.saying == ("D",)


def test_processes_that_outlive_a_turn_are_named() -> None:
    s = running()
    s(Ended(s.ref, outlived=("sleep 600",)))
    assert s.lines == ["Still running after the turn: sleep 600. Stop the session to end them."]


# -- turns that the agent begins ---------------------------------------------------------------------


def test_a_turn_that_the_agent_begins_has_an_identity_of_its_own_and_no_generation() -> None:
    s = busy_by_itself()
    assert s.wire == "RUNNING" and s.ref == OWN and s.s.generation == 1 and not s.owes(Prompt)
    s(Output(OWN, CHUNK))
    assert s.has(Told)
    s(Ended(OWN, "idle"))
    assert s.wire == "WAITING_FOR_INPUT" and not s.lines
    s.ignores(Ended(OWN))


@pytest.mark.parametrize("begin", [starting, running, asleep])
def test_an_own_turn_begins_only_on_an_idle_agent(begin: type[Story]) -> None:
    begin().ignores(OwnTurn(OWN))


@pytest.mark.proves("HOLE-23")
def test_two_own_turns_are_two_turns() -> None:
    second = TurnRef("s.1", 0, "o2")
    s = busy_by_itself()(Ended(OWN))(OwnTurn(second))
    s.ignores(Ended(OWN))
    assert s.ref == second and views.turn_id(OWN) != views.turn_id(second)


@pytest.mark.proves("HOLE-23")
def test_an_interrupt_that_noted_one_own_turn_spares_the_next() -> None:
    second = TurnRef("s.1", 0, "o2")
    s = busy_by_itself()(Ended(OWN))(OwnTurn(second))
    s(replace(message("P", "peer"), interrupt=Interrupt(OWN)))
    assert s.said["P"] == "queued" and s.ref == second and not s.owes(CancelTurn)
    s(Ended(second, "idle"))
    assert s.saying == ("P",)


# -- after a crash of the backend ----------------------------------------------------------------------


def test_after_a_crash_nobody_waits_and_everything_owed_is_owed_again() -> None:
    s = waiting()(message("A"))
    before = s.owed
    s.s = decide.recovered(s.s)
    assert s.owed == before and "ask" not in s.timers
    s(Taken(s.ref))
    assert s.fates["A"] == "delivered" and "A" not in s.said


def test_deadlines_of_the_past_are_history() -> None:
    s = running()
    for timer in (
        Timer("accept", s.ref),
        Timer("end", (s.ref, 1)),
        Timer("start", "s.1"),
        Timer("close", "s.1"),
        Timer("retry", 1),
        Timer("ask", "M"),
        Timer("cancel", "c"),
    ):
        s.ignores(Expired(timer))


# -- the machines -------------------------------------------------------------------------------------


def test_the_rules_refuse_to_leave_their_tables() -> None:
    ready = waiting().s
    for wrong in (
        replace(ready, launch=Launch.STARTING),
        replace(ready, launch=Launch.LOST),
        replace(running().s, launch=Launch.ABSENT),
    ):
        with pytest.raises(machines.IllegalMove):
            machines.check(running().s if wrong.turn else ready, wrong)
    over = replace(ready, outcome=Outcome.FAILED)
    with pytest.raises(machines.IllegalMove):
        machines.check(over, replace(over, outcome=Outcome.CANCELLED))


def test_every_execution_status_follows_from_the_value() -> None:
    names = [views.execution_status(s.s) for s in (Story(), starting(), waiting(), running())]
    assert names == [None, "starting", "ready", "busy"]
    assert views.execution_status(running()(Exited("s.1")).s) == "replacing"
    assert views.execution_status(running()(Stop("x")).s) == "ending", "not gone yet"


def test_a_failed_cancel_of_nobody_and_a_refusal_of_nothing_are_history() -> None:
    s = waiting()
    for late in (
        CancelFailed(TurnRef("s.1", 1), 1),
        Refused(TurnRef("s.1", 1)),
        permission(TurnRef("s.1", 1)),
    ):
        s.ignores(late)
    assert not s.has(Line)


def introduces(s: Story) -> bool:
    return any(isinstance(o, Prompt) and o.introduces for o in s.owed)


def test_an_agent_is_told_where_it_is_with_the_first_prompt_it_takes() -> None:
    s = dispatching()
    assert introduces(s)
    s(Refused(s.ref, "busy"))(Expired(Timer("retry", s.s.generation)))
    assert introduces(s), "nobody took the first one"
    s(Taken(s.ref))(Ended(s.ref))(message("N"))
    assert not introduces(s)


@pytest.mark.parametrize(("memory", "again"), [(True, False), (False, True), (None, True)])
def test_a_process_without_the_conversation_is_told_again(memory: bool | None, again: bool) -> None:
    s = asleep()(message("N"))
    s(Ready("s.2", "journal of s.2", "conversation", memory))
    assert introduces(s) is again

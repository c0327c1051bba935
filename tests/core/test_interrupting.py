"""A parent interrupts: every row of the race matrix that one session can tell, and what must not happen."""

from dataclasses import replace
from typing import Any

import pytest

from kandev.core import decide, views
from kandev.core.effects import (
    CancelTurn,
    Line,
    Prompt,
    QuestionClosed,
    Reply,
    Review,
    Start,
    Teardown,
    Timer,
)
from kandev.core.inputs import (
    AskPerson,
    AutoRun,
    Cancel,
    CancelFailed,
    CancelUnheard,
    Clear,
    Ended,
    Exited,
    Expired,
    Gone,
    Interrupt,
    LaunchFailed,
    Ready,
    Refused,
    Remove,
    Stop,
    Taken,
)
from kandev.core.session import Phase, TurnRef
from tests.core.story import (
    LIMIT,
    OWN,
    Story,
    asleep,
    busy_by_itself,
    cancelling,
    dispatching,
    message,
    parked,
    permission,
    running,
    starting,
    up,
    waiting,
)


def interrupt(s: Story, name: str = "P", noted: Any = "now", limit: int = LIMIT) -> Story:
    """By the parent, who has noted the turn that is current now, or an earlier one."""
    seen = views.current_turn(s.s) if noted == "now" else noted
    return s(replace(message(name, "peer", limit), interrupt=Interrupt(seen)))


def interrupted() -> Story:
    """M's turn is being ended for P; D waits behind."""
    return interrupt(running()(message("D", "peer")))


@pytest.mark.proves("RACE-I1", "TURN-silent", "INV-2")
def test_i1_the_agent_obeys_and_the_message_begins_the_next_turn() -> None:
    s = interrupted()
    assert s.s.phase is Phase.CANCELLING and s.owes(CancelTurn) and "P" not in s.said
    assert not s.s.cancelling, "a silent cancel is no person's cancel"
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("P",) and s.queued == ("D",) and s.s.parked is None
    assert s.closed[0].cause == "interrupted" and not s.has(Line)
    assert s(Taken(s.ref)).said["P"] == "sent" and s.fates["P"] == "delivered"
    assert s.wire == "RUNNING"


@pytest.mark.proves("RACE-I1")
@pytest.mark.parametrize("word", ["cancelled", "end_turn", "refusal", "max_tokens"])
def test_our_intent_decides_whatever_the_agent_calls_the_end(word: str) -> None:
    s = interrupted()
    s(Ended(s.ref, word))
    assert s.closed[0].cause == "interrupted" and s.saying == ("P",)


def test_a_turn_that_fails_while_it_is_ended_for_a_message_parks_nothing() -> None:
    s = interrupted()
    s(Ended(s.ref, "error", "401"))
    assert s.saying == ("P",) and s.s.parked is None and s.closed[0].error is None


@pytest.mark.proves("RACE-I2", "RACE-I14")
def test_i2_an_agent_that_ignores_the_cancel_is_replaced_and_the_new_one_gets_the_message() -> None:
    s = interrupted()
    old = s.ref
    s(CancelUnheard(old, s.s.turn.attempt if s.s.turn else 0))
    assert s.launch == "closing" and s.owes(Teardown) and "P" not in s.said
    s.ignores(Ended(old, "end_turn"))
    s(Gone("s.1"))
    assert s.owes(Start) and s.closed[0].cause == "interrupted"
    s(Ready("s.2", "journal of s.2", "conversation", memory=True))
    assert s.saying == ("P",)
    s.ignores(Ended(old, "end_turn"))
    assert s(Taken(s.ref)).said["P"] == "sent"


@pytest.mark.proves("RACE-I2")
def test_i2_at_the_deadline_the_sender_hears_queued_and_the_delivery_goes_on() -> None:
    s = interrupted()
    s(Expired(Timer("ask", "P")))
    assert s.said["P"] == "queued"
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("P",)


@pytest.mark.proves("RACE-I3", "HOLE-24")
@pytest.mark.field("C45")
def test_i3_a_cancel_that_fails_lets_the_turn_go_on_and_its_end_delivers_in_order() -> None:
    s = interrupted()
    s(CancelFailed(s.ref, 1, "the pipe is full"))
    assert s.said["P"] == "queued" and s.s.phase is Phase.RUNNING and s.queued == ("D", "P")
    s(Ended(s.ref))
    assert s.closed[0].cause == "agent" and s.saying == ("D",)
    s(Taken(s.ref))(Ended(s.ref))
    assert s.saying == ("P",)


@pytest.mark.proves("RACE-I3", "HOLE-19")
def test_a_late_failure_of_an_older_cancel_is_history() -> None:
    s = interrupted()
    s(CancelFailed(s.ref, 1))
    interrupt(s, "Q")
    s.ignores(CancelFailed(s.ref, 1))
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("Q",) and s.queued == ("D", "P")


@pytest.mark.proves("RACE-I4")
def test_i4_a_turn_that_ended_just_before_needs_no_cancel() -> None:
    s = running()
    noted = s.ref
    s(Ended(noted))
    interrupt(s, noted=noted)
    assert s.saying == ("P",) and not s.owes(CancelTurn)
    assert s(Taken(s.ref)).said["P"] == "sent"


@pytest.mark.proves("RACE-I5", "RACE-I10b")
@pytest.mark.parametrize("by", ["workflow", "peer", "automation"])
def test_i5_a_turn_that_began_meanwhile_is_spared(by: str) -> None:
    s = running()(message("W", by))
    noted = s.ref
    s(Ended(noted))(Taken(TurnRef("s.1", 2)))
    interrupt(s, noted=noted)
    assert s.said["P"] == "queued" and s.s.phase is Phase.RUNNING and s.saying == ("W",)
    assert not s.owes(CancelTurn)
    s(Ended(s.ref))
    assert s.saying == ("P",)


@pytest.mark.proves("RACE-I10b")
def test_i10b_an_interrupt_that_noted_the_drained_turn_cancels_it() -> None:
    s = running()(message("W", "peer"))
    s(Ended(s.ref))(Taken(TurnRef("s.1", 2)))
    interrupt(s)
    assert s.owes(CancelTurn)
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("P",)


@pytest.mark.proves("RACE-I6")
def test_i6_during_a_persons_cancel_the_message_is_queued_and_parked_with_the_rest() -> None:
    s = interrupt(cancelling())
    assert s.said["P"] == "queued"
    s(Ended(s.ref, "cancelled"))
    assert s.wire == "WAITING_FOR_INPUT" and s.queued == ("D", "P") and s.s.parked


@pytest.mark.proves("RACE-I9a", "HOLE-4")
@pytest.mark.field("C27")
def test_i9a_two_interrupts_of_one_turn_go_out_together_in_order() -> None:
    s = interrupted()
    interrupt(s, "Q")
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("P", "Q") and s.queued == ("D",)
    s(Taken(s.ref))
    assert s.said["P"] == s.said["Q"] == "sent"
    assert s.owed.count(CancelTurn(TurnRef("s.1", 1), 1)) == 0


@pytest.mark.proves("RACE-I9b")
def test_i9b_an_interrupt_that_noted_the_first_ones_turn_replaces_it() -> None:
    s = interrupted()
    s(Ended(s.ref, "cancelled"))(Taken(TurnRef("s.1", 2)))
    interrupt(s, "Q")
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("Q",) and s.queued == ("D",) and s.fates["P"] == "delivered"


@pytest.mark.proves("RACE-I10a")
@pytest.mark.field("C27")
def test_i10a_the_interrupt_takes_its_own_entry_and_the_sibling_stays_in_the_queue() -> None:
    s = interrupted()
    s(Ended(s.ref, "cancelled"))
    assert s.prompts == [("M",), ("P",)] and s.queued == ("D",)
    s(Taken(s.ref))(Ended(s.ref))
    assert s.prompts == [("M",), ("P",), ("D",)]


@pytest.mark.proves("RACE-I11")
@pytest.mark.parametrize("begin", [running, parked, starting, dispatching, interrupted, cancelling, asleep])
def test_i11_a_full_queue_takes_nothing_and_cancels_nothing(begin: Any) -> None:
    s = begin()
    s(AutoRun("off", False))(message("D2", "peer"))
    size = len(s.s.queue)
    given = replace(message("Z", "peer", size), interrupt=Interrupt(views.current_turn(s.s)))
    reply = s.refuses(given, "queue_full")
    assert reply.details == {"error": "queue_full", "queue_size": size, "max": size}


@pytest.mark.proves("RACE-I12", "RACE-I15")
def test_i15_a_stop_wins_and_the_message_stays_in_the_queue() -> None:
    s = interrupted()
    s(Stop("stop"))
    assert s.said["stop"] == "stopped" and s.said["P"] == "queued"
    s(Gone("s.1"))
    assert s.wire == "CANCELLED" and s.queued == ("D", "P") and s.s.parked is None and not s.owed


@pytest.mark.proves("RACE-I12")
def test_i12_a_session_that_was_stopped_before_the_insert_takes_nothing() -> None:
    s = running()
    noted = s.ref
    s(Stop("stop"))
    s.refuses(replace(message("P", "peer"), interrupt=Interrupt(noted)), "rejected")


@pytest.mark.proves("RACE-I13", "INV-3")
def test_i13_the_end_of_the_replaced_turn_is_history_once_the_message_runs() -> None:
    s = interrupted()
    old = s.ref
    s(Ended(old, "cancelled"))(Taken(TurnRef("s.1", 2)))
    s.ignores(Ended(old, "end_turn"))
    assert s.saying == ("P",)


@pytest.mark.proves("RACE-I14")
@pytest.mark.parametrize("code", [None, 7])
def test_i14_a_process_that_dies_during_the_cancel_loses_nothing(code: int | None) -> None:
    s = interrupted()
    s(Exited("s.1", code))(Gone("s.1", None, exit_code=code))
    assert s.launch == "starting" and s.s.parked is None
    s(Ready("s.2", "journal of s.2", memory=True))
    assert s.saying == ("P",)


@pytest.mark.proves("RACE-I16", "HOLE-28")
def test_i16_a_starting_child_gets_its_first_message_and_the_interrupt_as_one_prompt() -> None:
    s = interrupt(starting())
    assert "P" not in s.said and not s.owes(CancelTurn)
    s(up())
    assert s.saying == ("M", "P")
    assert s.owed[1] == Prompt(s.ref, ("M", "P"), introduces=True)
    assert s(Taken(s.ref)).said["P"] == "sent"


@pytest.mark.proves("RACE-I16")
def test_i16_a_launch_that_fails_keeps_both() -> None:
    s = interrupt(starting())
    s(LaunchFailed("s.1", "no such program"))
    assert s.said["P"] == "queued" and s.queued == ("M", "P") and s.wire == "FAILED"


@pytest.mark.proves("RACE-I16", "HOLE-28")
def test_i16_a_session_that_starts_again_says_what_woke_it_and_then_the_interrupt() -> None:
    s = asleep()(message("N", "peer"))
    interrupt(s)
    s(Ready("s.2", "journal of s.2", memory=True))
    assert s.saying == ("N", "P")


@pytest.mark.proves("RACE-I16")
def test_an_interrupt_that_noted_an_older_turn_does_not_join_a_launch() -> None:
    s = running()
    noted = s.ref
    s(Ended(noted))(Exited("s.1"))(Gone("s.1"))(message("N", "peer"))
    interrupt(s, noted=noted)
    assert s.said["P"] == "queued"


@pytest.mark.proves("RACE-I17", "TURN-silent-joined", "HOLE-3")
def test_i17_a_persons_cancel_outranks_the_interrupt() -> None:
    s = interrupted()
    s(Cancel("c", "Ada"))
    assert s.said["P"] == "queued" and s.s.cancelling
    s(Ended(s.ref, "cancelled"))
    assert s.said["c"] == "cancelled" and s.wire == "WAITING_FOR_INPUT"
    assert s.lines == ["Turn cancelled by Ada."] and s.has(Review) and s.closed[0].cause == "user"
    assert s.queued == ("D", "P") and s.s.parked


@pytest.mark.proves("RACE-I17", "TURN-silent-joined")
def test_i17_also_when_the_process_is_being_replaced_already() -> None:
    s = interrupted()
    s(CancelUnheard(s.ref, 1))(Cancel("c"))
    assert s.said["P"] == "queued"
    s(Gone("s.1"))
    assert s.said["c"] == "cancelled" and s.queued == ("D", "P") and s.s.parked and s.launch == "absent"


def test_an_interrupt_waits_until_the_prompt_is_known_to_have_arrived() -> None:
    s = interrupt(dispatching())
    assert not s.owes(CancelTurn) and s.owes(Prompt) and "accept" in s.timers and "end" not in s.timers
    s(Taken(s.ref))
    assert s.owes(CancelTurn) and "end" in s.timers


def test_a_prompt_that_was_refused_meanwhile_goes_out_with_the_interrupt() -> None:
    s = interrupt(dispatching())
    s(Refused(s.ref, "busy"))
    assert s.saying == ("M", "P") and s.closed[0].cause == "refused"


def test_a_person_cancels_at_once_what_an_interrupt_would_have_waited_for() -> None:
    s = interrupt(dispatching())(Cancel("c"))
    assert s.owes(CancelTurn) and s.said["P"] == "queued"


@pytest.mark.parametrize("begin", [waiting, asleep])
def test_on_an_idle_session_an_interrupt_is_a_message(begin: Any) -> None:
    s = interrupt(begin())
    assert not s.owes(CancelTurn)
    if s.launch == "starting":
        s(Ready("s.2", "journal of s.2", memory=True))
    assert s.saying == ("P",)


@pytest.mark.proves("HOLE-5")
def test_on_a_parked_session_an_interrupt_jumps_and_the_parked_ones_stay() -> None:
    s = interrupt(parked())
    assert s.saying == ("P",) and s.queued == ("D",) and s.s.parked
    s(Taken(s.ref))(Ended(s.ref))
    assert s.s.phase is Phase.WAITING and s.queued == ("D",)


def test_an_interrupt_ends_a_turn_that_the_agent_began_by_itself() -> None:
    s = interrupt(busy_by_itself())
    assert s.owed[1] == CancelTurn(OWN, 1)
    s(Ended(OWN, "idle"))
    assert s.saying == ("P",)


def test_an_interrupt_answers_open_permissions_as_cancelled() -> None:
    s = running()
    s(permission(s.ref))
    interrupt(s)
    assert s.permissions["p"] is not None and s.permissions["p"].option_id is None


@pytest.mark.proves("TURN-open-question")
@pytest.mark.parametrize("end", ["person", "parent"])
def test_an_open_question_is_cancelled_and_then_the_turn(end: str) -> None:
    s = running()(AskPerson("a", "q"))
    assert views.waiting_for(s.s) == "question"
    if end == "person":
        s(Cancel("c"))
    else:
        interrupt(s)
    assert any(isinstance(n, QuestionClosed) and n.outcome == "cancelled" for n in s.notes)
    assert s.owes(CancelTurn) and not s.s.questions


@pytest.mark.proves("HOLE-8")
@pytest.mark.parametrize("away", [Remove("r", "P"), Clear("r")])
def test_an_interrupting_message_that_is_taken_back_leaves_the_turn_ending_and_the_queue_going_on(
    away: Any,
) -> None:
    s = interrupted()(away)
    assert s.said["P"] == "removed" and s.s.jumps == ()
    s(Ended(s.ref, "cancelled"))
    assert s.closed[0].cause == "interrupted" and s.has(Review)
    assert s.saying == (("D",) if isinstance(away, Remove) else ())


def test_a_crash_in_the_middle_of_an_interrupt_goes_on_with_it() -> None:
    s = interrupted()
    s.s = decide.recovered(s.s)
    assert s.owes(CancelTurn)
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("P",) and not any(isinstance(n, Reply) for n in s.notes)

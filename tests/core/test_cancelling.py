"""A person cancels: every row of the table of outcomes, and what must not happen meanwhile."""

from dataclasses import replace

import pytest

from kandev.core import decide, views
from kandev.core.effects import (
    AnswerPermission,
    CancelTurn,
    LaunchOver,
    Line,
    PermissionClosed,
    PermissionOpened,
    Prompt,
    Review,
    Start,
    Teardown,
    Timer,
)
from kandev.core.inputs import (
    Allow,
    Cancel,
    CancelFailed,
    CancelHeard,
    CancelUnheard,
    Ended,
    Exited,
    Expired,
    Gone,
    LaunchFailed,
    Output,
    PermissionDone,
    Refused,
    Stop,
    Taken,
)
from kandev.core.session import Answer, Launch, Phase, Session, TurnRef
from tests.core.sidecar import CHUNK
from tests.core.story import (
    OWN,
    Story,
    asleep,
    busy_by_itself,
    cancelling,
    dispatching,
    frame,
    message,
    parked,
    permission,
    refused_once,
    running,
    starting,
    up,
    waiting,
)


@pytest.mark.proves("TURN-no-execution", "CANCEL-error-agent-not-running", "INV-7")
@pytest.mark.parametrize("begin", [Story, asleep])
def test_without_an_execution_the_agent_is_not_running(begin: type[Story]) -> None:
    assert begin().refuses(Cancel("c"), "not_running").error == "agent not running"


@pytest.mark.proves("TURN-row-without-execution")
@pytest.mark.field("A13", "D09")
def test_a_session_whose_execution_is_unknown_settles_and_its_agent_is_not_running() -> None:
    s = running()
    s.s = decide.recovered(s.s)  # the backend was killed, and its sidecar with it
    s(Exited("s.1", why="agentctl does not know the agent's process any more"))(Gone("s.1", None))
    assert s.wire == "WAITING_FOR_INPUT" and s.closed[0].cause == "lost"
    s.refuses(Cancel("c"), "not_running")


@pytest.mark.proves("TURN-row-without-execution")
@pytest.mark.field("A13", "D01", "D09")
def test_a_row_that_claims_a_turn_without_a_process_is_settled() -> None:
    s = running()
    s.s = decide.recovered(replace(s.s, launch=Launch.ABSENT))
    assert s.owes(Teardown)
    s(Gone("s.1", None))
    assert s.wire == "WAITING_FOR_INPUT" and s.closed[0].cause == "lost"
    s.refuses(Cancel("c"), "not_running")


@pytest.mark.proves("TURN-row-without-execution")
@pytest.mark.field("A13")
def test_a_cancel_of_a_turn_whose_process_turns_out_to_be_gone_has_ended_nothing() -> None:
    s = cancelling()(Exited("s.1", why="agentctl does not know the agent's process any more"))
    assert s.said["c"] == "not_running" and s.replies["c"].error == "agent not running"
    assert not s.s.cancelling
    s.refuses(Cancel("d"), "not_running")
    s(Gone("s.1", None))
    assert s.closed[0].cause == "lost" and s.s.parked and "cancelled" not in s.s.parked


@pytest.mark.proves("TURN-no-turn", "CANCEL-error-no-active-turn")
def test_without_a_turn_it_is_a_success_and_nothing_happens() -> None:
    waiting().refuses(Cancel("c"), "ok")


def test_a_cancel_beside_a_queue_that_is_parked_already_changes_nothing() -> None:
    s = running()(message("D"))
    s(Ended(s.ref, "error", "401"))
    assert s.s.parked == "the last turn failed: 401"
    s.refuses(Cancel("c"), "ok")


@pytest.mark.proves("TURN-open-permission", "CANCEL-error-permission")
@pytest.mark.field("A27", "B33")
def test_an_open_permission_is_cancelled_with_its_turn() -> None:
    s = running()
    s(permission(s.ref))(Cancel("c"))
    assert views.waiting_for(s.s) is None and s.owes(CancelTurn)
    assert not s.owes(AnswerPermission), "agentctl answers it, as part of its cancel"
    assert s.permissions == {"p": Answer()}
    s(permission(s.ref, "p2"))
    assert s.permissions["p2"] == Answer(), "a new request of that turn is refused"
    s(Ended(s.ref, "cancelled"))
    assert s.said["c"] == "cancelled"
    assert {n.request: n.outcome for n in s.notes if isinstance(n, PermissionClosed)} == {
        "p": "cancelled",
        "p2": "cancelled",
    }


@pytest.mark.proves("TURN-starting", "HOLE-28")
@pytest.mark.field("A17", "A35", "B19")
def test_during_the_start_the_prompt_waits_parked_and_the_start_goes_on() -> None:
    s = starting()(Cancel("c"))
    assert s.said["c"] == "ok" and s.owes(Start) and s.queued == ("M",)
    assert s.s.parked == "cancelled by a person" and s.has(Review)
    s(up())
    assert not s.s.turn and s.wire == "WAITING_FOR_INPUT"
    assert s.notes == (LaunchOver(None, cancelled=True),)


@pytest.mark.proves("TURN-joined")
def test_a_second_cancel_joins_and_hears_the_same() -> None:
    s = running()(Cancel("c"))
    before = s.owed
    s(Cancel("d"))
    assert s.owed == before, "one cancel, not two"
    s(Ended(s.ref, "cancelled"))
    assert (s.said["c"], s.said["d"]) == ("cancelled", "cancelled")


@pytest.mark.proves("TURN-not-acknowledged", "CANCEL-error-timeout", "TURN-escalated-process-replaced")
@pytest.mark.field("A15", "A23", "D13")
@pytest.mark.parametrize("by", ["report", "timer"])
def test_not_acknowledged_in_time_the_process_is_replaced(by: str) -> None:
    s = cancelling()
    turn = s.ref
    s(CancelUnheard(turn, 1) if by == "report" else Expired(Timer("end", (turn, 1))))
    assert s.said["c"] == "timeout" and s.replies["c"].error == "cancel timed out, still under way"
    assert s.owed == (Teardown("s.1", None),) and s.wire == "RUNNING" and s.s.cancelling
    for late in (Ended(turn), Output(turn, CHUNK), permission(turn)):
        s.ignores(late)
    assert s(Cancel("d")).said["d"] == "timeout"
    s(Gone("s.1"))
    assert s.wire == "WAITING_FOR_INPUT" and s.queued == ("D",) and s.s.parked
    assert s.closed[0].cause == "user"
    s(message("H"))
    assert s.s.execution == "s.2" and s.s.conversation == "conversation"


@pytest.mark.proves("TURN-acknowledged-behind-output")
def test_an_agent_that_obeyed_is_not_replaced_however_far_behind_the_journal_is() -> None:
    s = cancelling()
    turn = s.ref
    (deadline,) = [t for t in views.timers(s.s) if t.kind == "end"]
    s(CancelHeard(turn, 1))
    s.ignores(Expired(deadline))
    for seq in range(1, 4):
        (deadline,) = [t for t in views.timers(s.s) if t.kind == "end"]
        s(frame(seq, Output(turn, CHUNK)))
        s.ignores(Expired(deadline))
    s.ignores(CancelUnheard(turn, 1))
    s(Expired(Timer("cancel", "c")))
    assert s.said["c"] == "timeout" and s.s.cancelling, "the truth at the deadline: still under way"
    s(frame(4, Ended(turn, "cancelled")))
    assert s.closed[0].cause == "user" and s.s.launch is Launch.READY and s.s.execution == "s.1"


def test_an_end_that_was_promised_and_never_comes_is_claimed() -> None:
    s = cancelling()
    s(CancelHeard(s.ref, 1))
    (deadline,) = [t for t in views.timers(s.s) if t.kind == "end"]
    assert s(Expired(deadline)).owes(Teardown)


def test_a_cancel_that_fails_after_it_was_heard_promises_no_end() -> None:
    s = cancelling()
    s(CancelHeard(s.ref, 1))(CancelFailed(s.ref, 1))(Cancel("d"))
    assert Timer("end", (s.ref, 2)) in views.timers(s.s)


@pytest.mark.proves("TURN-stop-meanwhile")
def test_a_stop_meanwhile_answers_both() -> None:
    s = running()(Cancel("c"))(Stop("x"))
    assert (s.said["c"], s.said["x"]) == ("stopped", "stopped") and s.wire == "CANCELLED"
    assert not s.s.cancelling and s.s.cancellations == 2


@pytest.mark.proves("TURN-intent-decides")
@pytest.mark.field("A21", "B17")
@pytest.mark.parametrize("reason, error", [("cancelled", None), ("end_turn", None), ("error", "boom")])
def test_our_intent_decides_that_a_turn_was_cancelled(reason: str, error: str | None) -> None:
    s = running()(Cancel("c", by="anna"))
    assert s.s.phase is Phase.CANCELLING and s.owes(CancelTurn)
    s(Ended(s.ref, reason, error))
    assert s.said["c"] == "cancelled" and s.lines == ["Turn cancelled by anna."]
    assert (s.closed[0].stop_reason, s.closed[0].cause) == ("cancelled", "user") and s.has(Review)
    assert s.wire == "WAITING_FOR_INPUT" and s.s.launch is Launch.READY


@pytest.mark.proves("TURN-parked")
@pytest.mark.field("C29")
def test_what_waits_is_parked_after_a_persons_cancel() -> None:
    s = parked("peer")
    assert s.queued == ("D",) and s.s.parked == "cancelled by a person" and not s.s.turn


def test_parking_lasts_only_while_entries_wait() -> None:
    s = running()(Cancel("c"))
    s(Ended(s.ref))
    assert s.s.parked is None
    s(message("A", "peer"))
    assert s.saying == ("A",)


@pytest.mark.proves("TURN-next-prompt")
def test_the_same_process_takes_the_next_prompt() -> None:
    s = running()(Cancel("c"))
    s(Ended(s.ref, "cancelled"))(message("A"))
    assert s.ref == TurnRef("s.1", 2) and s.owes(Prompt)


@pytest.mark.field("A23")
def test_a_cancel_that_fails_leaves_the_turn_as_if_nobody_had_asked() -> None:
    s = running()(Cancel("c"))
    s(CancelFailed(s.ref, 1, "the pipe is full"))
    assert s.said["c"] == "failed" and s.s.phase is Phase.RUNNING and not s.s.cancelling
    s(Ended(s.ref))
    assert s.closed[0].cause == "agent" and not s.lines


@pytest.mark.proves("INV-4", "HOLE-19")
def test_the_failure_of_an_earlier_attempt_is_history() -> None:
    s = running()(Cancel("c1"))
    s(CancelFailed(s.ref, 1))(Cancel("c2"))
    s.ignores(CancelFailed(s.ref, 1))
    s.ignores(CancelUnheard(s.ref, 1))
    assert s.s.phase is Phase.CANCELLING and "c2" not in s.said


def test_failures_and_silence_without_a_cancel_are_history() -> None:
    s = running()
    s.ignores(CancelFailed(s.ref, 0))
    s.ignores(CancelUnheard(s.ref, 0))


@pytest.mark.proves("TURN-caller-gone")
def test_a_caller_who_waited_long_enough_hears_so_and_the_cancel_goes_on() -> None:
    s = running()(Cancel("c"))(Expired(Timer("cancel", "c")))
    assert s.said["c"] == "timeout" and s.owes(CancelTurn)
    s(Ended(s.ref))
    assert s.lines == ["Turn cancelled by user."]


@pytest.mark.proves("TURN-pending-visible")
def test_the_revision_grows_with_each_change_of_pending_and_with_nothing_else() -> None:
    s = running()
    seen = [(s.s.cancelling, s.s.cancellations)]
    turn = s.ref
    for given in (
        Cancel("c"),
        Cancel("d"),
        Output(turn, CHUNK),
        CancelFailed(turn, 1),
        Cancel("e"),
        Ended(turn),
    ):
        s(given)
        seen.append((s.s.cancelling, s.s.cancellations))
    assert seen == [(False, 0), (True, 1), (True, 1), (True, 1), (False, 2), (True, 3), (False, 4)]


@pytest.mark.proves("TURN-latched")
@pytest.mark.field("A17", "A35")
def test_a_cancel_before_acceptance_is_owed_beside_the_prompt() -> None:
    s = dispatching()(Cancel("c"))
    assert [type(o) for o in s.owed][1:] == [Prompt, CancelTurn]
    assert s.timers >= {"accept", "end"}
    s(Taken(s.ref))
    assert s.owes(CancelTurn) and not s.owes(Prompt) and s.s.phase is Phase.CANCELLING


def test_a_prompt_refused_under_a_cancel_goes_back_parked() -> None:
    s = dispatching()(Cancel("c"))
    s(Refused(s.ref, "busy"))
    assert s.said["c"] == "cancelled" and s.queued == ("M",) and s.s.parked and not s.s.retry


def test_a_cancel_between_a_refusal_and_its_retry_parks() -> None:
    s = refused_once()(Cancel("c"))
    assert s.said["c"] == "ok" and s.s.parked and not s.timers and s.has(Line)


def test_a_death_during_a_cancel_counts_as_cancelled() -> None:
    s = cancelling()(Exited("s.1", 1))(Gone("s.1"))
    assert (
        s.said["c"] == "cancelled" and s.closed[0].cause == "user" and s.s.parked == "cancelled by a person"
    )


def test_a_launch_that_fails_after_a_cancel_keeps_the_message() -> None:
    s = starting()(Cancel("c"))(LaunchFailed("s.1", "no"))
    assert s.wire == "FAILED" and s.queued == ("M",)


def test_a_turn_that_the_agent_began_is_cancelled_by_its_own_identity() -> None:
    s = busy_by_itself()(Cancel("c"))
    assert CancelTurn(OWN, 1) in s.owed
    s.ignores(Ended(TurnRef("s.1", 0, "o0")))
    assert s(Ended(OWN)).said["c"] == "cancelled"


# -- permissions -----------------------------------------------------------------------------------


@pytest.mark.proves("STATE-waiting-for")
def test_an_open_permission_leaves_the_session_running_and_not_promptable() -> None:
    s = running()
    s(permission(s.ref))
    assert s.wire == "RUNNING" and views.waiting_for(s.s) == "permission" and s.has(PermissionOpened)
    s(message("A"))
    assert s.said["A"] == "queued" and s.saying == ("M",)
    s(Allow("y", "p", Answer("allow")))
    assert views.waiting_for(s.s) is None
    assert AnswerPermission(s.ref, "p", Answer("allow")) in s.owed


def test_a_permission_answered_by_a_cancel_that_failed_stays_answered_as_cancelled() -> None:
    s = running()
    s(permission(s.ref))(Cancel("c"))(CancelFailed(s.ref, 1))
    assert AnswerPermission(s.ref, "p", Answer()) in s.owed


def test_a_decision_is_taken_once() -> None:
    s = running()
    s(permission(s.ref))(Allow("y", "p", Answer("allow")))
    s.refuses(Allow("n", "p", Answer(rejected=True)), "not_found")
    s(permission(s.ref))
    assert s.permissions == {"p": Answer("allow")}, "a repeated request changes nothing"
    s(PermissionDone(s.ref, "p", "selected"))
    assert not s.owes(AnswerPermission) and s.permissions == {}


def test_a_request_of_a_process_that_died_waits_for_nobody() -> None:
    s = running()
    s(permission(s.ref))(Exited("s.1"))
    assert views.waiting_for(s.s) is None
    s.refuses(Allow("y", "p", Answer("allow")), "not_found")
    s(Gone("s.1"))
    assert s.has(PermissionClosed)


@pytest.mark.field("B37")
def test_a_permission_of_another_turn_is_history() -> None:
    s = waiting()(message("A"))
    s.ignores(permission(TurnRef("s.1", 1)))


def test_a_permission_asked_before_acceptance_was_told_says_that_the_prompt_was_taken() -> None:
    s = dispatching()
    s(permission(s.ref))
    assert s.fates["M"] == "delivered" and not s.owes(Prompt)


@pytest.mark.proves("INV-3")
@pytest.mark.field("B05", "B25")
def test_reports_of_an_earlier_turn_change_nothing_of_the_present_one() -> None:
    s = waiting()(message("A"))
    old = TurnRef("s.1", 1)
    for late in (Taken(old), Refused(old), Ended(old), Output(old, CHUNK), CancelFailed(old, 1)):
        s.ignores(late)


@pytest.mark.proves("HOLE-13")
def test_a_replayed_frame_is_history() -> None:
    s = running()
    asked = frame(3, permission(s.ref))
    s(asked)
    s.ignores(asked)
    s.ignores(frame(2, Ended(s.ref)))


def test_a_fresh_value_owes_nothing() -> None:
    assert views.owed(Session("s")) == () and not views.timers(Session("s"))

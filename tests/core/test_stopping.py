"""A stop ends a session at once, and what comes back to a stopped session is history."""

from collections.abc import Callable

import pytest

from kandev.core import decide, views
from kandev.core.effects import (
    ExecutionOver,
    Line,
    PermissionClosed,
    Prompt,
    Returned,
    Review,
    Start,
    Teardown,
    Timer,
    Told,
)
from kandev.core.inputs import (
    Cancel,
    CancelUnheard,
    Ended,
    Exited,
    Expired,
    Gone,
    LaunchFailed,
    Looked,
    Output,
    OwnTurn,
    Ready,
    Refused,
    Remove,
    Resume,
    Said,
    Stop,
    Taken,
)
from kandev.core.session import Launch, Outcome, TurnRef
from kandev.core.transcript import Notice
from tests.core.sidecar import CHUNK
from tests.core.story import (
    Story,
    asleep,
    dispatching,
    frame,
    message,
    parked,
    permission,
    refused_and_asleep,
    running,
    starting,
    up,
    waiting,
)


@pytest.mark.proves("STOP-running")
def test_a_running_session_is_cancelled_first_and_torn_down_after() -> None:
    s = running()(message("Q"))(Stop("x"))
    assert s.said["x"] == "stopped" and s.wire == "CANCELLED" and s.has(Review)
    assert s.owed == (Teardown("s.1", None),) and s.closed[0].cause == "stopped"
    s.refuses(Stop("y"), "not_running")


@pytest.mark.proves("STOP-waiting")
def test_a_waiting_session_whose_process_lives_is_stopped() -> None:
    s = waiting()(Stop("x"))
    assert s.said["x"] == "stopped" and s.owes(Teardown)


@pytest.mark.proves("STOP-nothing-runs", "INV-7")
@pytest.mark.parametrize("begin", [Story, asleep])
def test_without_a_process_nothing_runs_and_nothing_changes(begin: type[Story]) -> None:
    begin().refuses(Stop("x"), "not_running")


@pytest.mark.proves("STOP-retry", "HOLE-20")
def test_a_session_that_would_try_again_by_itself_is_stopped_and_the_timer_is_gone() -> None:
    s = refused_and_asleep()
    assert s.timers == {"retry"}
    s(Stop("x"))
    assert s.said["x"] == "stopped" and not s.timers and not s.owed and s.queued == ("D",)


def test_a_retry_without_an_entry_is_nothing_that_runs() -> None:
    s = refused_and_asleep()(Remove("r", "D"))
    s.refuses(Stop("x"), "not_running")


@pytest.mark.parametrize(
    ("begin", "outcome"),
    [(Story, Outcome.COMPLETED), (Story, Outcome.CANCELLED), (asleep, Outcome.COMPLETED)],
)
def test_when_its_task_is_over_an_idle_session_ends_too(begin: Callable[[], Story], outcome: Outcome) -> None:
    s = begin()(Stop("x", outcome, idle_too=True))
    assert s.said["x"] == "stopped" and s.wire == outcome.upper() and not s.owed
    s.refuses(Stop("y", outcome, idle_too=True), "not_running")


@pytest.mark.proves("STOP-before-end", "STOP-death", "INV-3", "INV-5", "STATE-terminal")
@pytest.mark.field("B27", "C35")
def test_whatever_comes_after_a_stop_is_history() -> None:
    s = running()
    turn = s.ref
    s(message("Q"))(Stop("x"))
    late = (Ended(turn), Output(turn, CHUNK), permission(turn), Exited("s.1", 9), Taken(turn), Refused(turn))
    for report in (*late, up(), LaunchFailed("s.1", "no"), OwnTurn(TurnRef("s.1", 0, "o"))):
        s.ignores(report)
    s(frame(7, Said("s.1", Notice("mode"))))
    assert s.notes == ()
    s(Gone("s.1"))
    assert s.wire == "CANCELLED" and s.queued == ("Q",) and not s.owed and not s.has(Line)


@pytest.mark.proves("STOP-claimed", "INV-2", "HOLE-21")
@pytest.mark.field("C03", "C15")
@pytest.mark.parametrize(
    "taken, queue, fate", [(False, ("Q", "Z"), None), (True, ("Z",), "delivered"), (None, ("Z",), "unknown")]
)
def test_a_prompt_on_its_way_is_settled_by_the_process_end(
    taken: bool | None, queue: tuple[str, ...], fate: str | None
) -> None:
    s = waiting()(message("Q"))(message("Z"))(Stop("x"))
    assert s.owed == (Teardown("s.1", s.ref),) and not s.owes(Prompt)
    s(Gone("s.1", taken))
    assert s.queued == queue and s.fates.get("Q") == fate
    assert s.has(Returned) is (taken is False) and s.s.parked is None, "a stop parks nothing"


def test_a_prompt_that_turns_out_refused_or_taken_after_the_stop_is_told_and_nothing_runs() -> None:
    s = dispatching()(Stop("x"))
    turn = s.ref
    s(Refused(turn, "busy"))
    assert s.queued == ("M",) and not s.s.retry and s.closed[0].cause == "stopped"
    t = dispatching()(Stop("x"))
    t(Output(turn, CHUNK))
    assert t.fates == {"M": "delivered"} and not t.has(Told)
    t(permission(turn))(Ended(turn))
    assert t.closed[0].cause == "stopped" and t.wire == "CANCELLED"


@pytest.mark.proves("STOP-starting")
@pytest.mark.field("A31", "A41", "B27")
def test_a_launch_under_way_is_rolled_back() -> None:
    s = starting()(Stop("x"))
    assert s.said["x"] == "stopped" and s.owed == (Teardown("s.1", None),)
    s.ignores(Ready("s.1", "j"))
    s(Gone("s.1"))
    assert s.queued == ("M",) and not s.owed


@pytest.mark.proves("STOP-caller-gone")
@pytest.mark.field("E01")
def test_the_teardown_is_owed_although_the_backend_died_after_its_answer() -> None:
    s = running()(Stop("x"))
    s.s = decide.recovered(s.s)
    assert s.owed == (Teardown("s.1", None),)


@pytest.mark.proves("STOP-hanging-teardown")
@pytest.mark.field("A01")
def test_what_is_left_after_a_teardown_is_named() -> None:
    s = running()(Stop("x"))(Gone("s.1", None, ("pid 7 (sleep)",)))
    assert s.lines == ["Processes that could not be ended: pid 7 (sleep)."]
    over = [n for n in s.notes if isinstance(n, ExecutionOver)]
    assert over[0].survivors == ("pid 7 (sleep)",)


@pytest.mark.proves("HOLE-27")
@pytest.mark.field("D19", "E05")
def test_a_process_that_cannot_be_proven_gone_is_still_tried() -> None:
    s = running()(Stop("x"))(Expired(Timer("close", "s.1")))
    assert s.launch == "lost" and s.owes(Teardown) and not s.timers
    s(Gone("s.1"))
    assert s.launch == "absent" and not s.owed


@pytest.mark.proves("STOP-last-words")
def test_a_process_that_was_looked_at_is_not_lost_however_long_its_last_words_are() -> None:
    s = running()(Stop("x"))
    s.ignores(Looked("s.0"))
    s(Looked("s.1"))
    for seq in range(1, 4):
        (deadline,) = views.timers(s.s)
        s(frame(seq, Output(TurnRef("s.1", 1), CHUNK)))
        s.ignores(Expired(deadline))
    (deadline,) = views.timers(s.s)
    s(Gone("s.1"))
    assert s.launch == "absent" and not s.s.looked
    s.ignores(Expired(deadline))


@pytest.mark.proves("HOLE-27")
def test_a_lost_process_can_be_stopped_too() -> None:
    s = waiting()(Exited("s.1"))(Expired(Timer("close", "s.1")))(Stop("x"))
    assert s.said["x"] == "stopped" and s.s.launch is Launch.LOST and s.owes(Teardown)


@pytest.mark.field("A27", "B33")
def test_open_permissions_end_with_the_session() -> None:
    s = running()
    s(permission(s.ref))(Stop("x"))
    assert [n.request for n in s.notes if isinstance(n, PermissionClosed)] == ["p"] and not s.s.permissions


@pytest.mark.field("A29", "A11")
@pytest.mark.parametrize("lost", [False, True])
def test_a_stop_with_force_hurries_one_that_is_still_under_way(lost: bool) -> None:
    s = running()(message("Q"))(Stop("x"))
    if lost:
        s(Expired(Timer("close", "s.1")))
    s.refuses(Stop("y"), "not_running")
    s(Stop("z", force=True))
    assert s.said["z"] == "stopped" and s.owed == (Teardown("s.1", None, force=True),)
    assert s.wire == "CANCELLED" and not s.lines, "it was stopped once"
    s.refuses(Stop("more", force=True), "not_running")
    s(Gone("s.1"))
    assert not s.owes(Teardown) and s.queued == ("Q",)
    s.refuses(Stop("late", force=True), "not_running")


def test_force_is_asked_for_and_forgotten_with_the_process() -> None:
    s = running()(Stop("x", force=True))
    assert s.owed == (Teardown("s.1", None, force=True),)
    s(Gone("s.1"))
    assert not s.s.force


# -- and then ---------------------------------------------------------------------------------------


@pytest.mark.proves("HOLE-21")
@pytest.mark.field("D19")
def test_a_resume_after_a_stop_waits_for_the_old_process() -> None:
    s = running()(Stop("x"))(Resume("r"))
    assert s.said["r"] == "resuming" and s.wire == "STARTING" and not s.owes(Start)
    s(Gone("s.1"))
    assert s.owed == (Start("s.2"),)


@pytest.mark.proves("HOLE-25")
@pytest.mark.parametrize("taken", [False, None, True])
def test_a_resume_while_the_stop_is_not_settled_drains_everything_in_order(taken: bool | None) -> None:
    s = waiting()(message("Q"))(message("Z"))(Stop("x"))
    turn = s.ref
    s(Resume("r"))
    assert s.wire == "STARTING" and s.replies["r"].details == {"queued": 1}
    s(Gone("s.1", taken))
    assert s.s.parked is None and s.closed[0].cause == "stopped" and s.closed[0].turn == turn
    s(up("s.2"))
    assert s.saying == (("Q",) if taken is False else ("Z",)) and s.wire == "RUNNING"


@pytest.mark.field("B45")
def test_a_refusal_of_the_stopped_process_is_none_of_the_resumed_session() -> None:
    s = dispatching()(Stop("x"))(Resume("r"))
    s(Refused(s.ref, "it ends"))
    assert not s.s.retry and s.s.refusals == 0
    s(Gone("s.1", False))(up("s.2"))
    assert s.saying == ("M",)


def test_the_output_of_a_stopped_turn_is_not_shown_after_a_resume() -> None:
    s = dispatching()(Stop("x"))(Resume("r"))
    assert not s(Output(s.ref, CHUNK)).has(Told)


def test_a_resume_releases_nothing_that_is_parked_and_says_how_many_wait() -> None:
    s = parked()(Stop("x"))(Gone("s.1"))(Resume("r"))
    assert s.replies["r"].details == {"queued": 1} and s.s.parked
    s(up("s.2"))
    assert not s.s.turn and s.wire == "WAITING_FOR_INPUT"


def test_a_stop_during_the_escalation_of_a_cancel_ends_the_session() -> None:
    s = dispatching()(Cancel("c"))
    s(CancelUnheard(s.ref, 1))(Stop("x"))
    assert s.said["x"] == "stopped" and not s.s.cancelling
    s(Gone("s.1", False))
    assert s.queued == ("M",) and s.s.parked is None and s.wire == "CANCELLED"


# -- completing ------------------------------------------------------------------------------------


@pytest.mark.proves("HOLE-26")
def test_completing_parks_what_waits_and_what_comes_back() -> None:
    s = waiting()(message("Q"))(Stop("x", Outcome.COMPLETED))
    assert s.wire == "COMPLETED"
    s(Gone("s.1", False))
    assert s.queued == ("Q",) and s.s.parked == "the session was completed"
    t = running()(message("Q"))(Stop("x", Outcome.COMPLETED))
    assert t.s.parked == "the session was completed"


def test_a_peers_message_to_a_completed_session_with_a_parked_queue_joins_it() -> None:
    s = running()(message("Q"))(Stop("x", Outcome.COMPLETED))(Gone("s.1"))(message("A", "peer"))
    assert s.wire == "COMPLETED" and s.said["A"] == "queued" and s.queued == ("Q", "A")
    s(message("H"))
    assert s.wire == "STARTING" and not s.s.parked


@pytest.mark.field("B39")
def test_a_turn_that_ends_while_its_process_is_ended_did_not_end_itself() -> None:
    s = running()
    turn = s.ref
    s(Exited("s.1", why="Kandev was stopped"))(Ended(turn, "cancelled"))
    assert s.closed[0].cause == "process"
    assert "The agent interrupted its own turn." not in s.lines

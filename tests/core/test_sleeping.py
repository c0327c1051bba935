"""An agent that has nothing to do is put to sleep, and nothing is ever lost by it."""

import pytest

from kandev.core import decide, views
from kandev.core.effects import Doze, ExecutionOver, Follow, Line, Start, Teardown, Timer
from kandev.core.inputs import (
    Asleep,
    Awake,
    Cancel,
    Ended,
    Exited,
    Expired,
    Gone,
    Output,
    OwnTurn,
    Ready,
    Resume,
    Said,
    Stop,
)
from kandev.core.session import TurnRef
from kandev.core.transcript import Notice, Text
from tests.core.story import (
    OWN,
    Story,
    cancelling,
    dispatching,
    dozing,
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

pytestmark = pytest.mark.proves("SURVIVE-sleep")


def idle(s: Story) -> Timer | None:
    return next((t for t in views.timers(s.s) if t.kind == "idle"), None)


def ended_asleep() -> Story:
    return dozing()(Asleep("s.1"))


@pytest.mark.parametrize("quiet", [waiting, parked])
def test_an_agent_that_has_nothing_to_do_is_timed(quiet: type[Story]) -> None:
    assert idle(quiet())


def test_who_came_up_and_was_told_nothing_is_timed_too() -> None:
    assert idle(Story(Resume("r"), up()))


@pytest.mark.field("D27")
@pytest.mark.parametrize("busy", [Story, starting, dispatching, running, cancelling, refused_once, dozing])
def test_an_agent_that_works_or_soon_will_is_not(busy: type[Story]) -> None:
    assert idle(busy()) is None


def test_an_agent_whose_conversation_nobody_could_take_up_is_never_put_to_sleep() -> None:
    s = Story(message("M"), Ready("s.1", "journal of s.1", None))
    assert idle(s(Ended(s.ref))) is None


def test_an_open_permission_keeps_it_awake() -> None:
    s = running()
    assert idle(s(permission(s.ref))) is None


@pytest.mark.field("D27")
def test_whatever_the_agent_says_begins_the_wait_anew() -> None:
    s = waiting()
    before = idle(s)
    s(frame(1, Said("s.1", Notice("a background job made progress"))))
    assert idle(s) not in (None, before)
    s.ignores(Expired(before))  # type: ignore[arg-type]


def test_after_the_wait_agentctl_is_asked_to_end_it_if_nothing_goes_on() -> None:
    s = dozing()
    assert (s.launch, s.wire, s.owed, s.timers) == (
        "dozing",
        "WAITING_FOR_INPUT",
        (Doze("s.1", 0),),
        {"doze"},
    )
    assert views.execution_status(s.s) == "ready"


def test_asleep_it_is_a_row_and_its_end_is_no_fault() -> None:
    s = ended_asleep()
    assert s.owed == (Teardown("s.1", None, False),)
    s = s(Gone("s.1", None, exit_code=0))
    assert [n for n in s.notes if isinstance(n, ExecutionOver)] == [ExecutionOver("s.1", 0, (), None)]
    assert [s.launch, s.wire] == ["absent", "WAITING_FOR_INPUT"]
    assert not s.owed and not views.timers(s.s)
    assert not views.needs_actor(s.s) and s.s.conversation == "conversation"
    assert not s.has(Line)


def test_the_next_message_wakes_it() -> None:
    s = ended_asleep()(Gone("s.1"))(message("A"))
    assert (s.wire, s.owed) == ("STARTING", (Start("s.2"),))
    assert s(up("s.2")).saying == ("A",)


def test_a_message_that_meets_a_dozing_agent_waits_for_what_becomes_of_it() -> None:
    s = dozing()(message("A"))
    assert (s.wire, s.saying, views.execution_status(s.s)) == ("STARTING", (), "replacing")
    assert "A" not in s.said, "its sender waits"
    assert s(Awake("s.1", "a turn runs")).saying == ("A",)
    assert s.wire == "RUNNING"


def test_a_message_that_meets_an_agent_that_is_ended_starts_the_next_one() -> None:
    s = dozing()(message("A"))(Asleep("s.1"))(Gone("s.1"))
    assert s.owed == (Start("s.2"),) and s.queued == ("A",)


def test_an_agent_that_speaks_while_it_dozes_is_heard() -> None:
    s = dozing()(frame(1, OwnTurn(OWN)))
    assert (s.launch, s.wire) == ("ready", "RUNNING")
    assert not s.owes(Doze) and s.owes(Follow)
    s.ignores(Asleep("s.1"))


def test_one_that_died_instead_is_settled_like_any_death() -> None:
    s = dozing()(frame(1, Exited("s.1", 3)))
    assert s.launch == "closing" and s.owes(Teardown)
    s(Gone("s.1", None, exit_code=3))
    assert [n.error for n in s.notes if isinstance(n, ExecutionOver)] == [
        "the agent's process ended (exit code 3)"
    ]


def test_one_that_agentctl_does_not_know_is_gone() -> None:
    assert dozing()(Exited("s.1", why="unknown")).owes(Teardown)


def test_no_answer_in_time_leaves_it_awake_and_followed() -> None:
    s = dozing()(message("A"))(Expired(Timer("doze", "s.1")))
    assert s.launch == "ready" and s.saying == ("A",) and s.owes(Follow)


def test_a_stop_of_a_dozing_agent_is_a_stop() -> None:
    s = dozing()(Stop("x", force=True))
    assert (s.said["x"], s.wire, s.owed) == ("stopped", "CANCELLED", (Teardown("s.1", None, True),))
    s.ignores(Awake("s.1"))
    s.ignores(Asleep("s.1"))


def test_a_cancel_of_a_dozing_agent_has_nothing_to_end() -> None:
    assert dozing().refuses(Cancel("c"), "ok").error is None


def test_a_resume_of_a_dozing_agent_finds_it_up_or_starts_it() -> None:
    awake = dozing()(Resume("r"))(Awake("s.1"))
    assert (awake.said["r"], awake.wire, awake.launch) == ("resuming", "WAITING_FOR_INPUT", "ready")
    assert awake(message("A")).wire == "RUNNING"
    anew = dozing()(Resume("r"))(Asleep("s.1"))(Gone("s.1"))
    assert (anew.wire, anew.owed) == ("STARTING", (Start("s.2"),))


def test_a_crash_while_it_dozes_asks_again() -> None:
    s = dozing()
    assert views.owed(decide.recovered(s.s)) == s.owed and views.needs_actor(s.s)


def test_reports_about_sleep_that_come_late_or_twice_are_history() -> None:
    s = ended_asleep()
    s.ignores(Asleep("s.1"))
    s.ignores(Awake("s.1"))
    s(Gone("s.1"))(message("A"))(up("s.2"))
    s.ignores(Asleep("s.1"))


def test_old_news_from_an_agent_that_dozes_shows_that_it_is_up_and_what_waits_is_delivered() -> None:
    s = dozing()(message("A"))(frame(1, Output(TurnRef("s.1", 1), Text("message", "late"))))
    assert (s.launch, s.saying) == ("ready", ("A",))


def test_a_turn_that_began_while_its_process_was_ended_is_told_with_its_end() -> None:
    s = ended_asleep()(message("A"))(frame(1, OwnTurn(OWN)))
    assert s.wire == "RUNNING" and s.queued == ("A",)
    s(Gone("s.1", exit_code=0))
    assert [(n.turn, n.cause, n.error) for n in s.closed] == [(OWN, "process", None)]
    assert s.owed == (Start("s.2"),) and not s.s.parked

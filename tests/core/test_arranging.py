"""What people do with a queue: words, order, the switch, and what each refuses."""

from dataclasses import replace
from typing import Any

import pytest

from kandev.core.effects import CancelTurn, Edited, Placed, Review, Timer
from kandev.core.inputs import (
    AutoRun,
    Cancel,
    Clear,
    Drain,
    Edit,
    Ended,
    Exited,
    Expired,
    Gone,
    Interrupt,
    Refused,
    Remove,
    Reorder,
    Resume,
    SendNow,
    Stop,
    Taken,
)
from kandev.core.session import Entry, Outcome, Phase
from tests.core.story import Story, dispatching, message, parked, refused_once, running, waiting


def three() -> Story:
    """D, E and F wait behind M's turn."""
    return running()(message("D", "peer"))(message("E"))(message("F", "peer"))


def automation(name: str, key: str = "ci") -> Any:
    return replace(message(name), entry=Entry(name, "automation", coalesce=key), patient=True)


def test_an_entry_that_waits_is_reworded_and_one_in_a_turn_is_not() -> None:
    s = three()(Edit("e", "D", "other words"))
    assert s.said["e"] == "ok" and s.notes[0] == Edited("D", "other words")
    s.refuses(Edit("no", "M", "too late"), "claimed")
    dispatching().refuses(Edit("no", "X", "nobody"), "not_found")


def test_entries_wait_in_the_order_that_they_are_given() -> None:
    s = three()(Reorder("r", ("F", "D", "E")))
    assert s.said["r"] == "ok" and s.queued == ("F", "D", "E") and s.has(Placed)
    s(Ended(s.ref))
    assert s.saying == ("F",)
    s(Refused(s.ref, "busy"))
    assert s.queued == ("F", "D", "E"), "one that comes back has its new place"


@pytest.mark.parametrize("order", [("D", "E"), ("D", "E", "F", "F"), ("D", "E", "X"), ()])
def test_an_order_that_does_not_name_each_of_them_once_changes_nothing(order: tuple[str, ...]) -> None:
    three().refuses(Reorder("r", order), "mismatch")


def test_a_queue_is_emptied_whoever_waits_hears_it() -> None:
    s = three()(Clear("c"))
    assert s.replies["c"].details == {"removed": 3} and s.queued == ()
    assert s.fates == {"M": "delivered", "D": "removed", "E": "removed", "F": "removed"}


@pytest.mark.parametrize("away", [Remove("a", "D"), Clear("a")])
def test_what_was_refused_and_is_taken_out_is_not_tried_again(away: Any) -> None:
    s = refused_once()(away)
    assert not s.s.retry and s.has(Review) and "retry" not in s.timers


def test_the_switch_stays_off_whatever_comes() -> None:
    s = three()(AutoRun("off", False))
    s(Ended(s.ref))
    assert s.s.phase is Phase.WAITING and s.queued == ("D", "E", "F")
    s(message("G", "person"))
    assert s.saying == ("G",), "what a person says to an idle session runs at once"
    s(Taken(s.ref))(Ended(s.ref))
    assert s.queued == ("D", "E", "F") and not s.s.auto_run
    s(AutoRun("on", True))
    assert s.saying == ("D",)


def test_the_switch_holds_an_empty_queue_too() -> None:
    s = waiting()(AutoRun("off", False))(message("D", "peer"))
    assert s.said["D"] == "queued" and s.queued == ("D",) and s.s.phase is Phase.WAITING


@pytest.mark.parametrize("by", ["peer", "automation"])
def test_a_session_that_was_never_started_says_queued_while_the_switch_is_off(by: Any) -> None:
    s = Story(AutoRun("off", False))(message("P", by))
    assert s.said["P"] == "queued" and s.wire == "CREATED" and not s.owed
    s(AutoRun("on", True))
    assert s.wire == "STARTING" and s.queued == ("P",)


@pytest.mark.parametrize("given", [message("M", "person"), replace(message("M"), interrupt=Interrupt(None))])
def test_who_speaks_or_interrupts_starts_it_whatever_the_switch_says(given: Any) -> None:
    s = Story()(AutoRun("off", False))(given)
    assert s.said["M"] == "started" and s.wire == "STARTING"


def test_the_switch_on_releases_what_a_cancel_parked() -> None:
    s = parked()(AutoRun("on", True))
    assert s.saying == ("D",) and s.s.parked is None


@pytest.mark.proves("HOLE-26")
def test_the_switch_on_opens_a_completed_session_that_has_something_to_say() -> None:
    s = three()(Stop("stop", Outcome.COMPLETED))(Gone("s.1"))
    assert s.wire == "COMPLETED" and s.queued
    s(AutoRun("on", True))
    assert s.s.outcome is Outcome.OPEN and s.launch == "starting"


def test_a_resume_does_not_move_the_switch() -> None:
    s = three()(AutoRun("off", False))(Exited("s.1"))(Gone("s.1"))(Resume("r"))
    assert not s.s.auto_run and s.queued == ("D", "E", "F")


@pytest.mark.parametrize(
    ("begin", "word"),
    [
        (running, "turn is under way"),
        (dispatching, "turn is under way"),
        (parked, "parked"),
        (lambda: waiting()(AutoRun("off", False))(message("D", "peer")), "switched off"),
        (lambda: running()(Stop("stop")), "CANCELLED"),
    ],
)
def test_a_drain_says_why_nothing_runs(begin: Any, word: str) -> None:
    assert word in str(begin().refuses(Drain("d"), "conflict").error)


def test_a_drain_tries_a_refused_entry_at_once() -> None:
    s = refused_once()(Drain("d"))
    assert s.said["d"] == "ok" and s.saying == ("D",)


def test_a_drain_of_an_idle_empty_queue_is_fine() -> None:
    s = waiting()(Drain("d"))
    assert s.said["d"] == "ok"


@pytest.mark.proves("RACE-I1")
def test_send_now_is_an_interrupt_by_a_person_and_switches_the_queue_on() -> None:
    s = running()(message("D", "peer"))(message("E", "peer"))(SendNow("now", "E"))
    assert s.owes(CancelTurn) and s.s.auto_run
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("E",) and s.queued == ("D",)
    assert s(Taken(s.ref)).said["now"] == "sent"


def test_send_now_on_an_idle_parked_session_needs_no_cancel_and_releases_the_rest() -> None:
    s = parked()(message("E", "peer"))(SendNow("now", "E"))
    assert s.saying == ("E",) and s.s.parked is None
    s(Taken(s.ref))(Ended(s.ref))
    assert s.said["now"] == "sent" and s.saying == ("D",)


def test_send_now_during_a_persons_cancel_goes_next() -> None:
    s = three()(Cancel("c"))(SendNow("now", "F"))
    s(Ended(s.ref, "cancelled"))
    assert s.closed[0].cause == "user" and s.saying == ("F",)


@pytest.mark.parametrize(
    ("begin", "entry", "status"),
    [(three, "M", "claimed"), (dispatching, "M", "claimed"), (three, "X", "not_found")],
)
def test_send_now_of_what_does_not_wait_is_refused(begin: Any, entry: str, status: str) -> None:
    begin().refuses(SendNow("now", entry), status)


def test_send_now_on_a_stopped_session_is_refused() -> None:
    s = three()(Stop("stop"))
    s.refuses(SendNow("now", "D"), "rejected")


def test_a_later_entry_of_an_automation_takes_the_place_of_its_earlier_one() -> None:
    s = running()(automation("C1"))(message("D", "peer"))(automation("C2"))(automation("X", "other"))
    assert s.queued == ("C2", "D", "X") and s.fates["C1"] == "replaced"
    s(Ended(s.ref))
    assert s.saying == ("C2",)
    s(automation("C3"))
    assert s.queued == ("D", "X", "C3"), "one that is in a turn is not replaced"


def test_a_full_queue_still_takes_what_replaces_an_entry() -> None:
    s = running()(automation("C1"))
    s(replace(automation("C2"), limit=1))
    assert s.queued == ("C2",)
    s.refuses(replace(automation("X", "other"), limit=1), "queue_full")


def test_a_patient_message_of_a_person_neither_jumps_nor_releases() -> None:
    s = parked()(replace(message("E"), patient=True))
    assert s.said["E"] == "queued" and s.queued == ("D", "E") and s.s.parked
    w = waiting()(replace(message("E"), patient=True))
    assert w.saying == ("E",)


def test_a_sender_who_waits_hears_queued_at_the_deadline() -> None:
    s = waiting()(message("D", "peer"))
    s(Expired(Timer("ask", "D")))
    assert s.said["D"] == "queued"


def test_an_interrupt_that_was_refused_waits_parked_with_the_others_and_the_task_is_reviewed() -> None:
    s = parked()
    s(replace(message("P", "peer"), interrupt=Interrupt(None)))
    s(Refused(s.ref, "busy"))
    assert s.said["P"] == "queued" and s.queued == ("D", "P") and not s.timers and s.has(Review)


def test_the_switch_ends_the_tries_of_a_refused_entry() -> None:
    s = refused_once()(AutoRun("off", False))
    assert s.has(Review) and not s.timers
    s(AutoRun("on", True))
    assert s.saying == ("D",)

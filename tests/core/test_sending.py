"""A message to a session: which answer it gets, when it runs, and in which order."""

from dataclasses import replace

import pytest

from kandev.core.effects import Enqueued, Prompt, Start, Timer, Told
from kandev.core.inputs import (
    Cancel,
    CancelFailed,
    Ended,
    Exited,
    Expired,
    Gone,
    Interrupt,
    LaunchFailed,
    Output,
    OwnTurn,
    Refused,
    Remove,
    Resume,
    Send,
    Stop,
    Taken,
)
from kandev.core.session import Entry, Launch, Outcome
from kandev.core.transcript import Text
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
    refused_once,
    running,
    starting,
    up,
    waiting,
)


def test_a_message_to_a_created_session_starts_it() -> None:
    s = starting()
    assert s.said["M"] == "started" and s.wire == "STARTING" and s.owes(Start) and s.has(Enqueued)


@pytest.mark.proves("MESSAGE-queued-fifo")
@pytest.mark.field("C17", "C41")
def test_messages_to_a_running_session_are_queued_and_drained_in_order() -> None:
    s = running()(message("A", "peer"))(message("B"))(message("C", "workflow"))
    assert [s.said[m] for m in "ABC"] == ["queued"] * 3 and s.queued == ("A", "B", "C")
    for _ in "ABC":
        s(Ended(s.ref))(Taken(s.ref))
    assert s.prompts == [("M",), ("A",), ("B",), ("C",)]


@pytest.mark.proves("MESSAGE-queued-fifo")
def test_a_message_to_a_starting_session_is_queued_behind_the_first() -> None:
    s = starting()(message("A"))(up())
    assert s.said["A"] == "queued" and s.saying == ("M",) and s.queued == ("A",)


@pytest.mark.field("C19", "C21")
@pytest.mark.parametrize("begin", [waiting, asleep])
def test_a_message_to_a_waiting_session_is_sent_once_it_is_accepted(begin: type[Story]) -> None:
    s = begin()(message("A", "peer"))
    assert "A" not in s.said
    if s.wire == "STARTING":
        s(up("s.2"))
    assert s.saying == ("A",) and "A" not in s.said
    assert s(Taken(s.ref)).said["A"] == "sent" and s.fates["A"] == "delivered"


@pytest.mark.field("C01")
def test_the_sender_hears_queued_when_acceptance_takes_too_long_and_delivery_goes_on() -> None:
    s = asleep()(message("A", "peer"))
    s(Expired(Timer("ask", "A")))
    assert s.said["A"] == "queued"
    s(up("s.2"))
    assert s(Taken(s.ref)).fates["A"] == "delivered"


@pytest.mark.field("C43")
def test_a_peers_message_joins_a_parked_queue() -> None:
    s = parked("peer")(message("A", "peer"))
    assert s.said["A"] == "queued" and s.queued == ("D", "A") and not s.s.turn and s.s.parked


@pytest.mark.proves("MESSAGE-unparks")
def test_a_persons_message_to_a_parked_queue_runs_at_once_and_the_rest_follows() -> None:
    s = parked("peer")(message("Z", "peer"))(message("H"))
    assert s.saying == ("H",) and s.queued == ("D", "Z") and not s.s.parked
    assert s(Taken(s.ref)).said["H"] == "sent"
    s(Ended(s.ref))
    assert s.saying == ("D",)


@pytest.mark.proves("MESSAGE-unparks")
def test_a_persons_message_after_a_cancelled_start_is_heard_too() -> None:
    s = starting()(Cancel("c"))(message("H"))
    assert not s.s.parked
    s(up())
    assert s.saying == ("M", "H") and s(Taken(s.ref)).said["H"] == "sent"


def test_a_persons_message_during_their_cancel_is_next_and_the_rest_follows() -> None:
    s = cancelling("peer")(message("H"))
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("H",) and s.queued == ("D",) and not s.s.parked


def test_when_that_cancel_fails_the_message_waits_in_its_place_and_its_sender_is_told() -> None:
    s = cancelling("peer")(message("H"))
    s(CancelFailed(s.ref, 1, "no"))
    assert s.said["H"] == "queued" and s.said["c"] == "failed"
    s(Ended(s.ref))
    assert s.saying == ("D",)


@pytest.mark.proves("MESSAGE-terminal-conflict", "INV-7")
@pytest.mark.parametrize("state", ["FAILED", "CANCELLED"])
def test_a_message_to_a_failed_or_cancelled_session_is_rejected_with_the_way_back(state: str) -> None:
    s = starting()(LaunchFailed("s.1", "no")) if state == "FAILED" else running()(Stop("x"))
    reply = s.refuses(message("A"), "rejected")
    assert reply.error and state in reply.error and "resume" in reply.error


def test_a_message_to_a_completed_session_takes_it_up_again() -> None:
    s = running()(Stop("x", Outcome.COMPLETED))(Gone("s.1"))(message("A", "peer"))
    assert s.wire == "STARTING"
    s(up("s.2"))
    assert s.saying == ("A",) and s.wire == "RUNNING"


@pytest.mark.proves("MESSAGE-queue-full", "INV-7")
def test_a_full_queue_refuses_with_its_size_and_limit() -> None:
    s = running()(message("A", limit=2))(message("B", limit=2))
    reply = s.refuses(message("C", limit=2), "queue_full")
    assert reply.details == {"error": "queue_full", "queue_size": 2, "max": 2}


def test_a_limit_of_nought_is_none() -> None:
    s = running()
    for number in range(100):
        s(message(f"D{number}", "peer", 0))
    assert len(s.queued) == 100


def test_the_limit_never_keeps_an_entry_from_coming_back() -> None:
    s = waiting()(message("A", limit=1))(message("B", limit=1))
    s(Refused(s.ref, "busy"))
    assert s.queued == ("A", "B")


def test_a_full_parked_queue_still_hears_a_person() -> None:
    s = parked("peer")(message("H", limit=1))
    assert s.saying == ("H",)


@pytest.mark.proves("MESSAGE-idempotency")
@pytest.mark.field("C01", "C31")
def test_the_same_entry_again_is_one_entry_and_joins_who_waits() -> None:
    s = asleep()(message("A"))
    s(Send("again", Entry("A"), message("A").draft, 10))
    assert list(s.queued) == ["A"] and "again" not in s.said
    s(up("s.2"))
    s(Taken(s.ref))
    assert (s.said["A"], s.said["again"]) == ("sent", "sent")
    s(Send("late", Entry("A"), message("A").draft, 10))
    assert s.said["late"] == "sent" and not s.queued


@pytest.mark.proves("ACT-message.queue.remove")
def test_an_entry_can_be_removed_while_it_waits_and_not_once_it_is_claimed() -> None:
    s = running()(message("A"))(Remove("r", "A"))
    assert s.said["r"] == "ok" and s.queued == () and s.fates["A"] == "removed"
    s.refuses(Remove("r2", "M"), "claimed")
    s.refuses(Remove("r3", "A"), "not_found")


def test_parking_ends_with_the_last_entry_that_is_removed() -> None:
    s = parked("peer")(Remove("r", "D"))
    assert s.s.parked is None
    s(message("A", "peer"))
    assert s.saying == ("A",)


def test_who_waits_for_a_removed_entry_hears_so() -> None:
    s = running()(Cancel("c"))(message("H"))(Remove("r", "H"))
    assert s.said["H"] == "removed" and not s.s.jumps
    s(Ended(s.ref, "cancelled"))  # an entry that is promised and gone kills nobody
    assert not s.s.turn


# -- refused prompts ------------------------------------------------------------------------------


@pytest.mark.proves("HOLE-1")
@pytest.mark.field("C03")
def test_a_refused_entry_is_back_in_its_place_and_tried_again_later() -> None:
    s = refused_once()(message("E", "peer"))
    assert list(s.queued) == ["D", "E"] and not s.s.turn and s.timers == {"retry"}
    s(Expired(Timer("retry", s.s.generation)))
    assert s.saying == ("D",) and s.queued == ("E",)


def test_each_attempt_has_a_generation_of_its_own() -> None:
    s = refused_once()
    before = s.s.generation
    s(Expired(Timer("retry", before)))
    assert s.s.generation == before + 1


@pytest.mark.proves("HOLE-1")
@pytest.mark.field("C09")
def test_after_three_retries_the_queue_is_parked_with_the_reason() -> None:
    s = refused_once()
    for _ in range(3):
        s(Expired(Timer("retry", s.s.generation)))(Refused(s.ref, "busy"))
    assert s.s.parked == "the agent takes no prompt (busy)" and not s.timers and s.queued == ("D",)
    assert s.lines == ["The prompt was refused 4 times: busy."]


def test_an_accepted_prompt_starts_the_count_anew() -> None:
    s = refused_once()(Expired(Timer("retry", 2)))
    s(Taken(s.ref))
    assert s.s.refusals == 0


def test_a_persons_message_does_not_wait_for_the_retry() -> None:
    s = refused_once()(message("H"))
    assert s.saying == ("D",) and s.queued == ("H",)


def test_nothing_is_left_of_a_retry_whose_entry_is_removed() -> None:
    s = refused_once()(Remove("r", "D"))
    assert not s.timers and not s.s.retry


def test_a_refusal_after_acceptance_is_history() -> None:
    s = running()
    s.ignores(Refused(s.ref))


def test_a_queue_that_is_parked_meanwhile_is_not_tried_again() -> None:
    s = refused_once()(OwnTurn(OWN))(Ended(OWN, "error", "401"))
    assert s.s.parked == "the last turn failed: 401" and not s.timers


def test_no_prompt_in_time_replaces_the_process_and_asks_what_became_of_it() -> None:
    s = dispatching()
    s(Expired(Timer("accept", s.ref)))
    assert s.s.launch is Launch.CLOSING and not s.owes(Prompt) and s.saying == ("M",)
    assert s.lines == ["The agent took no prompt in time: its process is replaced."]
    s(Gone("s.1", False))
    assert s.queued == ("M",) and s.s.parked and not s.fates


@pytest.mark.proves("MESSAGE-one-fate")
@pytest.mark.parametrize(
    "taken, fate, reply", [(True, "delivered", "sent"), (None, "unknown", "unknown"), (False, None, "queued")]
)
def test_a_prompt_on_its_way_to_a_process_that_died_has_one_fate(
    taken: bool | None, fate: str | None, reply: str
) -> None:
    s = waiting()(message("A", "peer"))
    s(Exited("s.1"))
    assert s.owed[0].unsettled == s.ref  # type: ignore[union-attr]
    s(Gone("s.1", taken))
    assert s.fates.get("A") == fate and s.said["A"] == reply
    assert s.queued == (("A",) if taken is False else ())


@pytest.mark.field("C15")
def test_a_failed_turn_or_a_lost_process_gives_nothing_twice() -> None:
    s = dispatching()(Exited("s.1"))(Gone("s.1", None))
    assert s.fates == {"M": "unknown"}
    s(Resume("r"))(up("s.2"))
    assert s.prompts == [("M",)]


# -- a turn that the agent begins by itself ----------------------------------------------------------


@pytest.mark.field("C49")
def test_a_message_during_an_own_turn_waits_for_its_end() -> None:
    s = busy_by_itself()(message("A"))
    assert s.said["A"] == "queued" and s.wire == "RUNNING"
    s(Ended(OWN, "idle"))
    assert s.saying == ("A",) and s.ref.generation == 2


# -- nothing beside a process that is not proven gone ---------------------------------------------------


def lost() -> Story:
    s = waiting()(Exited("s.1"))(Expired(Timer("close", "s.1")))
    assert s.s.launch is Launch.LOST
    return s


@pytest.mark.field("D19")
def test_a_message_waits_until_the_old_process_is_proven_gone() -> None:
    s = lost()(message("A"))(message("B", "peer"))
    assert (s.said["A"], s.said["B"]) == ("queued", "queued") and not s.owes(Start)
    s.refuses(Resume("r"), "conflict")
    s(Gone("s.1"))
    assert s.owes(Start) and s.s.execution == "s.2"


def test_a_completed_session_whose_process_is_lost_parks_what_comes() -> None:
    s = lost()(Stop("x", Outcome.COMPLETED))(message("A"))(Gone("s.1"))
    assert s.wire == "COMPLETED" and s.queued == ("A",) and s.s.parked
    s(message("H"))
    assert s.wire == "STARTING" and not s.s.parked


def test_what_an_agent_says_by_itself_before_the_prompt_reached_it_is_heard() -> None:
    s = dispatching()
    s(frame(1, OwnTurn(OWN)))(frame(2, Output(OWN, Text("message", "by myself"))))
    assert [n for n in s.told if isinstance(n, Told)] == [Told(Text("message", "by myself"))]
    assert s(frame(3, Ended(OWN, "idle")))(Taken(s.ref)).wire == "RUNNING"


@pytest.mark.field("D35")
def test_what_was_delivered_or_taken_out_does_not_count_against_the_limit() -> None:
    s = running()
    for n in range(5):
        s(message(f"D{n}", "peer", limit=1))
        assert s.said[f"D{n}"] == "queued"
        if n % 2:
            s(Remove(f"r{n}", f"D{n}"))
        else:
            s(Ended(s.ref))(Taken(s.ref))
    assert s.prompts == [("M",), ("D0",), ("D2",), ("D4",)]


@pytest.mark.field("C47")
def test_an_accepted_interrupt_is_waited_for_no_longer() -> None:
    s = running()
    s(replace(message("P", "peer"), interrupt=Interrupt(s.ref)))
    assert "ask" in s.timers
    s(Ended(s.ref, "cancelled"))(Taken(s.ref))
    assert s.said["P"] == "sent" and "ask" not in s.timers
    s.ignores(Expired(Timer("ask", "P")))

"""Questions of an agent: answered in its tool call, or by the next prompt; an answer never vanishes."""

from typing import Any

import pytest

from kandev.core import decide, views
from kandev.core.effects import (
    CancelTurn,
    Doze,
    HandAnswer,
    Prompt,
    QuestionClosed,
    QuestionOpened,
    Review,
    Timer,
)
from kandev.core.inputs import (
    AskPerson,
    Asleep,
    Cancel,
    Draft,
    Drain,
    Ended,
    Exited,
    Expired,
    Gone,
    Interrupt,
    QuestionDone,
    QuestionLeft,
    Ready,
    Respond,
    Send,
    Stop,
    Taken,
)
from kandev.core.session import Entry, Phase
from tests.core.story import Story, message, running, waiting


def asked() -> Story:
    """The agent's tool call waits for the answer to q, in M's turn; D waits behind."""
    return running()(message("D", "peer"))(AskPerson("call", "q", {"question": "Which?"}))


def answer(name: str = "A") -> Respond:
    return Respond(name, "q", Entry(name, "answer"), Draft("this one", f"message {name}"), "Ada")


def left_open() -> Story:
    """The call timed out in the agent, which ended its turn without an answer."""
    s = asked()(QuestionLeft("q"))
    return s(Ended(s.ref))


def test_the_session_waits_for_the_answer_and_says_so() -> None:
    s = asked()
    assert s.said["call"] == "asked" and s.has(QuestionOpened)
    assert s.wire == "RUNNING" and views.waiting_for(s.s) == "question" and "question" in s.timers


def test_the_answer_is_in_hand_until_the_tool_call_took_it() -> None:
    s = asked()(answer())
    assert s.owed[-1] == HandAnswer(s.ref, "q", "A") and "A" not in s.said
    s(QuestionDone("q", True))
    assert s.said["A"] == "sent" and s.fates["A"] == "delivered" and s.s.phase is Phase.RUNNING
    assert s.queued == ("D",), "the turn goes on"


@pytest.mark.proves("RACE-I7")
def test_an_answer_that_no_call_takes_is_the_next_prompt_and_ends_the_stuck_turn_silently() -> None:
    s = asked()(answer())(QuestionDone("q", False))
    assert s.owes(CancelTurn) and s.s.phase is Phase.CANCELLING and not s.s.cancelling
    s(Ended(s.ref, "cancelled"))
    assert s.closed[0].cause == "interrupted" and s.saying == ("A",) and s.queued == ("D",)


def test_a_late_answer_to_a_call_that_timed_out_ends_the_stuck_turn_silently() -> None:
    s = asked()(QuestionLeft("q"))(answer())
    assert s.owes(CancelTurn)
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("A",) and s(Taken(s.ref)).said["A"] == "sent"


@pytest.mark.proves("RACE-I7")
def test_i7_an_interrupt_that_began_before_the_recovery_spares_its_turn() -> None:
    s = asked()(QuestionLeft("q"))
    noted = s.ref
    s(answer())
    s(Ended(s.ref, "cancelled"))(Taken(views.current_turn(s.s) or noted))
    s(Send("P", Entry("P", "peer"), Draft("p", "message P"), 0, Interrupt(noted)))
    assert s.said["P"] == "queued" and s.saying == ("A",) and not s.owes(CancelTurn)
    s(Ended(s.ref))
    assert s.saying == ("D",)


@pytest.mark.proves("RACE-I8")
def test_i8_an_accepted_recovery_that_still_runs_is_interrupted_at_once() -> None:
    s = asked()(QuestionLeft("q"))(answer())
    s(Ended(s.ref, "cancelled"))(Taken(views.current_turn(s.s) or s.ref))
    s(Send("P", Entry("P", "peer"), Draft("p", "message P"), 0, Interrupt(s.ref)))
    assert s.owes(CancelTurn)
    s(Ended(s.ref, "cancelled"))
    assert s.saying == ("P",)


@pytest.mark.proves("HOLE-29")
def test_a_question_that_its_turn_left_open_keeps_the_queue_waiting() -> None:
    s = left_open()
    assert s.wire == "WAITING_FOR_INPUT" and views.waiting_for(s.s) == "question"
    s(message("E", "person"))(message("F", "peer"))
    assert s.said["E"] == s.said["F"] == "queued" and s.s.phase is Phase.WAITING
    s.refuses(Drain("d"), "conflict")
    s(answer())
    assert s.saying == ("A",) and len(s.queued) == 3


@pytest.mark.proves("HOLE-29")
def test_a_message_while_the_agent_waits_in_its_call_begins_no_second_turn() -> None:
    s = asked()
    begun = s.ref
    s(message("E", "person"))(message("F", "peer"))
    assert s.said["E"] == s.said["F"] == "queued"
    assert s.ref == begun and s.prompts == [("M",)] and s.queued == ("D", "E", "F")


def test_an_open_question_outlives_the_sleep_of_its_agent() -> None:
    s = left_open()
    s(Expired(Timer("idle", "s.1:0")))
    assert s.owes(Doze)
    s(Asleep("s.1"))(Gone("s.1"))
    assert s.launch == "absent" and views.needs_actor(s.s) and "question" in s.timers
    s(answer())(Ready("s.2", "journal of s.2", memory=True))
    assert s.saying == ("A",)


@pytest.mark.proves("TURN-open-question")
@pytest.mark.parametrize("begin", [asked, left_open])
def test_a_cancel_closes_the_question_and_parks_what_waits(begin: Any) -> None:
    s = begin()(Cancel("c", "Ada"))
    assert any(isinstance(n, QuestionClosed) and n.outcome == "cancelled" for n in s.notes)
    if s.s.turn:
        s(Ended(s.ref, "cancelled"))
    assert s.queued == ("D",) and s.s.parked and s.has(Review) and s.said["c"] in ("ok", "cancelled")
    s.refuses(answer(), "not_found")


@pytest.mark.proves("HOLE-22")
def test_an_answer_in_hand_survives_a_persons_cancel_and_waits_parked() -> None:
    s = asked()(answer())(Cancel("c"))(QuestionDone("q", False))
    assert s.said["A"] == "queued"
    s(Ended(s.ref, "cancelled"))
    assert s.queued == ("D", "A") and s.s.parked


@pytest.mark.proves("HOLE-22")
@pytest.mark.parametrize("served", [True, False])
def test_an_answer_in_hand_survives_a_second_question(served: bool) -> None:
    s = asked()(answer())(AskPerson("call 2", "q2", {"question": "And?"}))
    assert s.said["call 2"] == "asked" and s.owes(HandAnswer)
    s(QuestionDone("q", served))
    if not served:  # the agent may hang in its first call: its turn ends, and what it asked with it
        s(Ended(s.ref, "cancelled"))(Taken(s.ref))
    assert s.fates["A"] == "delivered" and s.said["A"] == "sent"
    assert (views.waiting_for(s.s) == "question") == served


@pytest.mark.proves("HOLE-22")
@pytest.mark.parametrize("taken", [False, None])
def test_an_answer_whose_process_is_gone_has_an_unknown_fate(taken: bool | None) -> None:
    s = asked()(answer())(Exited("s.1", 7))(Gone("s.1", exit_code=7))
    assert s.fates["A"] == "unknown" and s.said["A"] == "unknown"
    s.ignores(QuestionDone("q", taken))


def test_the_same_call_again_joins_its_question_and_a_second_answer_is_refused() -> None:
    s = asked()(AskPerson("again", "q"))
    assert s.said["again"] == "asked" and len(s.s.questions) == 1
    s(answer())
    s.refuses(answer("B"), "answered")


def test_a_declined_question_is_closed_and_nothing_is_sent() -> None:
    s = asked()(Respond("no", "q", None, None, "Ada"))
    assert s.said["no"] == "ok" and not s.s.questions and s.s.phase is Phase.RUNNING
    assert any(isinstance(n, QuestionClosed) and n.outcome == "declined" for n in s.notes)


@pytest.mark.parametrize("begin", [asked, left_open])
def test_a_question_expires_and_the_queue_goes_on(begin: Any) -> None:
    s = begin()(Expired(Timer("question", "q")))
    assert not s.s.questions and any(isinstance(n, QuestionClosed) and n.outcome == "expired" for n in s.told)
    assert s.saying == (("D",) if begin is left_open else ("M",))


@pytest.mark.parametrize("begin", [waiting, lambda: running()(Cancel("c"))])
def test_without_a_turn_that_goes_on_nothing_can_be_asked(begin: Any) -> None:
    begin().refuses(AskPerson("call", "q"), "conflict")


@pytest.mark.proves("HOLE-20")
def test_a_stop_closes_the_question() -> None:
    s = left_open()(Exited("s.1"))(Gone("s.1"))(Stop("stop"))
    assert s.said["stop"] == "stopped" and not s.s.questions and not s.timers
    s.refuses(answer(), "not_found")


def test_after_a_crash_an_answer_that_may_have_been_handed_over_says_so() -> None:
    s = asked()(answer())
    s.s = decide.recovered(s.s)
    assert s.owed[-1] == HandAnswer(s.ref, "q", "A", again=True)
    s(QuestionDone("q", None))
    assert s.fates["A"] == "unknown" and not any(isinstance(o, Prompt) for o in s.owed)


def test_a_declined_question_of_a_turn_that_is_over_lets_the_queue_go_on() -> None:
    s = left_open()(Respond("no", "q", None, None, "Ada"))
    assert s.saying == ("D",)


def test_an_answer_spares_a_turn_that_jumped_ahead_of_it() -> None:
    s = asked()(answer())
    s(Ended(s.ref))(message("N", "peer"))
    assert s.saying == ("D",)
    s(Taken(s.ref))(QuestionDone("q", False))
    assert not s.owes(CancelTurn) and s.saying == ("D",)
    s(Ended(s.ref))
    assert s.saying == ("A",)

"""What holds in every phase of a session: a stop is taken, a cancel holds everything, each wait has an end.

Not here: what is particular to a phase (the tests beside it).
"""

from collections.abc import Callable

import pytest

from kandev.core import views
from kandev.core.effects import AnswerPermission, CancelTurn, Doze, Follow, Prompt, Start, Teardown, Timer
from kandev.core.inputs import (
    Awake,
    Cancel,
    CancelUnheard,
    Ended,
    Exited,
    Expired,
    Gone,
    Output,
    OwnTurn,
    Refused,
    Remove,
    Resume,
    Stop,
    Taken,
)
from kandev.core.session import Launch, Outcome, TurnRef
from tests.core.sidecar import CHUNK
from tests.core.story import (
    Story,
    busy_by_itself,
    cancelling,
    dispatching,
    dozing,
    message,
    parked,
    permission,
    refused_and_asleep,
    refused_once,
    running,
    starting,
    up,
    waiting,
)

Begin = Callable[[], Story]


def asking() -> Story:
    """The agent waits for a decision."""
    s = running()
    return s(permission(s.ref))


def escalating() -> Story:
    """The agent did not obey, and its process is being replaced."""
    s = cancelling()
    return s(CancelUnheard(s.ref, 1))


def dying() -> Story:
    """The process ended in the middle of the turn."""
    return running()(message("D", "peer"))(Exited("s.1", 1))


def replacing() -> Story:
    """The old process is being ended, and D waits for the next one."""
    return waiting()(Exited("s.1"))(message("D", "peer"))


def dozing_and_called() -> Story:
    """The agent is being put to sleep, and D waits for it."""
    return dozing()(message("D", "peer"))


def resumed() -> Story:
    """Stopped with D in the queue, and taken up again."""
    return running()(message("D", "peer"))(Stop("before"))(Gone("s.1"))(Resume("r"))


def lost() -> Story:
    """Nobody could prove that the old process is gone."""
    return waiting()(Exited("s.1"))(Expired(Timer("close", "s.1")))


ALIVE: tuple[Begin, ...] = (
    starting,
    dispatching,
    running,
    asking,
    cancelling,
    escalating,
    dying,
    replacing,
    dozing,
    dozing_and_called,
    resumed,
    waiting,
    parked,
    refused_once,
    refused_and_asleep,
    busy_by_itself,
    lost,
)
"""Something lives, or something would begin by itself."""
COMING: tuple[Begin, ...] = (starting, dispatching, replacing, dozing_and_called, resumed, refused_once)
"""A prompt is on its way to the agent, or would be by itself."""


def goes_on(s: Story) -> Story:
    """The world does everything that is owed, and nobody asks for anything."""
    for _ in range(40):
        before = s.s
        for owed in s.owed:
            _done(s, owed)
            if s.s != before:
                break
        if s.s.retry:
            s(Expired(Timer("retry", s.s.generation)))
        if s.s == before:
            return s
    raise AssertionError("it never comes to rest")


def _done(s: Story, owed: object) -> None:
    match owed:
        case Start(execution):
            s(up(execution))
        case Prompt(turn):
            s(Taken(turn))
        case CancelTurn(turn):
            s(Ended(turn, "cancelled"))
        case Teardown(execution, unsettled):
            s(Gone(execution, False if unsettled else None))
        case Doze(execution):
            s(Awake(execution))


@pytest.mark.field("A07", "A27", "B27", "C05", "C35")
@pytest.mark.parametrize("begin", ALIVE)
def test_a_stop_is_taken_and_nothing_is_asked_of_the_agent_any_more(begin: Begin) -> None:
    s = begin()
    prompts, execution = s.prompts, s.s.execution
    s(Stop("x"))
    assert s.said["x"] == "stopped" and s.wire == "CANCELLED"
    assert {type(owed) for owed in s.owed} <= {Teardown} and s.timers <= {"close"}
    s(message("P", "peer"))
    assert s.said["P"] == "rejected"
    for late in (OwnTurn(TurnRef(execution, 0, "late")), Output(TurnRef(execution, 0, "late"), CHUNK)):
        s.ignores(late)
    goes_on(s)
    assert (s.prompts, s.wire, s.s.launch) == (prompts, "CANCELLED", Launch.ABSENT)
    assert not s.timers, "nothing would begin by itself"


@pytest.mark.field("A17", "A35", "B19", "B51")
@pytest.mark.parametrize("begin", COMING)
def test_a_cancel_holds_what_is_coming_and_the_next_message_is_taken(begin: Begin) -> None:
    s = begin()(message("E", "peer"))
    waits, prompts = s.queued, s.prompts
    s(Cancel("c"))
    goes_on(s)
    assert s.said["c"] in ("ok", "cancelled")
    assert (s.queued, s.prompts) == (waits, prompts), "no prompt began behind the cancel"
    assert s.s.parked == "cancelled by a person" and not s.timers - {"idle"}
    s(message("H"))
    goes_on(s)
    assert s.said["H"] == "sent" and "H" in s.prompts[-1]


@pytest.mark.field("A19", "D07")
@pytest.mark.parametrize("begin", ALIVE)
def test_whatever_is_waited_for_has_an_end(begin: Begin) -> None:
    s = begin()
    ends = {Start: "start", Prompt: "accept", CancelTurn: "end", Doze: "doze"}
    for owed in s.owed:
        if isinstance(owed, Follow | AnswerPermission):
            continue
        if isinstance(owed, Teardown):
            assert "close" in s.timers or s.s.launch is Launch.LOST, (
                "a lost one is tried on, and holds up nobody"
            )
            continue
        assert ends[type(owed)] in s.timers
    waiters = {ask for entry in (*s.s.queue, *views.in_turn(s.s)) for ask in entry.asks}
    waiters |= {*s.s.turn.asks} if s.s.turn else set()
    assert waiters == {t.key for t in views.timers(s.s) if t.kind in ("ask", "cancel")}


@pytest.mark.field("D05", "D17", "C57")
@pytest.mark.parametrize(
    "begin", [starting, dispatching, running, asking, cancelling, waiting, busy_by_itself]
)
def test_a_resume_of_what_lives_changes_nothing(begin: Begin) -> None:
    begin().refuses(Resume("r"), "conflict")


@pytest.mark.field("C33")
@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.COMPLETED])
def test_what_waits_on_a_session_that_is_over_can_be_taken_out(outcome: Outcome) -> None:
    s = running()(message("A"))(message("B"))(Stop("x", outcome))(Remove("r", "A"))
    assert s.said["r"] == "ok" and s.fates["A"] == "removed" and s.queued == ("B",)
    goes_on(s)(Remove("q", "B"))
    assert s.said["q"] == "ok" and not s.queued


@pytest.mark.field("C53")
def test_between_two_turns_of_a_queue_a_session_is_never_idle() -> None:
    s = running()(message("A"))(message("B"))
    for _ in range(2):
        s(Ended(s.ref))
        assert s.wire == "RUNNING"
        s(Taken(s.ref))
    s(Ended(s.ref))
    assert s.wire == "WAITING_FOR_INPUT"


@pytest.mark.field("B15", "B39")
def test_an_end_that_nobody_asked_for_takes_no_word_back_and_is_the_agents() -> None:
    s = running()(message("A", "peer"))
    turn = s.ref
    s(Output(turn, CHUNK))
    told = list(s.told)
    s(Ended(turn, "cancelled"))
    assert s.told[: len(told)] == told and (s.closed[0].cause, s.closed[0].stop_reason) == (
        "agent",
        "cancelled",
    )
    assert s.lines == ["The agent interrupted its own turn."] and s.saying == ("A",)


@pytest.mark.field("B13", "C11")
def test_an_end_that_comes_twice_ends_one_turn() -> None:
    s = running()(message("A"))
    first = s.ref
    s(Ended(first, "cancelled"))
    for again in (Ended(first, "cancelled"), Ended(first), Refused(first, "late"), Taken(first)):
        s.ignores(again)
    assert s.saying == ("A",) and s.prompts == [("M",), ("A",)]

"""What the world reports to a session, one rule each. Run by `decide` only, after its staleness check."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from kandev.core import questions
from kandev.core.effects import (
    ExecutionOver,
    Fate,
    LaunchOver,
    Line,
    Note,
    PermissionClosed,
    PermissionOpened,
    Returned,
    Review,
    Timer,
    Told,
    TurnClosed,
    TurnOpened,
)
from kandev.core.inputs import (
    Asleep,
    CancelFailed,
    CancelHeard,
    CancelUnheard,
    Ended,
    Exited,
    Expired,
    Gone,
    LaunchFailed,
    Looked,
    Output,
    OwnTurn,
    PermissionAsked,
    PermissionDone,
    Ready,
    Refused,
    Remembered,
    Said,
    Taken,
    TurnReport,
)
from kandev.core.session import Answer, Entry, Launch, Outcome, Permission, Session, Turn
from kandev.core.steps import (
    CANCELLED_BY_A_PERSON,
    CLAIMED,
    COMPLETED,
    FELL_ASLEEP,
    NOT_PROVEN_GONE,
    NOT_RUNNING,
    TIMED_OUT,
    Step,
    closed,
    give_back,
    replies,
    silent,
)
from kandev.core.views import held

RETRIES: Final = 3
"""Of an entry that was refused, with back-off; then its queue is parked."""

FATE_UNKNOWN: Final = "Nobody can tell whether the agent got the message; it is not sent again by itself."

# -- about the turn -----------------------------------------------------------------------------


def taken(s: Session, given: TurnReport) -> Step:
    """The agent has the prompt. Every later report about the turn says so too."""
    turn = s.turn
    assert turn is not None
    if turn.taken:
        return s, ()
    told = replies((a for e in turn.entries for a in e.asks), "sent")
    fates = tuple(Fate(e.id, "delivered", turn.ref) for e in turn.entries)
    turn = replace(turn, taken=True, entries=silent(turn.entries))
    return replace(s, refusals=0, turn=turn, introduced=True, spoken=True), (*told, *fates)


def _stopped(s: Session) -> bool:
    """Nothing of this turn is shown any more."""
    return s.outcome is not Outcome.OPEN or (s.turn is not None and s.turn.ending == "stop")


def own_turn(s: Session, given: OwnTurn) -> Step:
    """The agent began by itself."""
    return replace(s, turn=Turn(given.turn, (), taken=True)), (TurnOpened(given.turn),)


def output(s: Session, given: Output) -> Step:
    """For the transcript. After a stop nothing is shown any more."""
    s, told = taken(s, given)
    shown = () if _stopped(s) else (Told(given.content, given.turn),)
    return s, (*told, *shown)


def said(s: Session, given: Said) -> Step:
    """For the transcript, outside any turn. After a stop nothing is shown any more."""
    return s, (Told(given.content),) if s.outcome is Outcome.OPEN else ()


def refused(s: Session, given: Refused) -> Step:
    """agentctl said no. Every entry is back in its place, and tried again a few times."""
    turn = s.turn
    assert turn is not None
    back = Returned(tuple(e.id for e in turn.entries))
    s = give_back(s)
    if turn.ending not in (None, "interrupt") or s.outcome is not Outcome.OPEN:
        s, notes = _over(s, "refused", "refused")
        return s, (back, *notes)
    refusals = s.refusals + 1
    s = replace(s, turn=None, permissions=(), refusals=refusals, retry=True)
    notes = (back, TurnClosed(turn.ref, "refused", "refused", given.reason or None))
    if held(s) is not None:  # it had jumped: back in its place it waits with the others
        return replace(s, refusals=0, retry=False), (*notes, Review())
    if refusals <= RETRIES:
        return s, notes
    reason = f"the agent takes no prompt ({given.reason or 'no reason given'})"
    line = Line("error", f"The prompt was refused {refusals} times: {given.reason or 'no reason given'}.")
    return replace(s, parked=reason, refusals=0, retry=False), (*notes, line, Review())


def ended(s: Session, given: Ended) -> Step:
    """The agent's account of the end."""
    s, told = taken(s, given)
    if s.launch is not Launch.READY and given.stop_reason == "cancelled":
        # The agent obeyed the end of its process: the cause is ours.
        s, notes = _over(s, "process_ended", "process", s.closing)
    else:
        s, notes = _over(s, given.stop_reason, "agent", given.error)
    outlived: tuple[Note, ...] = ()
    if given.outlived:
        names = ", ".join(given.outlived)
        text = f"Still running after the turn: {names}. Stop the session to end them."
        outlived = (Line("status", text, {"outlived": list(given.outlived)}, given.turn),)
    return s, (*told, *notes, *outlived)


def cancel_failed(s: Session, given: CancelFailed) -> Step:
    """The turn goes on as if nobody had asked."""
    assert s.turn is not None
    free = replace(s, turn=replace(s.turn, ending=None, heard=False, ended_by=None, asks=()), jumps=())
    sentence = f"cancel failed: {given.why}" if given.why else "cancel failed"
    return free, replies(s.turn.asks, "failed", sentence)


def cancel_heard(s: Session, given: CancelHeard) -> Step:
    """No reason to escalate, however long the journal is before the end."""
    assert s.turn is not None
    return replace(s, turn=replace(s.turn, heard=True)), ()


def cancel_unheard(s: Session, given: CancelUnheard) -> Step:
    """Escalate: we claim the end. It may still be working, so this process gets no other prompt."""
    assert s.turn is not None
    told = replies(s.turn.asks, "timeout", TIMED_OUT)
    why = "the agent did not acknowledge the cancel"
    line = Line(
        "status", "The agent did not acknowledge the cancel: its process is being replaced.", {}, s.turn.ref
    )
    return replace(s, launch=Launch.CLOSING, closing=why, turn=replace(s.turn, asks=())), (*told, line)


def permission_asked(s: Session, given: PermissionAsked) -> Step:
    """The agent waits for a decision; in a turn that we end it hears `cancelled`."""
    s, told = taken(s, given)
    assert s.turn is not None
    request = given.asked.request_id
    if any(p.request == request for p in s.permissions):
        return s, told
    answer = Answer() if s.turn.ending or s.outcome is not Outcome.OPEN else None
    opened = () if _stopped(s) else (PermissionOpened(given.turn, given.asked),)
    return replace(s, permissions=(*s.permissions, Permission(request, answer))), (*told, *opened)


def permission_done(s: Session, given: PermissionDone) -> Step:
    """Settled, by whomever."""
    left = tuple(p for p in s.permissions if p.request != given.request)
    done = PermissionClosed(given.turn, given.request, given.outcome, given.by, given.option_id)
    return replace(s, permissions=left), (done,)


# -- about the execution ------------------------------------------------------------------------


def ready(s: Session, given: Ready) -> Step:
    """The agent is up."""
    s = replace(
        s,
        launch=Launch.READY,
        resuming=False,
        journal=given.journal,
        seen=0,
        conversation=given.conversation or s.conversation,
        introduced=s.introduced and given.memory is True,
    )
    if given.memory is False:
        return s, (Line("status", "The agent starts without memory of the earlier conversation."),)
    return s, ()


def remembered(s: Session, given: Remembered) -> Step:
    """The token that takes the conversation up again."""
    return replace(s, conversation=given.conversation or s.conversation), ()


def launch_failed(s: Session, given: LaunchFailed) -> Step:
    """It did not come up; what is left of it is torn down before anything else starts."""
    metadata = {"stderr_tail": list(given.stderr)} if given.stderr else {}
    line = Line("error", f"The agent did not start: {given.why}{_last_words(given.stderr)}", metadata)
    return _no_launch(s, given.why), (line, LaunchOver(given.why))


def _no_launch(s: Session, why: str) -> Session:
    first = s.generation == 0
    return replace(
        s,
        launch=Launch.CLOSING,
        closing=why,
        jumps=(),
        resuming=False,
        outcome=Outcome.FAILED if first else s.outcome,
        # FAILED holds its queue by itself, and a resume tries again.
        parked=s.parked if first else f"the agent did not start: {why}",
    )


def exited(s: Session, given: Exited) -> Step:
    """The process is over. Its children, and the fate of a prompt on its way, are settled by the teardown."""
    if s.launch is Launch.STARTING:
        return launch_failed(s, LaunchFailed(given.execution, given.why, given.stderr))
    seen = given.exit_code is not None
    why = f"{given.why} (exit code {given.exit_code})" if seen else given.why
    line: tuple[Note, ...] = ()
    told: tuple[Note, ...] = ()
    if s.turn is not None and s.turn.ending in CLAIMED and not seen:
        # Nobody saw it end: it was gone before the cancel, which has ended nothing.
        told = replies(s.turn.asks, "not_running", NOT_RUNNING)
        s = replace(s, turn=replace(s.turn, ending=None, ended_by=None, asks=()))
    if s.turn is not None:
        metadata = {"exit_code": given.exit_code, "stderr_tail": list(given.stderr)}
        words = f"{why[0].upper()}{why[1:]}" if seen or given.ours else f"The turn was lost: {why}"
        line = (Line("error", f"{words}.{_last_words(given.stderr)}", metadata, s.turn.ref),)
    return replace(s, launch=Launch.CLOSING, closing=why), (*told, *line)


def _last_words(stderr: Sequence[str]) -> str:
    return "".join(f"\n{text}" for text in stderr[-5:])


def asleep(s: Session, given: Asleep) -> Step:
    """Its conversation is kept; what is left of its process is torn down before the next one starts."""
    return replace(s, launch=Launch.CLOSING, closing=FELL_ASLEEP), ()


def awake(s: Session) -> Session:
    """It goes on as before; who spoke meanwhile is heard at once."""
    return replace(s, launch=Launch.READY, resuming=False)


def looked(s: Session, given: Looked) -> Step:
    """From now on the journal is waited for, not the process."""
    return replace(s, looked=True), ()


def gone(s: Session, given: Gone) -> Step:
    """Proven gone: whatever was still open is settled by it."""
    why = s.closing or "the agent's process ended"
    fault = None if why == FELL_ASLEEP else why
    over = ExecutionOver(given.execution, given.exit_code, given.survivors, fault)
    named: tuple[Note, ...] = ()
    if given.survivors:
        text = f"Processes that could not be ended: {', '.join(given.survivors)}."
        named = (Line("error", text, {"survivors": list(given.survivors)}),)
    cause = "lost" if given.exit_code is None else "process"  # lost: nobody saw how it ended
    s, answers = questions.without_process(replace(s, launch=Launch.ABSENT))
    s, notes = _without_process(s, given.taken, cause, fault)
    s = replace(s, closing=None, force=False, looked=False, journal=None)
    return s, (over, *named, *answers, *notes)


def _without_process(s: Session, was_taken: bool | None, cause: str, why: str | None) -> Step:
    turn = s.turn
    if turn is None:
        return s, ()
    told: tuple[Note, ...] = ()
    if turn.taken or was_taken:
        s, told = taken(s, Taken(turn.ref))
    elif was_taken is None:
        fates = (Fate(e.id, "unknown", turn.ref) for e in turn.entries)
        told = (*replies((a for e in turn.entries for a in e.asks), "unknown", FATE_UNKNOWN), *fates)
        cause = "lost"
    else:
        cause = "process"
        told = (Returned(tuple(e.id for e in turn.entries)),)
        s = give_back(s)
    s, notes = _over(s, "process_ended", cause, None if turn.ending in CLAIMED else why)
    return s, (*told, *notes)


# -- deadlines ----------------------------------------------------------------------------------


def expired(s: Session, given: Expired) -> Step:
    """What was waited for did not come."""
    match given.timer:
        case Timer("accept"):
            assert s.turn is not None
            turn = replace(s.turn, ending=s.turn.ending or "replace")
            line = Line("error", "The agent took no prompt in time: its process is replaced.", {}, turn.ref)
            why = "the agent took no prompt in time"
            return replace(s, launch=Launch.CLOSING, closing=why, turn=turn), (line,)
        case Timer("end"):
            assert s.turn is not None
            return cancel_unheard(s, CancelUnheard(s.turn.ref, s.turn.attempt))
        case Timer("start"):
            return launch_failed(s, LaunchFailed(s.execution, "it gave no answer in time"))
        case Timer("close"):
            s, answers = questions.without_process(s)
            s, notes = _without_process(s, None, "lost", NOT_PROVEN_GONE)
            notes = (*answers, *notes)
            line = Line(
                "error", "The agent's process could not be proven gone: nothing is started beside it."
            )
            parked = NOT_PROVEN_GONE if s.queue else None
            return replace(s, launch=Launch.LOST, jumps=(), parked=parked, resuming=False), (*notes, line)
        case Timer("retry"):
            return replace(s, retry=False), ()
        case Timer("idle"):
            return replace(s, launch=Launch.DOZING), ()
        case Timer("doze"):
            # Nobody said what became of it: its journal does.
            return awake(s), ()
        case Timer("question", question):
            return questions.expired(s, str(question))
        case Timer(_, ask):
            return _no_longer_waits(s, str(ask))


def _no_longer_waits(s: Session, ask: str) -> Step:
    """Truth at the deadline: a message is stored and will be delivered; a cancel goes on."""

    def without(entries: Iterable[Entry]) -> tuple[Entry, ...]:
        return tuple(replace(e, asks=tuple(a for a in e.asks if a != ask)) for e in entries)

    cancels = s.turn is not None and ask in s.turn.asks
    turn = s.turn and replace(
        s.turn, asks=tuple(a for a in s.turn.asks if a != ask), entries=without(s.turn.entries)
    )
    in_hand = tuple(replace(q, answer=without((q.answer,))[0]) if q.answer else q for q in s.questions)
    s = replace(s, turn=turn, queue=without(s.queue), questions=in_hand)
    return s, replies((ask,), "timeout" if cancels else "queued", TIMED_OUT if cancels else None)


# -- the end of a turn --------------------------------------------------------------------------


def _over(s: Session, stop_reason: str, cause: str, error: str | None = None) -> Step:
    """The turn is over. What its end means is decided by our intent first, not by the agent's word."""
    turn = s.turn
    assert turn is not None
    told = (*replies(turn.asks, "cancelled"), *closed(s.permissions, s, "end"))
    s = replace(s, turn=None, permissions=())
    if s.outcome is not Outcome.OPEN or turn.ending == "stop":
        if s.outcome is Outcome.COMPLETED and s.queue:
            s = replace(s, parked=s.parked or COMPLETED)
        return s, (*told, TurnClosed(turn.ref, "stopped", "stopped", error))
    if turn.ending == "user":
        by = turn.ended_by or "user"
        line = Line("status", f"Turn cancelled by {by}.", {"cancelled_by": by}, turn.ref)
        parked = CANCELLED_BY_A_PERSON if s.queue and not s.jumps else s.parked
        return replace(s, parked=parked), (*told, TurnClosed(turn.ref, "cancelled", "user"), line, Review())
    if turn.ending == "interrupt":
        # What takes its place is promised the next turn; where that was taken back, the task may be reviewed.
        return s, (*told, TurnClosed(turn.ref, "cancelled", "interrupted"), Review())
    notes = (
        *told,
        TurnClosed(turn.ref, stop_reason, cause, error),
        *_remark(turn, stop_reason, cause, error),
        Review(),
    )
    if error is not None and s.queue and not s.jumps:
        s = replace(s, parked=f"the last turn failed: {error}")
    return s, notes


def _remark(turn: Turn, stop_reason: str, cause: str, error: str | None) -> tuple[Note, ...]:
    """What a person should know about an end that is not an ordinary one."""
    if cause == "agent" and error is not None:
        return (Line("error", f"The turn failed: {error}", {"stop_reason": stop_reason}, turn.ref),)
    if cause == "lost" and not turn.taken:
        return (Line("error", FATE_UNKNOWN, {}, turn.ref),)
    if stop_reason == "cancelled":
        return (Line("status", "The agent interrupted its own turn.", {}, turn.ref),)
    if cause == "agent" and stop_reason not in ("end_turn", "idle"):
        return (Line("status", f"The agent stopped: {stop_reason}.", {"stop_reason": stop_reason}, turn.ref),)
    return ()

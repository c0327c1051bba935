"""Why a session is as it is: one sentence, and the facts behind it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kandev.core import payloads
from kandev.core.effects import CancelTurn, Owed, Prompt, Start, Teardown, Timer
from kandev.core.records import ExecutionRecord, SessionRecord
from kandev.core.session import Launch, Outcome, Phase, Session
from kandev.core.views import execution_status, held, waiting_for, wire_state
from kandev.ports.store import Tx
from kandev.runtime.actor import Work
from kandev.usecases import finding
from kandev.usecases.context import Context


async def explain_session(ctx: Context, *, session_id: str) -> dict[str, Any]:
    """`{sentence, state, since, phase, execution?, waiting_for?, under_way, queue, parked_reason?, error?,
    survivors?, trouble?}`; `under_way` lists what is being done or waited for, with `for_s`; for a deadline
    and for a cancel that the agent has still time to acknowledge, `left_s` (seconds); for what came to
    nothing so far, `trouble`. `trouble` beside it: why nothing can be stored at present. Raises NotFound."""
    record, executions, acknowledge_s = await ctx.store.read(lambda tx: _stored(tx, session_id))
    survivors = [process for execution in executions for process in execution.survivors]
    glance = ctx.sessions.glance(session_id)
    if glance is not None:
        record = glance.record
    value = record.value
    status = execution_status(value)
    works = _with_cancels(
        glance.under_way if glance else [],
        ctx.deadlines.cancel_acknowledge_s if acknowledge_s is None else acknowledge_s,
    )
    silent_s = glance.quiet_s if glance is not None and value.phase is Phase.RUNNING else 0.0
    silent = silent_s >= ctx.deadlines.silent_notice_s
    hindrance = ctx.store.damage or ctx.store.hindrance
    troubles = [work.trouble for work in works if work.trouble]
    return {
        "session_id": session_id,
        "sentence": _sentence(record, works, _fell_asleep(executions))
        + (f" It has been silent for {silent_s:.0f} s." if silent else "")
        + (f" Processes that could not be ended: {', '.join(survivors)}." if survivors else "")
        + (f" It did not succeed so far: {troubles[0]}" if troubles and not hindrance else "")
        + (f" Nothing can be stored at present: {hindrance}" if hindrance else ""),
        "state": wire_state(value),
        "since": record.since,
        "phase": value.phase.value,
        "launch": value.launch.value,
        "outcome": value.outcome.value,
        "prompt_generation": value.generation,
        "under_way": [_shown(work) for work in works],
        "queue": payloads.queue(value, ctx.deadlines.queue_max),
        **({"execution": {"id": value.execution, "status": status}} if status else {}),
        **({"waiting_for": record.waiting_for} if record.waiting_for else {}),
        **({"parked_reason": held(value)} if held(value) else {}),
        **({"error": record.error} if record.error else {}),
        **({"survivors": survivors} if survivors else {}),
        **({"trouble": hindrance} if hindrance else {}),
    }


def _stored(tx: Tx, session_id: str) -> tuple[SessionRecord, Sequence[ExecutionRecord], float | None]:
    """The row, its executions, and how long its profile lets an agent take for a cancel."""
    record = finding.session(tx, session_id)
    profile = tx.profiles.get(record.agent_profile_id)
    return record, tx.executions.of_session(session_id), profile.cancel_acknowledge_s if profile else None


def _with_cancels(works: list[Work], acknowledge_s: float) -> list[Work]:
    """With what the agent has left to acknowledge a cancel."""
    return [
        replace(work, left_s=acknowledge_s - work.for_s)
        if isinstance(work.what, CancelTurn) and work.for_s < acknowledge_s
        else work
        for work in works
    ]


def _shown(work: Work) -> dict[str, Any]:
    left = {} if work.left_s is None else {"left_s": round(max(work.left_s, 0.0), 3)}
    trouble = {} if work.trouble is None else {"trouble": work.trouble}
    return {"what": _named(work.what), "for_s": round(work.for_s, 3), **left, **trouble}


def _named(key: Owed | Timer) -> str:
    return f"deadline:{key.kind}" if isinstance(key, Timer) else type(key).__name__


def _sentence(record: SessionRecord, works: list[Work], fell_asleep: bool) -> str:
    value = record.value
    base = _at_its_process(record.value, fell_asleep) or _doing(record)
    waits = len(value.queue)
    wait = "1 message waits" if waits == 1 else f"{waits} messages wait"
    if why := held(value):
        return f"{base} {wait}, parked: {why}."
    if waits and value.outcome is Outcome.OPEN:
        return f"{base} {wait} in the queue."
    if waits:
        return f"{base} {wait} until the session is resumed."
    ages = [w.for_s for w in works if isinstance(w.what, Start | Prompt | CancelTurn | Teardown)]
    if not ages or max(ages) < 1:
        return base
    return f"{base} This has taken {max(ages):.0f} s{_bound(record, works)}."


def _bound(record: SessionRecord, works: list[Work]) -> str:
    """When a cancel is over at the latest. One whose end agentctl has seen waits for the journal alone."""
    if record.value.turn is not None and record.value.turn.heard:
        return ""
    for work in works:
        if isinstance(work.what, CancelTurn) and work.left_s is not None:
            return f"; the agent has {work.left_s:.0f} s more to acknowledge it, then its process is replaced"
    left = [w.left_s for w in works if isinstance(w.what, Timer) and w.what.kind == "end" and w.left_s]
    return f", and takes {min(left):.0f} s more at most before its process is replaced" if left else ""


def _fell_asleep(executions: Sequence[ExecutionRecord]) -> bool:
    last = max(executions, key=lambda execution: execution.number, default=None)
    return last is not None and last.status == "gone" and last.error is None


def _at_its_process(value: Session, fell_asleep: bool) -> str | None:
    """What is done to the process, as far as that says it all."""
    match value.launch:
        case Launch.LOST:
            return "The agent's old process is not proven gone, and nothing is started beside it."
        case Launch.CLOSING if value.looked:
            return "The agent's process is over; what it said last is being stored."
        case Launch.CLOSING:
            return f"The agent's process is being ended: {value.closing or 'it is over'}."
        case Launch.STARTING:
            return "The agent is starting."
        case Launch.DOZING:
            return "The agent had nothing to do for long, and is being put to sleep."
        case Launch.ABSENT if fell_asleep and wire_state(value) == "WAITING_FOR_INPUT":
            return "The agent is asleep; the next message wakes it with its conversation."
    return None


def _doing(record: SessionRecord) -> str:
    value = record.value
    waits = waiting_for(value)
    if waits == "question" and value.phase in (Phase.RUNNING, Phase.WAITING):
        return "The agent waits for your answer to its question."
    if waits and value.phase is Phase.RUNNING:
        return "The agent waits for your answer to a permission request."
    if value.turn is not None and value.turn.heard:
        return "The agent has ended the turn; what it said before that is being stored."
    if value.turn is not None and value.turn.ending == "interrupt":
        return "The turn is being ended for the message that takes its place."
    words = {
        Phase.DISPATCHING: "A prompt is being handed to the agent.",
        Phase.RUNNING: "The agent is working.",
        Phase.CANCELLING: "The turn is being cancelled.",
    }
    if value.phase in words:
        return words[value.phase]
    if value.retry:
        return "The agent refused the prompt; it is tried again shortly."
    if value.launch is Launch.READY:
        return "The agent is up and waits for a message."
    return f"Nothing is under way; the session is {wire_state(value)}."

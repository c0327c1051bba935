"""Why a session is as it is: one sentence, and the facts behind it."""

from datetime import datetime
from typing import Any

from kandev.core import payloads
from kandev.core.effects import CancelTurn, Owed, Prompt, Start, Teardown, Timer
from kandev.core.records import ExecutionRecord, SessionRecord
from kandev.core.session import Launch, Outcome, Phase
from kandev.core.views import execution_status, waiting_for, wire_state
from kandev.runtime.actor import Work
from kandev.runtime.registry import Glance
from kandev.usecases import finding
from kandev.usecases.context import Context


async def explain_session(ctx: Context, *, session_id: str) -> dict[str, Any]:
    """`{sentence, state, since, phase, execution?, waiting_for?, under_way, queue, parked_reason?, error?,
    survivors?}`; `under_way` lists what is being done or waited for, with `for_s` and, for a deadline,
    `left_s` (seconds). Raises NotFound."""
    record = await ctx.store.read(lambda tx: finding.session(tx, session_id))
    executions = await ctx.store.read(lambda tx: tx.executions.of_session(session_id))
    last = max(executions, key=lambda e: e.number, default=None)
    glance = ctx.sessions.glance(session_id)
    if glance is not None:
        record = glance.record
    value = record.value
    status = execution_status(value)
    survivors = [p for e in executions for p in e.survivors]
    silent_s = _seconds_since(record.updated_at, ctx.clock.now()) if value.phase is Phase.RUNNING else 0.0
    silent = silent_s >= ctx.deadlines.silent_notice_s
    return {
        "session_id": session_id,
        "sentence": _sentence(record, glance, last)
        + (f" It has been silent for {silent_s:.0f} s." if silent else ""),
        "state": wire_state(value),
        "since": record.since,
        "phase": value.phase.value,
        "launch": value.launch.value,
        "outcome": value.outcome.value,
        "prompt_generation": value.generation,
        "under_way": [_shown(work) for work in (glance.under_way if glance else ())],
        "queue": payloads.queue(value, ctx.deadlines.queue_max),
        **({"execution": {"id": value.execution, "status": status}} if status else {}),
        **({"waiting_for": record.waiting_for} if record.waiting_for else {}),
        **({"parked_reason": value.parked} if value.parked else {}),
        **({"error": record.error} if record.error else {}),
        **({"survivors": survivors} if survivors else {}),
    }


def _seconds_since(then: str, now: str) -> float:
    return (datetime.fromisoformat(now) - datetime.fromisoformat(then)).total_seconds()


def _shown(work: Work) -> dict[str, Any]:
    left = {} if work.left_s is None else {"left_s": round(max(work.left_s, 0.0), 3)}
    return {"what": _named(work.what), "for_s": round(work.for_s, 3), **left}


def _named(key: Owed | Timer) -> str:
    return f"deadline:{key.kind}" if isinstance(key, Timer) else type(key).__name__


def _sentence(record: SessionRecord, glance: Glance | None, last: ExecutionRecord | None) -> str:
    value = record.value
    base = _doing(record, last)
    waits = len(value.queue)
    wait = "1 message waits" if waits == 1 else f"{waits} messages wait"
    if value.parked:
        return f"{base} {wait}, parked: {value.parked}."
    if waits and value.outcome is Outcome.OPEN:
        return f"{base} {wait} in the queue."
    if waits:
        return f"{base} {wait} until the session is resumed."
    working = glance.under_way if glance else []
    ages = [w.for_s for w in working if isinstance(w.what, Start | Prompt | CancelTurn | Teardown)]
    if not ages or max(ages) < 1:
        return base
    heard = value.turn is not None and value.turn.heard
    ends = [w for w in working if isinstance(w.what, Timer) and w.what.kind == "end" and not heard]
    left = [w.left_s for w in ends if w.left_s]
    bound = f", and takes {min(left):.0f} s more at most before its process is replaced" if left else ""
    return f"{base} This has taken {max(ages):.0f} s{bound}."


def _fell_asleep(last: ExecutionRecord) -> bool:
    return last.status == "gone" and last.error is None


def _doing(record: SessionRecord, last: ExecutionRecord | None) -> str:
    value = record.value
    if value.launch is Launch.LOST:
        return "The agent's old process is not proven gone, and nothing is started beside it."
    if value.launch is Launch.CLOSING:
        if value.looked:
            return "The agent's process is over; what it said last is being stored."
        return f"The agent's process is being ended: {value.closing or 'it is over'}."
    if value.launch is Launch.STARTING:
        return "The agent is starting."
    if waiting_for(value) and value.phase is Phase.RUNNING:
        return "The agent waits for your answer to a permission request."
    if value.turn is not None and value.turn.heard:
        return "The agent has ended the turn; what it said before that is being stored."
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
    if value.launch is Launch.DOZING:
        return "The agent had nothing to do for long, and is being put to sleep."
    if wire_state(value) == "WAITING_FOR_INPUT" and last is not None and _fell_asleep(last):
        return "The agent is asleep; the next message wakes it with its conversation."
    return f"Nothing is under way; the session is {wire_state(value)}."

"""Turns, states and executions: one at a time, lawful moves, nothing begun after a stop, FIFO."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise

from kandev.core.machines import WIRE_MOVES
from kandev.core.task import FINAL
from tests.torture.census.fates import token_of
from tests.torture.evidence import Evidence, Row

WORKING = frozenset({"STARTING", "RUNNING"})
RESUMED = "STARTING"


def judge(evidence: Evidence) -> Iterator[str]:
    """See the module."""
    told = by_session(evidence)
    for session in evidence.books.sessions:
        yield from _states(session, told[session["id"]])
        yield from _one_turn(session, told[session["id"]])
        yield from _after_stops(evidence, session, told[session["id"]])
        yield from _order(evidence, session, told[session["id"]])
        yield from _executions(evidence, session)
    yield from _processes(evidence)
    yield from _conversations(evidence)
    yield from _prompts(evidence)
    yield from _ends(evidence)
    yield from _answers(evidence, told)
    yield from _tasks(evidence)


def by_session(evidence: Evidence) -> dict[str, list[Row]]:
    """Each session's notifications in order."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in evidence.books.notifications:
        if row["stream"] == "session":
            found[row["stream_id"]].append(row)
    return found


def _states(session: Row, told: list[Row]) -> Iterator[str]:
    state, revision = "CREATED", 0
    for row in told:
        if row["action"] == "session.cancellation_changed":
            revision += 1
            if row["payload"]["cancellation_revision"] != revision:
                yield f"cancel: {session['id']} told revision {row['payload']}, the next one is {revision}"
        if row["action"] != "session.state_changed":
            continue
        old, new = row["payload"]["old_state"], row["payload"]["new_state"]
        if old != state:
            yield f"states: {session['id']} went from {old}, where it was {state} (seq {row['seq']})"
        if new not in WIRE_MOVES[old]:
            yield f"states: {session['id']} went from {old} to {new}"
        state = new
    if state != session["state"]:
        yield f"states: {session['id']} is {session['state']}, its last notification says {state}"
    if session["state"] in WORKING:
        yield f"quiet: {session['id']} is {session['state']}"
    if session["value"].get("turn") is not None:
        yield f"quiet: {session['id']} has the turn {session['value']['turn']}"


def _one_turn(session: Row, told: list[Row]) -> Iterator[str]:
    running: str | None = None
    for row in told:
        turn = row["payload"].get("turn_id")
        if row["action"] == "session.turn.started":
            if running is not None:
                yield f"one turn: {turn} began while {running} ran"
            running = turn
        elif row["action"] == "session.turn.completed":
            if turn != running:
                yield f"one turn: {turn} ended while {running} ran"
            running = None


def _after_stops(evidence: Evidence, session: Row, told: list[Row]) -> Iterator[str]:
    """No turn between CANCELLED and a resume; and no resume that nobody asked for."""
    state, resumed = "CREATED", 0
    for row in told:
        if row["action"] == "session.state_changed":
            resumed += state in ("CANCELLED", "FAILED") and row["payload"]["new_state"] == RESUMED
            state = row["payload"]["new_state"]
        elif row["action"] == "session.turn.started" and state == "CANCELLED":
            yield f"stop: {row['payload']['turn_id']} began on a cancelled session"
    asked = sum(
        one.session_id == session["id"] and one.action in ("session.recover", "session.launch")
        for one in evidence.ledger.asked
    )
    if resumed > asked:
        yield f"stop: {session['id']} was taken up again {resumed} times, asked for {asked} times"


def _order(evidence: Evidence, session: Row, told: list[Row]) -> Iterator[str]:
    """First in, first out, except for what a person may let jump: a message to a parked queue or into a
    cancel."""
    entries = [row for row in evidence.books.entries if row["session_id"] == session["id"]]
    number = {row["id"]: row["prompt_generation"] for row in evidence.books.turns}
    went = sorted(
        (row for row in entries if row["state"] in ("delivered", "unknown")),
        key=lambda row: (number.get(row["turn_id"], 0), row["place"]),
    )
    loose = _loose(told)
    for earlier, later in pairwise(went):
        turn = earlier["turn_id"]
        if earlier["place"] > later["place"] and turn not in loose:
            yield (
                f"order: {token_of(earlier)} (place {earlier['place']}, {turn}) went before "
                f"{token_of(later)} (place {later['place']}, {later['turn_id']})"
            )


def _loose(told: list[Row]) -> set[str]:
    """Turns before which the queue was parked, or a person cancelled, since the turn before them began."""
    parked = cancelling = jumped = False
    loose: set[str] = set()
    for row in told:
        action, payload = row["action"], row["payload"]
        if action == "message.queue.status_changed":
            parked = not payload["auto_run"]
        elif action == "session.cancellation_changed":
            cancelling = payload["cancellation_pending"]
        jumped = jumped or parked or cancelling
        if action == "session.turn.started":
            if jumped:
                loose.add(payload["turn_id"])
            jumped = parked or cancelling
    return loose


def _executions(evidence: Evidence, session: Row) -> Iterator[str]:
    value = session["value"]
    current = f"{session['id']}.{value.get('executions', 0)}"
    for row in evidence.books.executions:
        if row["session_id"] != session["id"] or row["status"] == "gone":
            continue
        if row["id"] != current or value.get("launch", "absent") != "ready" or row["status"] != "ready":
            yield f"executions: {row['id']} is {row['status']}, its session {value.get('launch')} ({current})"


def _processes(evidence: Evidence) -> Iterator[str]:
    """At most one process of each execution takes prompts, and none begins before the one before it has
    ended."""
    logs = defaultdict(list)
    for log in evidence.agents:
        logs[log.session_id].append(log)
        for fault in log.faults:
            yield f"agent's log: {log.execution}: {fault}"
    for of_session in logs.values():
        for earlier, later in pairwise(of_session):
            if earlier.execution == later.execution and earlier.prompts:
                # A launch that was cut off begins anew; one that took a prompt was none.
                yield f"one process: {later.execution} had the processes {earlier.pid} and {later.pid}"
            elif earlier.last_at >= later.began_at:
                yield f"one execution: {later.execution} began while {earlier.execution} still spoke"


def _conversations(evidence: Evidence) -> Iterator[str]:
    """A process that takes a session up goes on with its conversation, or says that it cannot."""
    known: dict[str, str] = {}
    for log in evidence.agents:
        before = known.get(log.session_id)
        messages = evidence.books.messages.get(log.session_id, [])
        told = any("without memory" in row["content"] for row in messages if row["author_type"] == "system")
        if before is not None and log.prompts and log.opened != before and not told:
            yield f"conversation: {log.execution} took up {log.opened}, the one before had {before}"
        if log.prompts and log.opened is not None:
            known[log.session_id] = log.opened


def _prompts(evidence: Evidence) -> Iterator[str]:
    """Each prompt that an agent got is one turn's whole content, in the order of the turns."""
    turns = {row["id"]: row for row in evidence.books.turns}
    content = defaultdict(set)
    turn_of = {}
    for row in evidence.books.entries:
        if row["turn_id"] is not None and row["state"] in ("delivered", "unknown"):
            content[row["turn_id"]].add(token_of(row))
            turn_of[token_of(row)] = row["turn_id"]
    for log in evidence.agents:
        last = 0
        for prompt in log.prompts:
            named = {turn_of.get(token) for token in prompt.tokens}
            found = [turns[name] for name in named if name in turns]
            if len(named) != 1 or not found:
                continue  # its session was deleted, or `fates` tells of it
            turn = found[0]
            if turn["execution_id"] != log.execution:
                yield f"prompts: {turn['id']} went to {log.execution}"
            if set(prompt.tokens) != content[turn["id"]]:
                yield f"prompts: {turn['id']} carried {prompt.tokens}, its entries are {content[turn['id']]}"
            if turn["prompt_generation"] <= last:
                yield f"prompts: {turn['id']} came after generation {last}"
            last = turn["prompt_generation"]


def _ends(evidence: Evidence) -> Iterator[str]:
    """Turns are over, for a reason that somebody had."""
    politely = evidence.ledger.faults.get("terminate agentctl", 0)
    for row in evidence.books.turns:
        if row["state"] != "ended":
            yield f"quiet: the turn {row['id']} is {row['state']}"
        if row["cause"] == "agent" and row["stop_reason"] == "cancelled" and not politely:
            yield f"cancel: {row['id']} was cancelled, and nobody aimed at it"
    for session_id, messages in evidence.books.messages.items():
        for message in messages:
            asked = message["type"] == "permission_request"
            if asked and message["metadata"].get("status") == "pending":
                yield f"quiet: {session_id} still asks {message['content']!r}"


def _answers(evidence: Evidence, told: dict[str, list[Row]]) -> Iterator[str]:
    """A cancel that succeeded left no turn that ran when it was asked; a stop was committed when it was
    answered."""
    alive = {row["id"] for row in evidence.books.sessions}
    for asked in evidence.ledger.asked:
        late = asked.answered_at > evidence.books.read_at
        if asked.answer is None or late or asked.session_id not in alive:
            continue
        if asked.action == "agent.cancel" and asked.answer.get("success"):
            for turn in evidence.books.turns:
                ran = turn["session_id"] == asked.session_id and turn["started_at"] < asked.at
                if ran and (turn["ended_at"] or "9") > asked.answered_at and turn["cause"] != "stopped":
                    yield f"answers: the cancel of {asked.at} succeeded, and {turn['id']} ran on"
        if asked.action == "session.stop":
            moves = [r for r in told[asked.session_id] if r["action"] == "session.state_changed"]
            shown = [(r["timestamp"], r["payload"]["new_state"]) for r in moves]
            before = [state for at, state in shown if at < asked.at]
            within = [state for at, state in shown if asked.at <= at <= asked.answered_at]
            if "CANCELLED" not in (*before[-1:], *within):  # stopped already: a forceful one hurries it
                window = f"{asked.at} to {asked.answered_at}"
                yield f"answers: a stop succeeded from {window}, and {asked.session_id} went {shown}"


def _tasks(evidence: Evidence) -> Iterator[str]:
    for task in evidence.books.tasks:
        states = [s["state"] for s in evidence.books.sessions if s["task_id"] == task["id"]]
        idle = not WORKING & set(states)
        if idle and states and task["state"] in ("IN_PROGRESS", "SCHEDULING") and not task["archived_at"]:
            yield f"tasks follow: {task['id']} is {task['state']} and has {states}"
        if task["state"] in FINAL:
            yield f"tasks follow: {task['id']} is {task['state']}, and nobody said so"

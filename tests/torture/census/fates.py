"""Messages in are fates out: each accepted message has one entry and one fate, and the fate is true."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.torture.agentlog import TOKEN
from tests.torture.evidence import Evidence, Row
from tests.torture.ledger import Sent

FATES = frozenset({"queued", "delivered", "removed", "unknown"})
NO_ENTRY = frozenset({"CONFLICT", "NOT_FOUND", "VALIDATION_ERROR"})


def judge(evidence: Evidence) -> Iterator[str]:
    """See the module."""
    entries = defaultdict(list)
    for row in evidence.books.entries:
        entries[token_of(row)].append(row)
    for token, rows in entries.items():
        if token not in evidence.ledger.sent:
            yield f"entries: nobody sent {rows[0]['content']!r}"
    seen = Counter(t for log in evidence.agents for prompt in log.prompts for t in prompt.tokens)
    for sent in evidence.ledger.sent.values():
        yield from _kept(evidence, sent, entries[sent.token])
        yield from _told(sent, entries[sent.token])
        for row in entries[sent.token][:1]:
            yield from _true(evidence, row, seen[sent.token])
        if seen[sent.token] > 1:
            yield f"one dispatch: {sent.token} reached an agent {seen[sent.token]} times"
    yield from _removals(evidence)
    yield from _queues(evidence)
    for asked in evidence.ledger.hung:
        yield f"nothing waits without end: {asked} was not answered"


def token_of(entry: Row) -> str:
    """Of its message."""
    found = TOKEN.search(entry["content"])
    return found.group() if found else ""


def _kept(evidence: Evidence, sent: Sent, rows: list[Row]) -> Iterator[str]:
    """As many entries as the answers say."""
    if len(rows) > 1:
        yield f"one entry: {sent.token} has {len(rows)} entries"
    accepted = bool(sent.answers) or sent.launched
    alive = {row["id"] for row in evidence.books.sessions}
    if accepted and not rows and sent.session_id in alive:
        yield f"nothing is lost: {sent.token} was accepted and has no entry: {sent}"
    refused = sent.refusals and all(code in NO_ENTRY for code, _ in sent.refusals)
    if rows and refused and not accepted and not sent.unanswered:
        state = rows[0]["state"]
        yield f"a refusal stores nothing: {sent.token} was refused ({sent.refusals}) and is {state}"
    for row in rows:
        if row["content"] != sent.content:
            yield f"content: {sent.token} was {sent.content!r} and is stored as {row['content']!r}"


def _told(sent: Sent, rows: list[Row]) -> Iterator[str]:
    """All answers about one message agree with each other and with its fate."""
    names = {(a["entry_id"], a["message_id"]) for a in sent.answers}
    if len(names) > 1:
        yield f"the same answer: {sent.token} was told to be {names}"
    if names and rows and names != {(rows[0]["id"], rows[0]["message_id"])}:
        yield f"the same answer: {sent.token} is {rows[0]['id']} and was told to be {names}"
    states = {row["state"] for row in rows}
    if rows and any(a["status"] == "sent" for a in sent.answers) and states != {"delivered"}:
        yield f"sent means accepted: {sent.token} was answered sent and is {states}"
    unknown = [r for r in sent.refusals if r[1].get("details", {}).get("error") == "delivery_unknown"]
    if unknown and rows and states != {"unknown"}:
        yield f"unknown stays unknown: {sent.token} was told to be unknown and is {states}"
    for code, error in sent.refusals:
        if code == "INTERNAL_ERROR" and (code, error) not in unknown:
            yield f"no error of ours: {sent.token} was answered {error}"


def _true(evidence: Evidence, row: Row, seen: int) -> Iterator[str]:
    """The fate against what agents got."""
    token, state = token_of(row), row["state"]
    if state not in FATES:
        yield f"one fate: {token} is {state} when all is quiet"
    if state in ("queued", "removed") and seen:
        yield f"fates are true: {token} is {state}, and an agent got it"
    if state == "delivered" and not seen and not _died_unread(evidence, row):
        yield f"fates are true: {token} is delivered ({row['turn_id']}), and no agent got it"


def _died_unread(evidence: Evidence, row: Row) -> bool:
    """It was in the agent's pipe when the agent was killed: then the turn has no end of the agent's own."""
    turn = next((t for t in evidence.books.turns if t["id"] == row["turn_id"]), None)
    execution = turn and next((x for x in evidence.books.executions if x["id"] == turn["execution_id"]), None)
    return bool(turn and turn["cause"] != "agent" and execution and execution["status"] == "gone")


def _removals(evidence: Evidence) -> Iterator[str]:
    states = {row["id"]: row["state"] for row in evidence.books.entries}
    for asked in evidence.ledger.asked:
        if asked.action != "message.queue.remove" or asked.answer is None:
            continue
        state = states.get(asked.payload["entry_id"], "removed")
        if state != "removed":
            yield f"removed is removed: {asked.payload['entry_id']} was taken out and is {state}"


def _queues(evidence: Evidence) -> Iterator[str]:
    """The queue in the value and the rows agree, and nothing that may run is left lying."""
    waiting = defaultdict(list)
    for row in sorted(evidence.books.entries, key=lambda row: row["place"]):
        if row["state"] == "queued":
            waiting[row["session_id"]].append(row["id"])
    for session in evidence.books.sessions:
        value = session["value"]
        queue = [entry["id"] for entry in value.get("queue", ())]
        if queue != waiting[session["id"]]:
            yield f"queue: {session['id']} holds {queue}, the rows say {waiting[session['id']]}"
        promptable = value.get("outcome", "open") in ("open", "completed")
        held = value.get("parked") is not None or not value.get("auto_run", True)
        if queue and promptable and not held:
            yield f"drained: {session['id']} is promptable, not parked, and has {queue}"

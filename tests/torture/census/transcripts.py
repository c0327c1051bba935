"""Transcripts are what the agents say they sent.

What an agent says while a prompt runs is shown whole and in order when the turn ended by the agent's own
account; of a turn that ended otherwise (stopped, given up, dead with its process) a beginning of it is shown.
What it says between its turns may be late and dropped, but is never torn or out of order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tests.torture.agentlog import AgentLog, Piece
from tests.torture.census.fates import token_of
from tests.torture.evidence import Evidence, Row

SPOKEN = ("message", "thought", "tool_call")
DRAWN_OUT = "did not acknowledge the cancel"


@dataclass(frozen=True)
class Line:
    """One message of an agent: put together from its pieces, or from its rows."""

    kind: str
    name: str
    text: str
    turn: str | None = None
    status: str = ""


def judge(evidence: Evidence) -> Iterator[str]:
    """See the module."""
    for session_id, rows in evidence.books.messages.items():
        yield from _people(evidence, session_id, rows)
    turn_of = {
        token_of(row): row["turn_id"]
        for row in evidence.books.entries
        if row["state"] in ("delivered", "unknown")
    }
    turns = {row["id"]: row for row in evidence.books.turns}
    for log in _by_execution(evidence.agents):
        if log.session_id not in evidence.books.messages:
            continue  # deleted with all that was said
        said = evidence.books.messages[log.session_id]
        own = [r for r in said if r["turn_id"] in turns and _of(turns, r["turn_id"]) == log.execution]
        yield from _agent(evidence, log, own, turn_of)


def _by_execution(logs: Sequence[AgentLog]) -> list[AgentLog]:
    """Processes whose launch was cut off have said nothing: the last of each execution."""
    return list({log.execution: log for log in logs}.values())


def _of(turns: dict[str, Row], turn_id: str) -> str:
    return str(turns[turn_id]["execution_id"])


def _people(evidence: Evidence, session_id: str, rows: list[Row]) -> Iterator[str]:
    """Each delivered message stands once in the transcript, in its turn, and numbers have no gap."""
    numbers = [row["seq"] for row in rows]
    if numbers != sorted(set(numbers)):
        yield f"transcript: {session_id} is numbered {numbers}"
    shown = defaultdict(list)
    for row in rows:
        if row["author_type"] == "user":
            shown[row["id"]].append(row)
    for entry in evidence.books.entries:
        if entry["session_id"] != session_id:
            continue
        found = shown.pop(entry["message_id"], [])
        due = entry["state"] in ("delivered", "unknown")
        if len(found) > 1 or (due and not found):
            yield f"transcript: {token_of(entry)} is {entry['state']} and stands there {len(found)} times"
        for row in found:
            if row["content"] != entry["content"] or (due and row["turn_id"] != entry["turn_id"]):
                yield f"transcript: {token_of(entry)} of {entry['turn_id']} is shown as {row}"
    for rest in shown.values():
        yield f"transcript: nobody said {rest[0]['content']!r}"


def _agent(evidence: Evidence, log: AgentLog, rows: list[Row], turn_of: dict[str, str]) -> Iterator[str]:
    """One process: its words against the rows of its turns."""
    sent = _lines_sent(log.pieces)
    shown = _lines_shown(rows)
    names = {(line.kind, line.name): line for line in sent}
    for line in shown:
        if (line.kind, line.name) not in names:
            yield f"transcript: {log.execution} never said {line}"
    known = [line for line in shown if (line.kind, line.name) in names]
    order = [(line.kind, line.name) for line in sent]
    places = [order.index((line.kind, line.name)) for line in known]
    if places != sorted(places):
        yield f"transcript: {log.execution} said {order}, shown are {[(s.kind, s.name) for s in known]}"
    for number, prompt in enumerate(log.prompts):
        inside = _lines_sent([p for p in log.pieces if p.prompt == number])
        turn_id = next((turn_of[t] for t in prompt.tokens if t in turn_of), None)
        if turn_id is not None:
            here = [line for line in known if (line.kind, line.name) in {(s.kind, s.name) for s in inside}]
            whole = _whole(evidence, turn_id, rows)
            yield from _turn(turn_id, inside, here, whole=whole)


def _whole(evidence: Evidence, turn_id: str, rows: Sequence[Row]) -> bool:
    """Whether the turn ended by the agent's own account."""
    turn = next(row for row in evidence.books.turns if row["id"] == turn_id)
    if turn["cause"] == "agent":
        return True
    if turn["cause"] != "user" or any(DRAWN_OUT in r["content"] for r in rows if r["turn_id"] == turn_id):
        return False
    generation = turn["prompt_generation"]
    went_on = [
        other
        for other in evidence.books.turns
        if other["execution_id"] == turn["execution_id"] and other["prompt_generation"] > generation
    ]
    status = next(x["status"] for x in evidence.books.executions if x["id"] == turn["execution_id"])
    return bool(went_on) or bool(status != "gone")


def _turn(turn_id: str, sent: list[Line], shown: list[Line], *, whole: bool) -> Iterator[str]:
    for line, said in zip(shown, sent, strict=False):
        if (line.kind, line.name) != (said.kind, said.name):
            yield f"transcript: {turn_id} shows {line}, its agent said {said} there"
            return
        torn = line != shown[-1] or whole
        right = line.text == said.text if torn else said.text.startswith(line.text)
        if not right:
            yield f"transcript: {turn_id} shows {_cut(line)}, its agent said {_cut(said)}"
        if whole and line.status != said.status:
            yield f"transcript: {turn_id} shows {line.name} as {line.status}, its agent said {said.status}"
    if whole and len(shown) != len(sent):
        yield f"transcript: {turn_id} ended by itself and shows {len(shown)} of {len(sent)} messages"


def _cut(line: Line) -> tuple[str, str, int]:
    return (line.name, line.text[-80:], len(line.text))


def _lines_sent(pieces: Sequence[Piece]) -> list[Line]:
    """Pieces of the same id are one message."""
    found: dict[tuple[str, str], Line] = {}
    for piece in pieces:
        if piece.kind not in SPOKEN:
            continue
        key = (piece.kind, piece.name)
        old = found.get(key)
        if old is None:
            found[key] = Line(piece.kind, piece.name, piece.text, status=piece.status)
        elif piece.kind == "tool_call":
            found[key] = Line(piece.kind, piece.name, old.text, status=piece.status)
        else:
            found[key] = Line(piece.kind, piece.name, old.text + piece.text)
    return list(found.values())


def _lines_shown(rows: Sequence[Row]) -> list[Line]:
    """Rows of the same id are one message: a line of ours may stand between them."""
    found: dict[tuple[str, str], Line] = {}
    for row in rows:
        if row["author_type"] != "agent" or row["type"] not in SPOKEN:
            continue
        call = row["type"] == "tool_call"
        name = str(row["metadata"].get("tool_call_id" if call else "message_id"))
        key = (row["type"], name)
        old = found.get(key)
        text = row["content"] if old is None or call else old.text + row["content"]
        status = str(row["metadata"].get("status", "")) if call else ""
        found[key] = Line(row["type"], name, text, row["turn_id"], status)
    return list(found.values())

"""A small round in which everything is in order, made by hand: the census must find nothing in it.

One session `s` with two executions: the first took two prompts and was killed with its third, whose fate
nobody knows; the second took one more. One message was taken out of the queue, one waits in the parked queue.
"""

from __future__ import annotations

from typing import Any

from tests.torture.agentlog import AgentLog, Piece, PromptLog
from tests.torture.evidence import Books, Evidence, Row
from tests.torture.house import Running
from tests.torture.ledger import Asked, Ledger, Sent
from tests.torture.watcher import Heard

SESSION = "s"
PLACES = 6


def token(number: int) -> str:
    """Of the message in this place."""
    return f"tk-1-{number}-"


def _sent(number: int) -> Sent:
    answer = {"entry_id": f"e{number}", "message_id": f"m{number}", "status": "queued"}
    return Sent(token(number), "t", SESSION, f"say {token(number)}", answers=[answer])


def _entry(number: int, state: str, turn: str | None = None) -> Row:
    named = {"id": f"e{number}", "session_id": SESSION, "message_id": f"m{number}", "place": number}
    return {**named, "content": f"say {token(number)}", "state": state, "turn_id": turn}


def _turn(number: int, execution: int, cause: str, stop_reason: str) -> Row:
    id = f"s.{execution}:{number}"
    named = {"id": id, "session_id": SESSION, "execution_id": f"s.{execution}", "state": "ended"}
    times = {"started_at": f"T{number}", "ended_at": f"T{number}.5"}
    return {**named, **times, "prompt_generation": number, "cause": cause, "stop_reason": stop_reason}


def _message(seq: int, author: str, content: str, turn: str, **metadata: Any) -> Row:
    name = metadata.get("message_id") or metadata.get("tool_call_id") or f"x{seq}"
    kind = "tool_call" if "tool_call_id" in metadata else "message"
    row = {"id": name, "session_id": SESSION, "seq": seq, "author_type": author, "type": kind}
    return {**row, "content": content, "turn_id": turn, "metadata": metadata}


def _transcript() -> list[Row]:
    """What people and agents said."""
    return [
        {**_message(1, "user", f"say {token(1)}", "s.1:1"), "id": "m1"},
        _message(2, "agent", "one", "s.1:1", message_id="a1"),
        _message(3, "agent", "chunk 1 chunk 2 ", "s.1:1", message_id="a2"),
        _message(4, "agent", "build", "s.1:1", tool_call_id="c1", status="completed"),
        {**_message(5, "user", f"say {token(2)}", "s.1:2"), "id": "m2"},
        _message(6, "agent", "two", "s.1:2", message_id="a3"),
        {**_message(7, "user", f"say {token(3)}", "s.1:3"), "id": "m3"},
        _message(8, "agent", "chunk 1 ", "s.1:3", message_id="a4"),
        {**_message(9, "user", f"say {token(4)}", "s.2:4"), "id": "m4"},
        _message(10, "agent", "four", "s.2:4", message_id="a6"),
    ]


def _first_agent() -> AgentLog:
    log = AgentLog("s.1", 101, opened="c1", began_at=100, last_at=390)
    log.prompts = [
        PromptLog((token(1),), 110, 150, "end_turn"),
        PromptLog((token(2),), 210, 250, "end_turn"),
        PromptLog((token(3),), 310),
    ]
    log.pieces = [
        Piece("message", "a1", "one", 120, 0),
        Piece("message", "a2", "chunk 1 ", 130, 0),
        Piece("message", "a2", "chunk 2 ", 135, 0),
        Piece("tool_call", "c1", "build", 140, 0, "pending"),
        Piece("tool_call", "c1", "", 145, 0, "completed"),
        Piece("message", "a9", "after 1 ", 155),
        Piece("message", "a3", "two", 220, 1),
        Piece("message", "a4", "chunk 1 ", 320, 2),
        Piece("message", "a4", "chunk 2 ", 390, 2),
    ]
    return log


def _second_agent() -> AgentLog:
    log = AgentLog("s.2", 102, opened="c1", loaded=True, began_at=400, last_at=450)
    log.prompts = [PromptLog((token(4),), 410, 450, "end_turn")]
    log.pieces = [Piece("message", "a6", "four", 420, 0)]
    return log


def notification(seq: int, action: str, **payload: Any) -> Row:
    """Of the session's stream."""
    named = {"stream": "session", "stream_id": SESSION, "seq": seq, "timestamp": f"T{seq / 4}"}
    return {**named, "action": action, "payload": payload}


def _notifications() -> list[Row]:
    said: list[tuple[str, dict[str, Any]]] = [
        ("session.created", {}),
        ("session.state_changed", {"old_state": "CREATED", "new_state": "STARTING"}),
        ("session.state_changed", {"old_state": "STARTING", "new_state": "RUNNING"}),
    ]
    for number, execution in ((1, 1), (2, 1), (3, 1), (4, 2)):
        said.append(("session.turn.started", {"turn_id": f"s.{execution}:{number}"}))
        said.append(("session.message.added", {}))
        said.append(("session.turn.completed", {"turn_id": f"s.{execution}:{number}"}))
    said += [
        ("session.state_changed", {"old_state": "RUNNING", "new_state": "WAITING_FOR_INPUT"}),
        ("message.queue.status_changed", {"auto_run": False, "count": 1}),
    ]
    return [notification(seq, action, **payload) for seq, (action, payload) in enumerate(said, 1)]


def _books() -> Books:
    value = {"id": SESSION, "outcome": "open", "launch": "ready", "executions": 2, "turn": None}
    session = {"id": SESSION, "task_id": "t", "state": "WAITING_FOR_INPUT"}
    executions = [
        {"id": "s.1", "session_id": SESSION, "status": "gone"},
        {"id": "s.2", "session_id": SESSION, "status": "ready"},
    ]
    return Books(
        read_at="U",
        tasks=[{"id": "t", "state": "REVIEW", "archived_at": None}],
        sessions=[{**session, "value": {**value, "queue": [{"id": "e6"}], "parked": "by a person"}}],
        turns=[
            _turn(1, 1, "agent", "end_turn"),
            _turn(2, 1, "agent", "end_turn"),
            _turn(3, 1, "process", "process_ended"),
            _turn(4, 2, "agent", "end_turn"),
        ],
        entries=[
            _entry(1, "delivered", "s.1:1"),
            _entry(2, "delivered", "s.1:2"),
            _entry(3, "unknown", "s.1:3"),
            _entry(4, "delivered", "s.2:4"),
            _entry(5, "removed"),
            _entry(6, "queued"),
        ],
        executions=executions,
        streams=[{"stream": "session", "stream_id": SESSION, "pruned": 0, "last": 17}],
        notifications=_notifications(),
        messages={SESSION: _transcript()},
    )


def evidence() -> Evidence:
    """A fresh copy of it."""
    books = _books()
    removal = Asked(
        "message.queue.remove", {"session_id": SESSION, "entry_id": "e5"}, answer={"success": True}
    )
    ledger = Ledger({token(n): _sent(n) for n in range(1, PLACES + 1)}, [removal])
    heard = Heard(SESSION, 0, {"seq": 17}, [(row["seq"], row["action"]) for row in books.notifications])
    return Evidence(
        ledger,
        books,
        [_first_agent(), _second_agent()],
        [heard],
        living=[Running(102, "kandev mock-agent", "s.2")],
        files=["kandev.db", "agentctl/epoch"],
    )

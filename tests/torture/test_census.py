"""The census can fail: each planted lie is told, by the rule that it breaks, and the truth breaks none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kandev.agentctl.mock_agent.stdio import WireLog
from tests.torture import truth
from tests.torture.agentlog import read_logs
from tests.torture.census import judge
from tests.torture.evidence import Evidence
from tests.torture.house import Running
from tests.torture.ledger import Asked
from tests.torture.rounds import complaints

Lie = Callable[[Evidence], object]


def test_a_round_in_which_everything_is_in_order_breaks_no_rule() -> None:
    assert judge(truth.evidence()) == []


def _entry(e: Evidence, number: int) -> dict[str, object]:
    return next(row for row in e.books.entries if row["id"] == f"e{number}")


def _lost(e: Evidence) -> None:
    e.books.entries.remove(_entry(e, 6))
    e.books.sessions[0]["value"]["queue"] = []


def _doubled(e: Evidence) -> None:
    e.agents[1].prompts[0] = replace(e.agents[1].prompts[0], tokens=(truth.token(2), truth.token(4)))


def _reordered(e: Evidence) -> None:
    for one, place in ((1, 2), (2, 1)):
        _entry(e, one)["place"] = place


def _swapped_in_the_transcript(e: Evidence) -> None:
    rows = e.books.messages["s"]
    rows[1]["content"], rows[1]["metadata"], rows[2]["content"], rows[2]["metadata"] = (
        rows[2]["content"],
        rows[2]["metadata"],
        rows[1]["content"],
        rows[1]["metadata"],
    )


def _begun_after_a_stop(e: Evidence) -> None:
    stop = {"old_state": "RUNNING", "new_state": "CANCELLED"}
    e.books.notifications[11] = truth.notification(12, "session.state_changed", **stop)


def _content(row: int, text: str) -> Lie:
    return lambda e: e.books.messages["s"][row].update(content=text)


def _state(number: int, state: str) -> Lie:
    return lambda e: _entry(e, number).update(state=state)


def _session(**value: object) -> Lie:
    return lambda e: e.books.sessions[0]["value"].update(value)


def _stopped_by_nobody(e: Evidence) -> None:
    e.books.turns[1].update(stop_reason="cancelled")


LIES: dict[str, tuple[str, Lie]] = {
    "a message is lost": ("nothing is lost", _lost),
    "a message is doubled": ("one dispatch", _doubled),
    "a message was stored twice": (
        "one entry",
        lambda e: e.books.entries.append({**_entry(e, 6), "id": "e7"}),
    ),
    "messages are out of order": ("order", _reordered),
    "a message that nobody sent": ("entries", lambda e: e.ledger.sent.pop(truth.token(6))),
    "a message with other words": ("content", lambda e: _entry(e, 5).update(content=f"{truth.token(5)} x")),
    "a refused message is stored": (
        "a refusal stores nothing",
        lambda e: e.ledger.sent.update(
            {truth.token(6): replace(e.ledger.sent[truth.token(6)], answers=[], refusals=[("CONFLICT", {})])}
        ),
    ),
    "two answers differ": (
        "the same answer",
        lambda e: e.ledger.sent[truth.token(5)].answers.append(
            {"entry_id": "other", "message_id": "m5", "status": "queued"}
        ),
    ),
    "sent, and not delivered": (
        "sent means accepted",
        lambda e: e.ledger.sent[truth.token(3)].answers[0].update(status="sent"),
    ),
    "an error of ours": (
        "no error of ours",
        lambda e: e.ledger.sent[truth.token(3)].refusals.append(("INTERNAL_ERROR", {})),
    ),
    "no fate": ("one fate", _state(1, "claimed")),
    "delivered, and nobody got it": ("fates are true", lambda e: e.agents[1].prompts.clear()),
    "removed, and somebody got it": ("fates are true", _state(2, "removed")),
    "taken out, and still there": ("removed is removed", _state(5, "queued")),
    "a queue of its own": ("queue", _session(queue=[])),
    "nobody drains": ("drained", _session(parked=None)),
    "a turn in mid-air": ("quiet", _session(turn={"ref": {}})),
    "a turn without an end": ("quiet", lambda e: e.books.turns[0].update(state="active")),
    "two turns at once": ("one turn", lambda e: e.books.notifications[5].update(action="session.updated")),
    "an unlawful state": (
        "states",
        lambda e: e.books.notifications[2]["payload"].update(new_state="CREATED"),
    ),
    "a turn after a stop": ("stop", _begun_after_a_stop),
    "a cancel that nobody asked for": ("cancel", _stopped_by_nobody),
    "an execution that lives on": ("executions", lambda e: e.books.executions[0].update(status="ready")),
    "two processes of one execution": (
        "one process",
        lambda e: e.agents.append(replace(e.agents[1], pid=103)),
    ),
    "two executions at once": ("one execution", lambda e: setattr(e.agents[1], "began_at", 380)),
    "a prompt beside a prompt": ("agent's log", lambda e: e.agents[0].faults.append("a prompt came")),
    "another conversation": ("conversation", lambda e: setattr(e.agents[1], "opened", "c2")),
    "a request without an answer": (
        "nothing waits without end",
        lambda e: e.ledger.hung.append("session.stop"),
    ),
    "a cancel is told twice": (
        "cancel",
        lambda e: e.books.notifications.__setitem__(
            0,
            truth.notification(
                1, "session.cancellation_changed", cancellation_pending=False, cancellation_revision=2
            ),
        ),
    ),
    "a cancel that ended nothing": (
        "answers",
        lambda e: e.ledger.asked.append(
            Asked("agent.cancel", {"session_id": "s"}, "T2.1", "T2.2", {"success": True})
        ),
    ),
    "a stop that stopped nothing": (
        "answers",
        lambda e: e.ledger.asked.append(
            Asked("session.stop", {"session_id": "s"}, "T2.1", "T2.2", {"success": True})
        ),
    ),
    "a prompt to the wrong process": (
        "prompts",
        lambda e: e.books.turns[3].update(execution_id="s.1"),
    ),
    "half a prompt": ("prompts", lambda e: _entry(e, 2).update(turn_id="s.1:1")),
    "a task at work with nobody": ("tasks follow", lambda e: e.books.tasks[0].update(state="IN_PROGRESS")),
    "a gap in the notifications": ("gapless", lambda e: e.books.notifications.pop(4)),
    "a watcher missed something": ("watchers", lambda e: e.heard[0].frames.pop(3)),
    "a watcher heard twice": ("watchers", lambda e: e.heard[0].frames.insert(4, e.heard[0].frames[3])),
    "a watcher heard something else": (
        "watchers",
        lambda e: e.heard[0].frames.__setitem__(3, (4, "task.deleted")),
    ),
    "a broken database": ("database", lambda e: e.books.faults.append("row 3 is missing")),
    "a torn message": ("transcript", _content(2, "chunk 1 ")),
    "a message with a hole": ("transcript", _content(7, "chunk 2 ")),
    "a message is missing": ("transcript", lambda e: e.books.messages["s"].pop(1)),
    "the last message is missing": ("transcript", lambda e: e.books.messages["s"].pop()),
    "messages are swapped": ("transcript", _swapped_in_the_transcript),
    "a tool call without its end": (
        "transcript",
        lambda e: e.books.messages["s"][3]["metadata"].update(status="pending"),
    ),
    "words that no agent said": ("transcript", lambda e: e.agents[1].pieces.clear()),
    "a person's message is not shown": ("transcript", lambda e: e.books.messages["s"].pop(4)),
    "a person's message in another turn": (
        "transcript",
        lambda e: e.books.messages["s"][4].update(turn_id="s.1:1"),
    ),
    "a process of an execution that is over": (
        "gone",
        lambda e: e.living.append(Running(7, "sleep 600", "s.1")),
    ),
    "no process": ("gone", lambda e: e.living.clear()),
    "a process at the end": ("gone", lambda e: e.left.append(Running(7, "sleep 600", "s.1"))),
    "a control group": ("gone", lambda e: e.groups.append("kandev-1")),
    "a journal": ("files", lambda e: e.files.append("agentctl/journals/s.1/meta.json")),
    "a traceback": ("logs", lambda e: e.complaints.append("backend.err: Traceback")),
    "a leak of descriptors": ("descriptors", lambda e: e.descriptors.update(backend=300)),
    "something to sweep": ("nothing to sweep", lambda e: setattr(e, "swept", 1.0)),
    "taken up by itself": (
        "stop",
        lambda e: e.books.notifications.extend(
            truth.notification(17 + n, "session.state_changed", old_state=old, new_state=new)
            for n, (old, new) in enumerate(
                (("WAITING_FOR_INPUT", "CANCELLED"), ("CANCELLED", "STARTING"), ("STARTING", "RUNNING")), 1
            )
        ),
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_planted_lie_is_told_by_its_rule(name: str) -> None:
    rule, lie = LIES[name]
    evidence = truth.evidence()
    lie(evidence)
    told = judge(evidence)
    assert [said for said in told if said.startswith(f"{rule}:")], told


def test_a_jump_over_a_parked_queue_is_lawful() -> None:
    evidence = truth.evidence()
    _reordered(evidence)
    parked = {"auto_run": False, "count": 1}
    evidence.books.notifications[0] = truth.notification(1, "message.queue.status_changed", **parked)
    evidence.heard.clear()
    assert judge(evidence) == []


def test_a_message_that_died_in_the_pipe_of_a_killed_agent_is_lawful() -> None:
    evidence = truth.evidence()
    _entry(evidence, 3)["state"] = "delivered"
    evidence.agents[0].prompts.pop()
    evidence.agents[0].pieces = [p for p in evidence.agents[0].pieces if p.prompt != 2]
    evidence.books.messages["s"].pop(7)
    assert judge(evidence) == []


def test_resumes_are_counted_against_what_was_asked_for() -> None:
    evidence = truth.evidence()
    LIES["taken up by itself"][1](evidence)
    evidence.ledger.asked.append(Asked("session.recover", {"session_id": "s"}, answer={}))
    assert not [said for said in judge(evidence) if "taken up" in said]


def test_an_agents_log_is_read_as_it_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KANDEV_EXECUTION", "s.1")
    log = WireLog(tmp_path)
    text = '{"type": "text", "text": "say tk-1-1-"}'
    log.add("<", b'{"id": 1, "method": "session/load", "params": {"sessionId": "c1"}}')
    log.add(">", _chunk("m0", "from before"))
    log.add(">", b'{"id": 1, "result": {}}')
    log.add("<", f'{{"id": 2, "method": "session/prompt", "params": {{"prompt": [{text}]}}}}'.encode())
    log.add(">", _chunk("m1", "x" * 10_000))
    log.add(">", b"this is not JSON")
    log.add("<", b'{"method": "session/cancel", "params": {}}')
    log.add(">", b'{"id": 2, "result": {"stopReason": "cancelled"}}')
    log.add(">", _chunk("m2", "late"))
    (read,) = read_logs(tmp_path)
    assert (read.execution, read.faults, read.opened, read.loaded) == ("s.1", [], "c1", True)
    assert [(p.tokens, p.stop_reason, p.cancels) for p in read.prompts] == [(("tk-1-1-",), "cancelled", 1)]
    assert [(p.name, len(p.text), p.prompt) for p in read.pieces] == [("m1", 10_000, 0), ("m2", 4, None)]


def _chunk(name: str, text: str) -> bytes:
    content = f'{{"type": "text", "text": "{text}"}}'
    update = f'{{"sessionUpdate": "agent_message_chunk", "messageId": "{name}", "content": {content}}}'
    return f'{{"method": "session/update", "params": {{"update": {update}}}}}'.encode()


def test_an_ask_that_ends_with_its_backend_is_no_complaint(tmp_path: Path) -> None:
    log = tmp_path / "backend.err"
    cut_off = (
        "Traceback (most recent call last):\n  File x\nCancelledError: timeout graceful shutdown exceeded\n"
    )
    log.write_text(f"fine\n{cut_off}")
    assert complaints(log) == []
    log.write_text(f"Traceback (most recent call last):\n  File y\nValueError\n{cut_off}")
    assert len(complaints(log)) == 1

"""What must hold when all is quiet: nothing is owed, lost, doubled, or alive without a reason."""

from __future__ import annotations

from collections import Counter

from kandev.core.effects import Follow, Timer
from kandev.core.session import Launch, Outcome, Session
from kandev.core.task import FINAL
from kandev.core.views import asks_a_person
from tests.simulation.rig import Rig

LATE = "said too late"
"""Text of reports with an old identity: it must never be seen."""


ASKED = (
    "SELECT 1 FROM messages m JOIN sessions s ON s.id = m.session_id "
    "WHERE s.task_id = ? AND m.type = 'clarification_request'"
)


def sessions(rig: Rig) -> list[tuple[str, Session]]:
    """Id and committed value of every session, oldest first."""
    ids = [id for (id,) in rig.rows.execute("SELECT id FROM sessions ORDER BY rowid")]
    return [(id, value) for id in ids if (value := rig.watch.stored(id)) is not None]


def restless(rig: Rig) -> list[str]:
    """Why it is not quiet yet."""
    return [
        f"{id}: {value.launch}, turn {value.turn}, retry {value.retry}"
        for id, value in sessions(rig)
        if value.turn or value.retry or value.launch not in (Launch.ABSENT, Launch.READY)
    ]


def judge(rig: Rig) -> None:
    """All of it. The watcher keeps what is violated."""
    for id, value in sessions(rig):
        _drained(rig, id, value)
        _only_follows(rig, id)
        _transcript(rig, id)
    _processes(rig)
    _prompts(rig)
    _tasks(rig)
    _cards(rig)
    _rows(rig)


def _drained(rig: Rig, id: str, value: Session) -> None:
    promptable = value.outcome in (Outcome.OPEN, Outcome.COMPLETED)
    runs = promptable and value.parked is None and value.auto_run and not asks_a_person(value)
    left = runs and value.queue
    rig.watch.holds(not left, "drained", f"{id} is promptable, not parked, and has {value.queue}")
    asking = [e for e in value.queue if e.asks]
    rig.watch.holds(not asking, "nothing is left", f"{id}: somebody still waits for {asking}")


def _only_follows(rig: Rig, id: str) -> None:
    assert rig.backend is not None
    glance = rig.backend.sessions.glance(id)
    keys = [work.what for work in glance.under_way] if glance else []
    keys = [key for key in keys if not (isinstance(key, Timer) and key.kind in ("idle", "question"))]
    rig.watch.holds(all(isinstance(k, Follow) for k in keys), "nothing is left", f"{id} does {keys}")
    value = glance.record.value if glance else None
    absent = value is not None and value.launch is Launch.ABSENT and not value.questions
    rig.watch.holds(not absent, "nothing is left", f"{id} has an actor and no process")


def _processes(rig: Rig) -> None:
    values = dict(sessions(rig))
    for one in rig.world.living():
        value = values.get(one.spec.session_id)
        named = value and value.launch is Launch.READY and value.execution == one.spec.execution
        rig.watch.holds(named, "gone", f"{one.spec.execution} lives and no session has it")
    for id, value in values.items():
        if value.launch is Launch.READY:
            living = [one.spec.execution for one in rig.world.living(id)]
            rig.watch.holds(living == [value.execution], "gone", f"{id} is ready, {living} live")


def _prompts(rig: Rig) -> None:
    """Each message against what agents got."""
    got = Counter(token for handed in rig.world.handed for token in handed.tokens)
    got.update(rig.watch.answered)
    twice = [token for token, times in got.items() if times > 1]
    rig.watch.holds(not twice, "one dispatch", f"{twice} were handed over more than once")
    rows = rig.rows.execute("SELECT content, state FROM entries").fetchall()
    tokens = Counter(content.split()[1] for content, _ in rows)
    rig.watch.holds(max(tokens.values(), default=1) == 1, "one entry", f"{tokens}")
    for content, state in rows:
        token = content.split()[1]
        if state == "delivered":
            rig.watch.holds(got[token] == 1, "fates are true", f"{token} is delivered, no agent got it")
        elif state in ("queued", "removed", "replaced"):
            rig.watch.holds(not got[token], "fates are true", f"{token} is {state}, and an agent got it")
        elif state != "unknown":
            rig.watch.violated("one fate", f"{token} is {state} when all is quiet")


def _transcript(rig: Rig, id: str) -> None:
    turns = rig.rows.execute("SELECT id, cause FROM turns WHERE session_id = ?", (id,)).fetchall()
    for turn, cause in turns:
        found = rig.rows.execute(
            "SELECT content FROM messages WHERE turn_id = ? AND author_type = 'agent' AND type = 'message' "
            "ORDER BY seq",
            (turn,),
        )
        shown = "".join(content for (content,) in found)
        said = "".join(rig.world.said.get(turn, []))
        right = shown == said if cause == "agent" else said.startswith(shown)
        rig.watch.holds(right, "transcript", f"{turn} ({cause}) said {said!r}, shown is {shown!r}")


def _cards(rig: Rig) -> None:
    """Where a card is follows from its turns: each of them knows the entering in which it began. Those of a
    session that was deleted are gone with it, and nobody can tell any more."""
    query = (
        "SELECT t.entered, t.cause = 'agent' AND t.error IS NULL AND t.stop_reason != 'cancelled' "
        "FROM turns t JOIN sessions s ON s.id = t.session_id WHERE s.task_id = ?"
    )
    cards = "SELECT id, workflow_step_id, entered, owed_enter FROM tasks"
    deleted = not rig.watch.values.keys() <= {id for id, _ in sessions(rig)}
    for id, step, entered, owed in rig.rows.execute(cards).fetchall():
        began = rig.rows.execute(query, (id,)).fetchall()
        here = [bool(completed) for at, completed in began if at == entered]
        before = [bool(completed) for at, completed in began if at == entered - 1]
        right = not any(here) if step == "s2" else not here and (any(before) or not before)
        # A question that a turn leaves open holds its step; what follows it may be no turn at all.
        asked = rig.rows.execute(ASKED, (id,)).fetchone() is not None
        rig.watch.holds(
            right or asked or deleted,
            "cards follow",
            f"{id} is in {step} by entering {entered}, of turns {began}",
        )
        rig.watch.holds(owed is None, "cards follow", f"{id} still owes {owed}")


def _tasks(rig: Rig) -> None:
    for id, state in rig.rows.execute("SELECT id, state FROM tasks").fetchall():
        states = [s for (s,) in rig.rows.execute("SELECT state FROM sessions WHERE task_id = ?", (id,))]
        idle = not {"STARTING", "RUNNING"} & set(states)
        works = state in ("IN_PROGRESS", "SCHEDULING")
        rig.watch.holds(not (idle and states and works), "tasks follow", f"{id} is {state} and has {states}")
        rig.watch.holds(state not in FINAL, "tasks follow", f"{id} is {state}, and nobody said so")


def _rows(rig: Rig) -> None:
    late = rig.rows.execute("SELECT id FROM messages WHERE content LIKE ?", (f"%{LATE}%",)).fetchall()
    rig.watch.holds(not late, "late identities", f"{late} are shown")
    active = rig.rows.execute("SELECT id FROM turns WHERE state = 'active'").fetchall()
    rig.watch.holds(not active, "nothing is left", f"turns {active} are active")
    pending = rig.rows.execute(
        "SELECT id FROM messages WHERE type = 'permission_request' "
        "AND json_extract(metadata, '$.status') = 'pending'"
    ).fetchall()
    rig.watch.holds(not pending, "nothing is left", f"requests {pending} are pending")
    assert rig.backend is not None
    swept = rig.swept + rig.backend.sessions.swept
    rig.watch.holds(not swept, "nothing to sweep", f"the sweep found {swept} sessions")

"""The specification: the three machines of a session and its wire states, as tables.

`decide` refuses to leave them, also in production. `docs/session-states.md` is drawn from them.
"""

from collections.abc import Mapping

from kandev.core.session import Launch, Outcome, Phase, Session
from kandev.core.views import wire_state

LAUNCH_MOVES: Mapping[Launch, frozenset[Launch]] = {
    Launch.ABSENT: frozenset({Launch.STARTING}),
    Launch.STARTING: frozenset({Launch.READY, Launch.CLOSING}),
    Launch.READY: frozenset({Launch.CLOSING, Launch.DOZING}),
    Launch.DOZING: frozenset({Launch.READY, Launch.CLOSING}),
    Launch.CLOSING: frozenset({Launch.ABSENT, Launch.STARTING, Launch.LOST}),
    Launch.LOST: frozenset({Launch.ABSENT, Launch.STARTING}),
}
"""CLOSING and LOST reach STARTING in one decision: `Gone` and the start of what waited for it."""

TURN_MOVES: Mapping[Phase, frozenset[Phase]] = {
    Phase.WAITING: frozenset({Phase.DISPATCHING, Phase.RUNNING}),
    Phase.DISPATCHING: frozenset({Phase.RUNNING, Phase.CANCELLING, Phase.WAITING}),
    Phase.RUNNING: frozenset({Phase.CANCELLING, Phase.WAITING}),
    Phase.CANCELLING: frozenset({Phase.RUNNING, Phase.DISPATCHING, Phase.WAITING}),
}
"""CANCELLING goes back when the cancel genuinely failed."""

OUTCOME_MOVES: Mapping[Outcome, frozenset[Outcome]] = {
    Outcome.OPEN: frozenset({Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED}),
    Outcome.COMPLETED: frozenset({Outcome.OPEN}),
    Outcome.FAILED: frozenset({Outcome.OPEN}),
    Outcome.CANCELLED: frozenset({Outcome.OPEN}),
}
"""Nothing but a resume, or (COMPLETED) a new message, leaves a terminal outcome."""

OVER = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
WIRE_MOVES: Mapping[str, frozenset[str]] = {
    "CREATED": frozenset({"STARTING"}) | OVER,
    "STARTING": frozenset({"RUNNING", "WAITING_FOR_INPUT"}) | OVER,
    "RUNNING": frozenset({"WAITING_FOR_INPUT", "STARTING"}) | OVER,
    "WAITING_FOR_INPUT": frozenset({"RUNNING", "STARTING"}) | OVER,
    "COMPLETED": frozenset({"RUNNING", "STARTING"}),
    "FAILED": frozenset({"STARTING"}),
    "CANCELLED": frozenset({"STARTING"}),
}


class IllegalMove(Exception):
    """A bug in the rules. The actor dies of it, and only this actor."""


def check(before: Session, after: Session) -> None:
    """Raises IllegalMove when a machine left its table."""
    if before.launch is not after.launch and after.launch not in LAUNCH_MOVES[before.launch]:
        raise IllegalMove(f"launch {before.launch} -> {after.launch}")
    if before.outcome is not after.outcome and after.outcome not in OUTCOME_MOVES[before.outcome]:
        raise IllegalMove(f"outcome {before.outcome} -> {after.outcome}")
    _check_turn(before, after)
    old, new = wire_state(before), wire_state(after)
    if old != new and new not in WIRE_MOVES[old]:
        raise IllegalMove(f"session {old} -> {new}")
    if after.turn and after.launch in (Launch.ABSENT, Launch.STARTING, Launch.DOZING):
        raise IllegalMove("a turn without a process")


def _check_turn(before: Session, after: Session) -> None:
    """One decision may end a turn and begin the next: then both went through WAITING."""
    same = before.turn is not None and after.turn is not None and before.turn.ref == after.turn.ref
    moves = (
        [(before.phase, after.phase)]
        if same
        else [(before.phase, Phase.WAITING), (Phase.WAITING, after.phase)]
    )
    for old, new in moves:
        if old is not new and new not in TURN_MOVES[old]:
            raise IllegalMove(f"turn {old} -> {new}")

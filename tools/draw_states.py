"""Draws docs/session-states.md from the tables in `kandev.core.machines`.

`python tools/draw_states.py` writes the page; with `--check` it only says whether the page is in step, and
exits 1 when it is not. Not here: the tables themselves, and why they are as they are (`docs/decisions`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))

from kandev.core.machines import (  # noqa: E402 - a program that runs by its path finds the package first
    LAUNCH_MOVES,
    OUTCOME_MOVES,
    TURN_MOVES,
    WIRE_MOVES,
)

PAGE = ROOT / "docs" / "session-states.md"

HEAD = """# The states of a session

This page is drawn from the tables in `src/kandev/core/machines.py` by `python tools/draw_states.py`; a
test fails when the two differ. The rules refuse to leave these tables, in production too: a move that is
not drawn here is a bug, and ends the session's actor instead of being stored.

A session is not one machine but three small ones side by side, because wanted and observed are different
things: whether a process is there, what it works on, and whether the session is over can change
independently.
"""

LAUNCH = """## Launch: is there a process?

What was observed of the agent's process. `closing` means stopped, dead, asleep or given up: it ends with
the proof that nothing of the process is left, or with the names of what could not be ended, and only then
may another one start. `lost` means that this
proof did not come in time: it is still tried, and nothing is started beside it. `dozing`: it had nothing
to do for long, and agentctl was asked to end it if nothing goes on after all. `closing` and `lost`
reach `starting` in one step when a message, or a resume, was waiting for that proof.
"""

TURN = """## Turn: what does it work on?

`dispatching` lasts from the commit that claims the entries until the agent is known to have the prompt.
`cancelling` records our intent to end the turn; it goes back to `running` or `dispatching` when the
cancel was refused, and the recorded intent, not the agent's word, decides what the end means. A turn
that the agent begins by itself starts as `running`. One step may end a turn and begin the next one: both
then went through `waiting`.
"""

OUTCOME = """## Outcome: is it over?

Nothing but an explicit resume (for `completed` also a new message) leads back to `open`. While the
outcome is not `open` no prompt is handed over and no process is started.
"""

WIRE = """## What clients see

`session.state` is a projection of the three machines by one function (`kandev.core.views.wire_state`),
never an input to a rule. The first line that fits decides:

| The value | Shown as |
| --- | --- |
| the outcome is not `open` | `COMPLETED`, `FAILED`, `CANCELLED` |
| a turn is under way (and no resume waits for its end) | `RUNNING` |
| the process is `starting`; or `closing`, and a message or a resume waits for the next one | `STARTING` |
| there was an execution before | `WAITING_FOR_INPUT` |
| otherwise | `CREATED` |

An open permission request leaves the session `RUNNING`, with `waiting_for: "permission"`.
"""


State = TypeVar("State", bound=str)


def diagram(moves: Mapping[State, Iterable[State]], first: str) -> str:
    """A mermaid state diagram of one table, in the table's order."""
    order = list(moves)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    for old, targets in moves.items():
        lines += [f"    {old} --> {new}" for new in sorted(targets, key=order.index)]
    return "\n".join([*lines, "```", ""])


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    parts += [LAUNCH, diagram(LAUNCH_MOVES, "absent"), TURN, diagram(TURN_MOVES, "waiting")]
    parts += [OUTCOME, diagram(OUTCOME_MOVES, "open"), WIRE, diagram(WIRE_MOVES, "CREATED")]
    return "\n".join(parts)


def in_step(path: Path = PAGE) -> bool:
    """Whether the stored page is what the tables say."""
    return path.is_file() and path.read_text(encoding="utf-8") == page()


def main(arguments: list[str]) -> int:
    """Write the page, or check it; 2 for an argument that is not known."""
    if arguments not in ([], ["--check"]):
        print(f"Unknown arguments {' '.join(arguments)}; there is only --check.", file=sys.stderr)
        return 2
    if arguments:
        if in_step():
            return 0
        name = PAGE.relative_to(ROOT)
        print(f"{name} is not in step with the tables; run python tools/draw_states.py.", file=sys.stderr)
        return 1
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

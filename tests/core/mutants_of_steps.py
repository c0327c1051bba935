"""Planted bugs of boards: when a card moves, what entering a step owes, and what follows a turn's end."""

from tests.core.mutants import Mutant

MUTANTS_OF_STEPS = (
    Mutant(
        "the agent's own interruption counts as completed",
        "workflow",
        ' and end.stop_reason != "cancelled"',
        "",
    ),
    Mutant("a turn that failed counts as completed", "workflow", "end.error is None and ", ""),
    Mutant("an interrupted turn runs the step", "workflow", 'end.cause == "agent"', 'end.cause != "user"'),
    Mutant("two turns move a card twice", "workflow", "entered != task.entered or ", ""),
    Mutant("an open question holds nothing", "workflow", "if held or entered", "if entered"),
    Mutant(
        "a pending move stays",
        "workflow",
        "replace(now.task, pending_move=None))\n    target",
        "now.task)\n    target",
    ),
    Mutant(
        "a cancel starts an agent",
        "workflow",
        "task.pending_move, enters=not cancelled",
        "task.pending_move, enters=True",
    ),
    Mutant("a cancel runs the step", "workflow", "if cancelled and not action.on_cancel", "if False"),
    Mutant("a turn that begins starts another", "workflow", "target, enters=False", "target, enters=True"),
    Mutant("a step's own prompt leaves the step", "workflow", "if by_step or _left_alone", "if _left_alone"),
    Mutant("entering is not counted", "workflow", "now.task.entered + 1", "now.task.entered"),
    Mutant("a tool's move is a person's word", "workflow", "    if by_person:\n", "    if True:\n"),
    Mutant("steps start each other for ever", "workflow", "task.automatic >= AUTOMATIC_PROMPTS", "False"),
    Mutant("what was owed to an older step counts", "workflow", " or due.entered != entered", ""),
    Mutant("a final step owes nothing", "workflow", "completes=to.final", "completes=False"),
    Mutant(
        "archived cards move",
        "workflow",
        "if task.archived_at is not None or not (cancelled",
        "if not (cancelled",
    ),
    Mutant("a step may name what is not there", "step_events", "or len(found) != 1", ""),
    Mutant("a step may move to itself", "step_events", "if target.id == step.id", "if False"),
    Mutant("a step's prompt waits behind the queue", "following", "else (entry.id,)", "else ()"),
    Mutant("a step's prompt runs in a queue that is off", "following", "s.jumps or held(s)", "s.jumps"),
    Mutant("a final step begins what waits", "following", "COMPLETED if then.finishes is not None else ", ""),
)

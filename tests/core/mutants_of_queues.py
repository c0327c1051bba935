"""Planted bugs in what happens to messages: interrupts, arranged queues, questions. See `mutants`."""

from tests.core.mutants import Mutant

MUTANTS_OF_QUEUES = (
    Mutant(
        "an interrupt ends another turn",
        "sending",
        "return s.turn.ref == given.interrupt.noted and",
        "return",
    ),
    Mutant(
        "an interrupt outranks a person's cancel",
        "sending",
        'noted and s.turn.ending != "user"',
        "noted",
    ),
    Mutant("an interrupt ends no turn", "sending", "s, closed = ends_silently(s)", "closed = ()"),
    Mutant(
        "an interrupt joins whatever launch comes",
        "sending",
        "return coming is None or coming == given.interrupt.noted",
        "return True",
    ),
    Mutant(
        "an interrupt leaves what its launch would begin with",
        "sending",
        "return (*(e.id for e in batch(s) if e.id not in s.jumps), *s.jumps)",
        "return s.jumps",
    ),
    Mutant(
        "an interrupt cancels before the prompt arrived",
        "views",
        'and (turn.taken or turn.ending != "interrupt")',
        "",
    ),
    Mutant(
        "a silent end counts as the agent's",
        "reports",
        'if turn.ending == "interrupt":\n        # What',
        "if False:\n        # What",
    ),
    Mutant(
        "a person's cancel keeps an interrupt's promise",
        "asks",
        "s = replace(s, jumps=())\n    assert s.turn is not None",
        "assert s.turn is not None",
    ),
    Mutant(
        "a late end after an interrupt's escalation counts",
        "decide",
        "turn.ending in CLAIMED:",
        'turn.ending == "user":',
    ),
    Mutant(
        "the switch holds nothing",
        "views",
        "return s.parked or (None if s.auto_run",
        "return s.parked or (None if True",
    ),
    Mutant(
        "a message moves the switch",
        "sending",
        "parked=parked,\n        outcome=s.outcome if",
        "parked=parked,\n        auto_run=True,\n        outcome=s.outcome if",
    ),
    Mutant(
        "a session whose queue is held says that it starts",
        "sending",
        " and (jumps or held(s) is None)",
        "",
    ),
    Mutant(
        "send now leaves the queue parked",
        "sending",
        "auto_run=True,\n        parked=None,",
        "auto_run=True,",
    ),
    Mutant("an automation's entries pile up", "sending", "if new.coalesce is None:", "if True:"),
    Mutant(
        "a replaced entry has no fate",
        "sending",
        'told = (Fate(older.id, "replaced", by=entry.id), *',
        "told = (*",
    ),
    Mutant(
        "a reordered entry returns to its old place",
        "queueing",
        "replace(by_id[id], place=place)",
        "by_id[id]",
    ),
    Mutant(
        "an order may leave entries out",
        "queueing",
        "if sorted(given.entries) != sorted(by_id):",
        "if not set(given.entries) <= set(by_id):",
    ),
    Mutant(
        "a queue runs beside an open question",
        "views",
        "if held(s) or s.retry or asks_a_person(s) else",
        "if held(s) or s.retry else",
    ),
    Mutant(
        "an answer that nobody took vanishes",
        "questions",
        "return _next_prompt(s, question, entry)",
        'return without, replies(entry.asks, "sent")',
    ),
    Mutant(
        "a late answer leaves the stuck turn",
        "questions",
        "        return ends_silently(s)\n    return s, ()",
        "    return s, ()",
    ),
    Mutant(
        "a late answer ends whatever turn runs",
        "questions",
        "if s.turn is not None and s.turn.ref == question.turn:",
        "if s.turn is not None:",
    ),
    Mutant(
        "a question may be answered twice",
        "questions",
        "if found is None or found.answer is not None:",
        "if found is None:",
    ),
    Mutant(
        "a question never expires",
        "views",
        'due |= {Timer("question", q.id) for q in s.questions if q.answer is None}',
        "pass",
    ),
    Mutant(
        "a stop leaves a question open",
        "asks",
        "s, unasked = dropped(s, given.by)\n    over",
        "unasked = ()\n    over",
    ),
    Mutant(
        "an agent is introduced again and again", "reports", "introduced=True, spoken=True", "spoken=True"
    ),
    Mutant(
        "a new conversation is not introduced",
        "reports",
        "introduced=s.introduced and given.memory is True",
        "introduced=s.introduced",
    ),
)

"""Planted bugs: small wrong changes of the rules, each of which the stories or the hostile world must notice.

`planted(mutant)` puts one into the loaded modules and takes it out again. The words of the value, inputs and
effects are never touched, so that tests and rules go on speaking of the same classes.
"""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

MODULES = (
    "views",
    "steps",
    "machines",
    "sending",
    "queueing",
    "questions",
    "asks",
    "reports",
    "decide",
    "task",
    "step_events",
    "workflow",
    "following",
)
"""In the order in which they import each other."""


@dataclass(frozen=True)
class Mutant:
    """`old` stands exactly once in `module`; `new` replaces it."""

    name: str
    module: str
    old: str
    new: str


MUTANTS = (
    Mutant("a second turn beside the first", "decide", "if s.turn or s.outcome", "if s.outcome"),
    Mutant(
        "no staleness check of reports",
        "decide",
        "s.turn is None or s.turn.ref != turn or",
        "s.turn is None or",
    ),
    Mutant("frames are replayed", "decide", "given.seq <= s.seen", "given.seq < s.seen"),
    Mutant("frames before the process is up", "decide", " or early:", ":"),
    Mutant("deadlines of the past count", "decide", "return timer not in timers(s)", "return False"),
    Mutant(
        "a late end after an escalation counts",
        "decide",
        "return True  # we claimed",
        "return False  # we claimed",
    ),
    Mutant("a late failure of an older attempt counts", "decide", "attempt != turn.attempt or ", ""),
    Mutant("a refusal after acceptance counts", "decide", "return turn.taken", "return False"),
    Mutant("an own turn beside a prompt", "decide", "idle = s.turn is None and up", "idle = up"),
    Mutant(
        "generation is not burnt", "decide", "generation=s.generation + 1", "generation=max(s.generation, 1)"
    ),
    Mutant(
        "revision does not grow",
        "decide",
        "cancellations=s.cancellations + 1",
        "cancellations=s.cancellations",
    ),
    Mutant("nobody hears queued", "decide", "s, answered = _answer_unpromised(s)", "answered = ()"),
    Mutant("parking is for ever", "decide", "parked = s.parked if s.queue else None", "parked = s.parked"),
    Mutant(
        "a retry without an entry",
        "decide",
        "retry=s.retry and bool(s.queue) and parked is None",
        "retry=s.retry",
    ),
    Mutant("last in, first out", "views", "else s.queue[:1]\n", "else s.queue[-1:]\n"),
    Mutant("a parked queue runs", "views", "() if held(s) or s.retry", "() if s.retry"),
    Mutant("no back-off after a refusal", "views", "() if held(s) or s.retry", "() if held(s)"),
    Mutant(
        "a first prompt without its first message",
        "views",
        "s.queue[:1] if opens and",
        "s.queue[:0] if opens and",
    ),
    Mutant("no deadline for a cancel", "views", 'due.add(Timer("end", _end(s, s.turn)))', "pass"),
    Mutant("an agent that obeyed is replaced", "views", "if turn.heard else", "if False else"),
    Mutant("long last words are a lost process", "views", "if s.looked else", "if False else"),
    Mutant("no deadline for acceptance", "views", 'due.add(Timer("accept", s.turn.ref))', "pass"),
    Mutant(
        "no deadline for a teardown",
        "views",
        'due.add(Timer("close", (s.execution, s.seen) if s.looked else s.execution))',
        "pass",
    ),
    Mutant(
        "the fate of an open prompt is not asked for",
        "views",
        "unsettled = s.turn.ref if s.turn and not s.turn.taken else None",
        "unsettled = None",
    ),
    Mutant(
        "an accepted prompt is handed over again",
        "views",
        "if not s.turn.taken:\n            due.append",
        "if True:\n            due.append",
    ),
    Mutant(
        "a process that is not proven gone is forgotten",
        "reports",
        "launch=Launch.LOST,",
        "launch=Launch.ABSENT,",
    ),
    Mutant(
        "a person's cancel parks nothing",
        "reports",
        "parked = CANCELLED_BY_A_PERSON if s.queue and not s.jumps else s.parked",
        "parked = s.parked",
    ),
    Mutant(
        "the agent's word decides",
        "reports",
        '    if turn.ending == "user":\n        by',
        '    if turn.ending == "user" and stop_reason == "cancelled":\n        by',
    ),
    Mutant(
        "a failed turn burns the queue",
        "reports",
        "if error is not None and s.queue and not s.jumps:",
        "if False:",
    ),
    Mutant("an unknown dispatch is sent again", "reports", "elif was_taken is None:", "elif False:"),
    Mutant(
        "a refused entry goes to the end",
        "steps",
        "in_places((*s.queue, *s.turn.entries))",
        "(*s.queue, *s.turn.entries)",
    ),
    Mutant("a refused entry is lost", "steps", "in_places((*s.queue, *s.turn.entries))", "s.queue"),
    Mutant("refusals without end", "reports", "if refusals <= RETRIES:", "if True:"),
    Mutant(
        "the first failed launch is no failure",
        "reports",
        "outcome=Outcome.FAILED if first else s.outcome",
        "outcome=s.outcome",
    ),
    Mutant("a relaunch that fails fails the session", "reports", "first = s.generation == 0", "first = True"),
    Mutant(
        "a failed cancel keeps its jumps",
        "reports",
        "ended_by=None, asks=()), jumps=())",
        "ended_by=None, asks=()))",
    ),
    Mutant(
        "acceptance is told twice",
        "reports",
        "if turn.taken:\n        return s, ()",
        "if False:\n        return s, ()",
    ),
    Mutant("output after a stop is shown", "reports", "shown = () if _stopped(s) else", "shown ="),
    Mutant(
        "a repeated request forgets the decision",
        "reports",
        "if any(p.request == request for p in s.permissions):",
        "if False:",
    ),
    Mutant(
        "what comes back to a completed session runs into nothing",
        "reports",
        "if s.outcome is Outcome.COMPLETED and s.queue:",
        "if False:",
    ),
    Mutant(
        "a stopped turn parks what was resumed",
        "reports",
        ' or turn.ending == "stop":\n        if',
        ":\n        if",
    ),
    Mutant(
        "a stop with a retry is not running",
        "asks",
        "stirs = s.launch is not Launch.ABSENT or s.retry",
        "stirs = s.launch is not Launch.ABSENT",
    ),
    Mutant(
        "a stop leaves the process",
        "asks",
        "launch=s.launch if s.launch in (Launch.ABSENT, Launch.LOST) else Launch.CLOSING",
        "launch=s.launch",
    ),
    Mutant(
        "a stop forgets a prompt on its way",
        "asks",
        'turn = replace(turn, asks=(), ending="stop", ended_by=None)',
        "turn = None",
    ),
    Mutant(
        "a stop overwrites what is over",
        "asks",
        "if s.outcome is not Outcome.OPEN or not (stirs or given.idle_too):",
        "if not (stirs or given.idle_too):",
    ),
    Mutant("a stop parks", "asks", "if given.outcome is Outcome.COMPLETED and s.queue:", "if s.queue:"),
    Mutant("a resume starts beside the old process", "asks", "if s.launch is Launch.LOST:", "if False:"),
    Mutant(
        "a resume releases what is parked",
        "asks",
        "resuming=True, refusals=0",
        "resuming=True, parked=None, refusals=0",
    ),
    Mutant(
        "a peer releases a parked queue",
        "sending",
        'releases = entry.by == "person" and',
        "releases =",
    ),
    Mutant(
        "a peer overtakes",
        "sending",
        'return given.entry.by == "person" and (',
        "return (",
    ),
    Mutant(
        "a message to what is over",
        "sending",
        "known)\n    if s.outcome in LEFT_BY_RESUME_ONLY:",
        "known)\n    if False:",
    ),
    Mutant("the queue has no limit", "sending", "if given.limit and size >= given.limit and", "if False and"),
    Mutant(
        "the same entry twice",
        "sending",
        "(*s.queue, *in_turn(s)) if e.id == given.entry.id), None):",
        "(*s.queue, *in_turn(s)) if e.id == given.entry.id), None) and False:",
    ),
    Mutant(
        "a removed entry keeps its promise",
        "queueing",
        "jumps=tuple(j for j in s.jumps if j not in gone)",
        "jumps=s.jumps",
    ),
    Mutant(
        "a claimed entry can be removed",
        "steps",
        "next((e for e in s.queue if e.id == entry), None)",
        "next((e for e in (*s.queue, *in_turn(s)) if e.id == entry), None)",
    ),
    Mutant("an agent sleeps beside its turn", "views", "READY and s.turn is None and", "READY and"),
    Mutant(
        "an agent sleeps beside a retry",
        "views",
        "is not None and not s.retry and not batch",
        "is not None and not batch",
    ),
    Mutant(
        "an agent without a way back sleeps",
        "views",
        "return quiet and s.conversation is not None and",
        "return quiet and",
    ),
    Mutant(
        "what an agent says does not put off its sleep", "views", 'f"{s.execution}:{s.seen}"', "s.execution"
    ),
    Mutant("who dozes does not hear its own agent", "decide", "up = reports.awake(s)", "up = s"),
    Mutant("no deadline for falling asleep", "views", 'due.add(Timer("doze", s.execution))', "pass"),
    Mutant(
        "a resume that met a dozing agent never ends",
        "reports",
        "launch=Launch.READY, resuming=False)",
        "launch=Launch.READY)",
    ),
    Mutant("sleep is told as a fault", "reports", "None if why == FELL_ASLEEP else why", "why"),
    Mutant(
        "a dozing session takes messages for nobody",
        "views",
        "in (Launch.CLOSING, Launch.DOZING) and",
        "in (Launch.CLOSING,) and",
    ),
    Mutant(
        "what is said before the prompt arrives is lost",
        "decide",
        "return replace(s, aside=turn), report",
        "return s, report",
    ),
    Mutant("a cancel of nothing parks", "asks", "if not (batch(s) or s.retry):", "if not s.queue:"),
    Mutant("a cancel leaves permissions open", "steps", "replace(p, answer=p.answer or Answer())", "p"),
    Mutant(
        "a decision is taken twice",
        "asks",
        "{p.request for p in s.permissions if p.answer is None}",
        "{p.request for p in s.permissions}",
    ),
    Mutant(
        "review beside work",
        "task",
        "if kept or any(state in WORKING_SESSIONS for state in siblings):",
        "if kept:",
    ),
    Mutant(
        "work that failed to start stays in progress",
        "task",
        'if task.state == "IN_PROGRESS":  #',
        "if False:  #",
    ),
    Mutant(
        "a failed launch leaves the card scheduled",
        "task",
        'state=task.state_before or "TODO"',
        "state=task.state",
    ),
)


def loaded(name: str) -> ModuleType:
    return importlib.import_module(f"kandev.core.{name}")


def _source(module: ModuleType) -> str:
    assert module.__file__ is not None
    return Path(module.__file__).read_text()


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The rules with this bug in them; afterwards exactly as they were."""
    modules = {name: loaded(name) for name in MODULES}
    healthy = {name: dict(vars(module)) for name, module in modules.items()}
    source = _source(modules[mutant.module])
    assert source.count(mutant.old) == 1, (
        f"{mutant.name}: stands {source.count(mutant.old)} times in {mutant.module}"
    )
    try:
        for name in MODULES[MODULES.index(mutant.module) :]:
            text = source.replace(mutant.old, mutant.new) if name == mutant.module else _source(modules[name])
            exec(compile(text, str(modules[name].__file__), "exec"), vars(modules[name]))
        yield
    finally:
        for name, module in modules.items():
            vars(module).clear()
            vars(module).update(healthy[name])

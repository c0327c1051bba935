"""What happens in a round, drawn from its seed: messages and other deeds of people, and what is killed when.

Pure. The plan is the same for the same seed; what real processes make of it is not.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.torture import points

SLOTS: Final = 5
"""Sessions at once. Slots 0 and 1 share a task, so do 2 and 3."""
TASK_OF_SLOT: Final = (0, 0, 1, 1, 2)

Draw = Callable[[random.Random], str]

UPDATES: Final[tuple[str, ...]] = (
    '{"sessionUpdate": "plan", "entries": [{"content": "first", "priority": "high", "status": "pending"}]}',
    '{"sessionUpdate": "usage_update", "used": 5, "size": 100}',
    '{"sessionUpdate": "current_mode_update", "currentModeId": "plan"}',
    '{"sessionUpdate": "of_no_known_kind", "data": [1, 2]}',
)

LINES: Final[dict[str, tuple[int, Draw]]] = {
    "say": (10, lambda r: f"say word {r.randrange(10**6)} é☂"),
    "think": (4, lambda r: f"think about {r.randrange(10**6)}"),
    "echo": (2, lambda r: f"this is no command {r.randrange(10**6)}"),
    "stream": (10, lambda r: f"stream {r.choice((3, 10, 60))} {r.choice((0, 1, 5, 20))}"),
    "sleep": (6, lambda r: f"sleep {r.choice(('0.05', '0.2', '0.5'))}"),
    "sleep long": (2, lambda r: "sleep 600"),
    "deaf": (3, lambda r: f"deaf {r.choice(('0.2', '1', '60'))}"),
    "late": (2, lambda r: f"late {r.choice(('0.1', '0.4', '5'))}"),
    "lie": (3, lambda r: f"lie {r.choice(('0.3', '60'))}"),
    "tool": (5, lambda r: f"tool build-{r.randrange(10**6)} {r.choice(('0', '0.1', '0.4'))}"),
    "spawn": (3, lambda r: "spawn 600"),
    "ask": (3, lambda r: f"ask may-i-{r.randrange(10**6)}"),
    "mcp": (1, lambda r: 'mcp list_tasks_kandev {"limit": 3}'),
    "exit": (1, lambda r: f"exit {r.randrange(4)}"),
    "crash": (1, lambda r: "crash"),
    "garbage": (3, lambda r: f"garbage {r.randrange(1, 6)}"),
    "flood": (2, lambda r: f"flood {r.choice((5000, 70_000, 400_000))}"),
    "silent": (1, lambda r: "silent"),
    "lose": (2, lambda r: f"lose {r.randrange(1, 4)}"),
    "echo-after": (3, lambda r: f"echo-after {r.randrange(1, 5)}"),
    "wake": (2, lambda r: f"wake 0.{r.randrange(1, 4)} by-itself-{r.randrange(10**6)}"),
    "stubborn": (2, lambda r: "stubborn"),
    "fail": (1, lambda r: "fail -32000 overloaded"),
    "login": (1, lambda r: "login"),
    "recall": (1, lambda r: "recall"),
    "update": (4, lambda r: f"update {r.choice(UPDATES)}"),
}
"""Every line of the mock agent, with its weight."""

DEEDS: Final[dict[str, int]] = {
    "message": 40,
    "keyed": 12,
    "again": 8,
    "side by side": 4,
    "vanish": 4,
    "cancel": 16,
    "answer": 8,
    "remove": 6,
    "stop": 4,
    "recover": 8,
    "fresh": 3,
    "delete": 1,
    "look": 4,
    "rejoin": 3,
    "fresh elsewhere": 2,
}
"""What a person does. `vanish`: a request whose client goes away; `rejoin`: a watcher reconnects; `fresh
elsewhere`: a new session of another agent."""
TASK_DEEDS: Final[dict[str, int]] = {"stop task": 5, "archive": 2, "delete task": 1, "wait": 4}

FAULTS: Final[dict[str, int]] = {
    "kill backend": 12,
    "kill agentctl": 8,
    "kill agent": 8,
    "kill agents": 3,
    "kill backend and agentctl": 4,
    "kill backend and agents": 3,
    "kill agentctl and agent": 3,
    "kill all": 2,
    "kill backend while it starts": 5,
    "kill agentctl while it starts": 4,
    "terminate backend": 5,
    "terminate agentctl": 3,
    "pause backend": 4,
    "pause agentctl": 4,
    "pause agent": 3,
    "kill a paused backend": 2,
    "second backend": 2,
    "kill backend at a moment": 10,
    "kill agentctl at a moment": 6,
    "kill agents at a moment": 5,
    "kill backend and agentctl at a moment": 4,
    "terminate backend at a moment": 3,
}
PAUSES_S: Final = (0.0, 0.0, 0.01, 0.03, 0.1, 0.25, 0.5)
AGENTS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("slow 0.6", {}),
    ("garbage", {}),
    ("noload", {}),
    ("exit 3", {}),
    ("bare", {}),
    ("", {"auto_approve": True}),
    ("", {"cancel_acknowledge_s": 2}),
    ("slow 0.2,noload", {"cancel_acknowledge_s": 0.2}),
)
"""`MOCK_AGENT_START` and further members of the profiles of other agents."""
MOMENTS: Final = (
    "session.turn.started",
    "session.turn.completed",
    "session.state_changed",
    "session.cancellation_changed",
    "session.agentctl_ready",
    "session.message.added",
    "session.message.updated",
    "session.permission_requested",
    "message.queue.status_changed",
)
"""When a watcher hears of it, or soon after: what comes behind the commit is cut off then."""
ENDINGS: Final = ("stop sessions", "terminate", "kill and terminate", "stop tasks", "delete tasks")


@dataclass(frozen=True)
class Deed:
    """Something that is done `pause_s` after what came before it. `number`: a choice, any size."""

    kind: str
    pause_s: float
    script: str = ""
    number: int = 0


@dataclass(frozen=True)
class Plan:
    """A round. One tuple of deeds per slot; what is done to tasks; what is killed; how it ends."""

    seed: int
    slots: tuple[tuple[Deed, ...], ...]
    tasks: tuple[Deed, ...]
    faults: tuple[Deed, ...]
    points: tuple[str, ...]
    """Where programs die or stand still by themselves."""
    releases: bool
    """When the load is over, each parked queue is released by one more message."""
    ending: str
    tight: bool = False
    """With deadlines that run out under load."""
    sleepy: bool = False
    """Idle agents are put to sleep at once."""
    patience_s: float = 0.8
    """So long turns may end by themselves, when the load is over, before they are cancelled."""

    def __str__(self) -> str:
        words = "tight, " * self.tight + "sleepy, " * self.sleepy + "releases, " * self.releases
        lines = [f"seed {self.seed}, {words}ending: {self.ending}"]
        named = [(f"slot {number}", deeds) for number, deeds in enumerate(self.slots)]
        for name, deeds in (*named, ("tasks", self.tasks), ("faults", self.faults)):
            lines += [f"{name}:", *(f"  +{d.pause_s:.2f} s {d.kind} {d.script!r} {d.number}" for d in deeds)]
        return "\n".join((*lines, "points:", *(f"  {point}" for point in self.points)))


@dataclass(frozen=True)
class Size:
    """How much happens in a round."""

    deeds: int = 14
    task_deeds: int = 2
    faults: int = 7


def make(seed: int, size: Size | None = None) -> Plan:
    """The plan of this seed."""
    size = size or Size()
    rng = random.Random(f"torture {seed}")
    quiet = rng.random() < 0.1  # now and then nothing is killed: then every transcript must be whole
    return Plan(
        seed,
        tuple(tuple(_deed(rng, DEEDS) for _ in range(size.deeds)) for _ in range(SLOTS)),
        tuple(_task_deed(rng) for _ in range(size.task_deeds)),
        () if quiet else tuple(_fault(rng) for _ in range(rng.randint(1, size.faults))),
        () if quiet or rng.random() < 0.2 else tuple(points.draw(rng) for _ in range(rng.randint(1, 6))),
        rng.random() < 0.6,
        rng.choice(ENDINGS),
        tight=rng.random() < 0.3,
        sleepy=rng.random() < 0.2,
    )


def script(rng: random.Random) -> str:
    """Lines of one message, without its token."""
    names, weights = list(LINES), [weight for weight, _ in LINES.values()]
    return "\n".join(LINES[name][1](rng) for name in rng.choices(names, weights, k=rng.randint(0, 4)))


def _deed(rng: random.Random, kinds: dict[str, int]) -> Deed:
    kind = rng.choices(list(kinds), list(kinds.values()))[0]
    return Deed(kind, rng.choice(PAUSES_S), script(rng), rng.randrange(10**6))


def _task_deed(rng: random.Random) -> Deed:
    kind = rng.choices(list(TASK_DEEDS), list(TASK_DEEDS.values()))[0]
    return Deed(kind, rng.uniform(0.2, 2.5), "", rng.randrange(10**6))


def _fault(rng: random.Random) -> Deed:
    kind = rng.choices(list(FAULTS), list(FAULTS.values()))[0]
    return Deed(kind, rng.choice((0.0, 0.1, 0.3, 0.7, 1.2)) * rng.uniform(0.5, 1.5), "", rng.randrange(10**6))

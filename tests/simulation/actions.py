"""What happens in a schedule: small steps drawn from a seed. Without any of them it is a schedule still."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

PAUSES_S: Final = (0.0, 0.0, 0.0, 0.01, 0.1, 0.5, 1.0, 3.0, 6.0, 20.0)
SCRIPTS: Final = (
    "",
    "",
    "stream 3 200",
    "sleep 2",
    "sleep 30",
    "deaf 7",
    "deaf 90",
    "late 1",
    "late 30",
    "lie 8",
    "silent",
    "ask remove it",
    "ask remove it\nsleep 5",
    "tool build 2",
    "exit 3",
    "crash",
    "lose 2\nsleep 30",
    "echo-after 2",
    "wake 3 by myself",
    "wake 8 by myself\nsleep 2",
    "wake 4 just as it dozes",
    "spawn 30",
    "fail -32000 overloaded",
)
"""What an agent does with a message: obeys, is late, deaf or silent, lies, asks, dies, begins by itself."""
WEIGHTS: Final = {
    "message": 24,
    "again": 3,
    "launch": 5,
    "cancel": 12,
    "stop": 5,
    "stop task": 1,
    "resume": 6,
    "answer": 5,
    "remove": 3,
    "peer": 6,
    "interrupt": 12,
    "send now": 4,
    "auto run": 4,
    "reorder": 3,
    "clear": 1,
    "automation": 5,
    "edit": 2,
    "drain": 3,
    "ask a person": 5,
    "respond": 6,
    "delete": 3,
    "wait": 4,
    "go away": 2,
    "late report": 4,
    "agent dies": 3,
    "agentctl dies": 2,
    "kill": 4,
    "store fault": 6,
    "wire fault": 8,
    "network down": 2,
    "cancel refused": 2,
    "prompt refused": 2,
    "launches fail": 2,
    "slow agent": 2,
}
KINDS: Final = tuple(WEIGHTS)
CALLS: Final = (
    "start",
    "prompt",
    "prompt",
    "dispatched",
    "cancel",
    "answer_permission",
    "end",
    "put_to_sleep",
    "put_to_sleep",
    "forget",
    "follow",
    "frame",
    "frame",
)
POINTS: Final = ("write", "answer", "read")


@dataclass(frozen=True)
class Action:
    """`what` after `pause` seconds; `which` picks among what is there, `number` names a message."""

    pause: float
    what: str
    which: int = 0
    number: int = 0
    text: str = ""
    seconds: float = 0.0

    def __str__(self) -> str:
        words = [f"{self.pause:>5g} s  {self.what}", f"#{self.which}"]
        words += [f"m{self.number}"] if self.number else []
        words += [repr(self.text)] if self.text else []
        return " ".join([*words, *([f"{self.seconds:g} s"] if self.seconds else [])])


def schedule(seed: int, steps: int) -> list[Action]:
    """A launch with something to say, and up to `steps` more."""
    draw = random.Random(seed)
    count = draw.randint(max(1, steps // 3), steps)
    calm = draw.random() < 0.25
    kinds = [k for k in KINDS if not calm or k in ("message", "cancel", "stop", "resume", "answer", "wait")]
    drawn = draw.choices(kinds, [WEIGHTS[k] for k in kinds], k=count)
    return [_made(draw, number, what) for number, what in enumerate(("launch", *drawn), 1)]


def _made(draw: random.Random, number: int, what: str) -> Action:
    pause, which = draw.choice(PAUSES_S), draw.randrange(6)
    match what:
        case "message" | "launch" | "peer" | "interrupt" | "automation" | "respond":
            return Action(pause, what, which, number, draw.choice(SCRIPTS))
        case "wait":
            return Action(draw.choice((15.0, 40.0, 130.0)), what)
        case "kill":
            return Action(pause, what, seconds=draw.choice((0.0, 0.5, 30.0)))
        case "store fault":
            return Action(pause, what, which, 0, draw.choice(POINTS), draw.choice((0.0, 0.0, 2.0, 8.0)))
        case "wire fault":
            return Action(pause, what, which, 0, draw.choice(CALLS), draw.choice((0.0, 0.0, 3.0, 15.0)))
        case "network down":
            return Action(pause, what, seconds=draw.choice((2.0, 12.0, 60.0)))
        case "slow agent":
            return Action(pause, what, which, seconds=draw.choice((0.0, 0.5, 3.0, 12.0)))
        case "launches fail":
            return Action(pause, what, which % 2)
    return Action(pause, what, which)

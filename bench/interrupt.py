"""Our share of an interrupt: a parent's agent replaces what a child's agent is doing, by its own tool call.

Two clocks run on each interrupt: one in the parent's agent, around its tool call, and one in the backend,
around the dispatch of the action. Both end twice: when the call is answered `sent`, and with the child's
first word of the new turn, which it stamps itself. Before each a bare driver cancels and prompts the same
agent, so that a loaded machine loads both. The pause for the agent's sake behind a cancel is switched off,
as in `latency`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.client import connected
from bench.driver import Bare, driven
from bench.figures import Row, beyond, ms
from bench.ground import Ground
from bench.latency import SPEAK, WITHOUT_PAUSE, WORK
from bench.program import STAMPING, Board, Live, running
from bench.stamps import stamp_of, update_text

BARE = "bare driver: cancel, prompt"
PROGRAM = ("-P", str(Path(__file__).parent / "dispatching.py"))


@dataclass
class Samples:
    """Seconds from the asking, in the order in which they were taken."""

    sent: list[float] = field(default_factory=list)
    """Until it is answered `sent`; of a bare driver, until the first word is with it."""
    word: list[float] = field(default_factory=list)
    """Until the first word of the new turn."""


async def measure(ground: Ground) -> Sequence[Row]:
    """Beside one and beside many live children."""
    rows: list[Row] = []
    children: list[Live] = []
    inside = ground.folder / "dispatched.jsonl"
    settings = {**WITHOUT_PAUSE, "BENCH_DISPATCHED": str(inside)}
    async with (
        running(ground.folder / "home", settings, PROGRAM) as kandev,
        connected(kandev.url) as client,
        driven(ground.folder / "bare", STAMPING) as bare,
    ):
        board = await Board.of(client)
        (parent,) = await board.sessions(1, STAMPING)
        for count in ground.sizes.live:
            children += await board.sessions(count - len(children), STAMPING, parent.task_id)
            await _Round(inside, parent, children[-1]).play(Samples(), Samples())  # the first loads libraries
            floor, called, dispatched = Samples(), Samples(), Samples()
            for number in range(ground.sizes.rounds):
                await _bare_round(bare, floor)
                await _Round(inside, parent, children[number % count]).play(called, dispatched)
            rows += _rows(ground, count, floor, (called, dispatched))
    return rows


def _rows(ground: Ground, count: int, floor: Samples, ours: tuple[Samples, Samples]) -> list[Row]:
    live = f"{count} live session{'s' if count > 1 else ''}"
    called, dispatched = ours
    budget = ground.budget(20, "p95") if count == max(ground.sizes.live) else None
    share = f"our share of an interrupt, {live}"
    return [
        Row(f"tool call until `sent`, {live}", "ms", ms(called.sent), ms(floor.sent), BARE),
        Row(f"tool call until the first word, {live}", "ms", ms(called.word), ms(floor.word), BARE),
        Row(f"in-process until `sent`, {live}", "ms", ms(dispatched.sent), ms(floor.sent), BARE),
        Row(f"in-process until the first word, {live}", "ms", ms(dispatched.word), ms(floor.word), BARE),
        Row(share, "ms", beyond(called.word, floor.word), budget=budget),
    ]


async def _bare_round(bare: Bare, samples: Samples) -> None:
    turn = bare.begin(WORK)
    await bare.first_update()
    began = time.monotonic()
    bare.cancel()
    await turn
    turn = bare.begin(SPEAK)
    at, update = await bare.first_update()
    await turn
    samples.sent.append(at - began)
    samples.word.append(stamp_of(update_text(update)) - began)


@dataclass(frozen=True)
class _Round:
    """One interrupt of a child that works."""

    inside: Path
    """What the backend notes of its dispatches."""
    parent: Live
    child: Live

    async def play(self, called: Samples, dispatched: Samples) -> None:
        """Both are idle again when it ends."""
        await self.child.say(WORK)
        await self.child.notes.output()
        self.child.notes.forget()
        message = {"task_id": self.child.task_id, "prompt": SPEAK, "delivery_mode": "interrupt"}
        await self.parent.say(f"call message_task_kandev {json.dumps(message)}")
        told = json.loads((await self.parent.notes.output()).payload["message"]["content"])
        word = stamp_of((await self.child.notes.output()).payload["message"]["content"])
        for live in (self.parent, self.child):
            await live.idle()
            live.notes.forget()
        _take(told, told["result"].get("structuredContent", {}), word, called)
        inside = json.loads(self.inside.read_text().splitlines()[-1])
        _take(inside, inside["result"], word, dispatched)


def _take(told: dict[str, Any], answer: dict[str, Any], word: float, samples: Samples) -> None:
    if answer.get("status") != "sent":
        raise RuntimeError(f"an interrupt was answered {told['result']}")
    began = told["began"] / 1e9
    samples.sent.append(told["answered"] / 1e9 - began)
    samples.word.append(word - began)
